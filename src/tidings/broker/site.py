"""Site: all that a handler can reach on this broker: options, metadata, the partitions it holds, ports.

The one rule: one object per broker, handed to every handler; whatever outlives a request hangs here and
nowhere else.
It must not know requests or what they mean. Tests: tests/broker/test_site.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tidings.broker.answers import AnswerCache
from tidings.broker.cluster import BrokerRow, ClusterState
from tidings.broker.partition import Partition
from tidings.broker.ports import (
    NO_LEADER,
    Controller,
    Freshness,
    Leader,
    Liveness,
    Offload,
    ReplicaLog,
    Settling,
    Timers,
)
from tidings.broker.producer_ids import ProducerIds
from tidings.config.options import Config
from tidings.config.topics import settings_of
from tidings.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world of one broker."""

    timers: Timers
    controller: Controller
    liveness: Liveness
    settling: Settling
    freshness: Freshness
    offload: Offload
    random: Random


class PartitionTable:
    """The replicas this broker holds, by every key that is asked for."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self.by_group: dict[int, Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.by_group.values())

    def add(self, partition: Partition) -> None:
        assert partition.group not in self.by_group, partition.group
        self.by_name[partition.topic, partition.index] = partition
        self.by_id[partition.topic_id, partition.index] = partition
        self.by_group[partition.group] = partition

    def remove(self, group: int) -> Partition:
        partition = self.by_group.pop(group)
        del self.by_id[partition.topic_id, partition.index]
        # A topic that was deleted and created again may have taken the name already.
        if self.by_name.get((partition.topic, partition.index)) is partition:
            del self.by_name[partition.topic, partition.index]
        return partition


class Site:
    """This broker as its handlers see it."""

    def __init__(self, *, config: Config, cluster: ClusterState, ports: Ports) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.cluster = cluster
        self.partitions = PartitionTable()
        self.answers = AnswerCache()
        self.producer_ids = ProducerIds(broker_id=config.broker_id, controller=ports.controller)
        self.timers = ports.timers
        self.controller = ports.controller
        self.liveness = ports.liveness
        self.settling = ports.settling
        self.freshness = ports.freshness
        self.offload = ports.offload
        self.random = ports.random

    def open_partition(self, group: int, log: ReplicaLog) -> Partition:
        """Serve the replica of a group that the metadata knows."""
        topic = self.cluster.topic_of_group(group)
        assert topic is not None, group
        partition = Partition(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=self.cluster.partitions[group].index,
            group=group,
            log=log,
            timers=self.timers,
            settings=settings_of(self.config, self.cluster.cluster_configs(), topic.configs),
            producer_expiration_ms=self.config.producer_id_expiration_ms,
        )
        self.partitions.add(partition)
        return partition

    def close_partition(self, group: int, now_ms: int) -> None:
        self.partitions.remove(group).close(now_ms)

    def refresh_settings(self, topic_id: bytes | None = None) -> None:
        """A topic, or any of them, may have been given other settings: its open partitions take them up."""
        configs = self.cluster.cluster_configs()
        topics = self.cluster.topics_by_id
        for topic in topics.values() if topic_id is None else [topics[topic_id]]:
            by_group = self.partitions.by_group
            opened = [by_group[row.group] for row in topic.partitions if row.group in by_group]
            if opened:
                settings = settings_of(self.config, configs, topic.configs)
                for partition in opened:
                    partition.settings = settings

    def why_missing(self, name: str, index: int) -> ErrorCode:
        """What to answer for a partition that is not in the table."""
        topic = self.cluster.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def why_missing_by_id(self, topic_id: bytes, index: int) -> ErrorCode:
        topic = self.cluster.topics_by_id.get(topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return self.why_missing(topic.name, index)

    def leader_of(self, topic: str, index: int) -> Leader:
        """The newest leader known of a partition, wherever it is."""
        row = self.cluster.topics.get(topic)
        if row is None or not 0 <= index < len(row.partitions):
            return Leader(broker_id=NO_LEADER, epoch=-1)
        return self.liveness.leader_of(row.partitions[index].group)

    def controller_id(self) -> int:
        """Where clients are to send changes of the cluster: to the controller, or while there is none to this
        broker, which takes them for it as any broker does. A client that is told of none would wait for
        minutes (librdkafka: until it asks for metadata anew)."""
        known = self.liveness.controller_id
        return known if known != NO_LEADER else self.broker_id

    def broker_row(self, broker_id: int) -> BrokerRow | None:
        return self.cluster.brokers.get(broker_id)

    def alive_brokers(self) -> list[BrokerRow]:
        """The registered brokers that answer, by id."""
        alive = self.liveness.alive()
        return [row for broker_id, row in sorted(self.cluster.brokers.items()) if broker_id in alive]

    def listed_brokers(self) -> list[BrokerRow]:
        """The registered brokers that clients are told of, by id: one that died a moment ago is still among
        them, because clients that forget a broker also forget, for a second, the partitions they were moving
        away from it."""
        listed = self.liveness.listed()
        return [row for broker_id, row in sorted(self.cluster.brokers.items()) if broker_id in listed]
