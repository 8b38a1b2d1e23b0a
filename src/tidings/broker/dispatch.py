"""Dispatch: one broker as node sees it: requests, applied metadata commands and replicas go in, answers come
out.

The one rule: what has no row in HANDLERS is not served and not advertised; what is known to be left out has a
row in LEFT_OUT, with the reason.
It must not know what a request means: that is its handler's. Tests: tests/broker/test_dispatch.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidings.broker.cluster import ClusterState
from tidings.broker.cluster_codec import decode_cluster, encode_cluster
from tidings.broker.handlers import (
    api_versions,
    create_topics,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from tidings.broker.outcome import Outcome
from tidings.broker.partition import Partition
from tidings.broker.ports import ReplicaLog
from tidings.broker.requests import Request
from tidings.broker.site import Ports, Site
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.schema import Message

Handler = Callable[[Site, Request, int], Message | None]

HANDLERS: Mapping[int, Handler] = MappingProxyType(
    {
        ApiKey.PRODUCE: produce.handle,
        ApiKey.FETCH: fetch.handle,
        ApiKey.LIST_OFFSETS: list_offsets.handle,
        ApiKey.METADATA: metadata.handle,
        ApiKey.FIND_COORDINATOR: find_coordinator.handle,
        ApiKey.API_VERSIONS: api_versions.handle,
        ApiKey.CREATE_TOPICS: create_topics.handle,
        ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    }
)


class Broker:
    """Everything of a broker but its logs, clocks and connections. Times are those of ports.py."""

    def __init__(self, *, config: Config, ports: Ports) -> None:
        self._site = Site(config=config, cluster=ClusterState(), ports=ports)

    @property
    def cluster(self) -> ClusterState:
        """The metadata as far as this broker has applied it; for reading."""
        return self._site.cluster

    def handle(self, request: Request, now_ms: int) -> Message | None:
        """The answer, or None: it goes to `request.answer` later, or there is none (Produce with acks=0)."""
        return HANDLERS[request.api_key](self._site, request, now_ms)

    def apply(self, command: bytes, index: int, now_ms: int) -> Outcome:
        """A command of the metadata group is committed. Opening and closing the partitions of the outcome's
        groups is left to the caller, who has their logs."""
        outcome = self._site.cluster.apply(command, index)
        if outcome.changes_settings:
            self._site.refresh_settings()
        return outcome

    def cluster_state(self) -> bytes:
        """The whole metadata, for checkpoints and for members that start from a copy."""
        return encode_cluster(self._site.cluster)

    def restore_cluster(self, state: bytes) -> None:
        """Go on from such a copy; no bytes are the state before the first command."""
        self._site.cluster = decode_cluster(state) if state else ClusterState()
        self._site.refresh_settings()

    def open_partition(self, group: int, log: ReplicaLog) -> Partition:
        """Serve a replica; `cluster.partitions` must hold the group."""
        return self._site.open_partition(group, log)

    def close_partition(self, group: int, now_ms: int) -> None:
        """Serve it no more: deleted, or moved to other brokers."""
        self._site.close_partition(group, now_ms)

    def partition(self, group: int) -> Partition | None:
        return self._site.partitions.by_group.get(group)
