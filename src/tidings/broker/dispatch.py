"""Dispatch: one broker as node sees it: requests, metadata commands and replicas in, answers out.

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
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from tidings.broker.outcome import Outcome
from tidings.broker.partition import Partition
from tidings.broker.ports import ReplicaLog
from tidings.broker.requests import Request
from tidings.broker.site import Ports, Site
from tidings.config.options import Config
from tidings.protocol.apis import API_VERSIONS, ApiKey
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
        ApiKey.DELETE_TOPICS: delete_topics.handle,
        ApiKey.DELETE_RECORDS: delete_records.handle,
        ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
        ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
        ApiKey.ALTER_CONFIGS: alter_configs.handle,
        ApiKey.CREATE_PARTITIONS: create_partitions.handle,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: alter_configs.handle_incremental,
        ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
    }
)

_GROUPS = "consumer groups come later: assign partitions with explicit offsets"
_TRANSACTIONS = "transactions come later: use an idempotent producer"
_SECURITY = "the Kafka listener has no authentication yet"
_PLACEMENT = "replicas are moved by the brokers' own means"
_SHARE_GROUPS = "share groups come later"

# What other brokers serve and this one does not, by API key, with the reason for the log event. None of it is
# advertised, so a client asks for it only without having looked; its connection is closed, as there is no
# answer that it could read.
LEFT_OUT: Mapping[int, str] = MappingProxyType(
    {
        **dict.fromkeys((8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69), _GROUPS),
        **dict.fromkeys((24, 25, 26, 27, 28, 61, 65, 66), _TRANSACTIONS),
        **dict.fromkeys((17, 29, 30, 31, 36, 38, 39, 40, 41, 50, 51), _SECURITY),
        **dict.fromkeys((34, 35, 43, 45, 46), _PLACEMENT),
        **dict.fromkeys((76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92), _SHARE_GROUPS),
        **dict.fromkeys((88, 89), "streams groups come later"),
        **dict.fromkeys((48, 49), "there are no quotas"),
        **dict.fromkeys((71, 72), "clients' telemetry is not collected"),
        74: "only topics and brokers have settings, and both can be listed",
        **dict.fromkeys((55, 57, 64, 80, 81), "the metadata quorum is changed by the brokers' own means"),
    }
)


def why_refused(api_key: int, api_version: int) -> str:
    """For the log event of a connection that is closed because of a request that is not served."""
    if api_key in API_VERSIONS:
        low, high = API_VERSIONS[api_key]
        return f"{ApiKey(api_key).name} is served in versions {low} to {high}, not in {api_version}"
    return LEFT_OUT.get(api_key, f"there is no API with the key {api_key}")


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

    def apply(self, command: bytes, index: int, now_ms: int, *, proposal: bytes) -> Outcome:
        """A command of the metadata group is committed, as `proposal` wanted. Opening and closing partitions
        of the outcome's groups is left to the caller, who has their logs."""
        outcome = self._site.cluster.apply(command, index, proposal=proposal)
        if outcome.changes_settings:
            self._site.refresh_settings(outcome.topic_id)
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
