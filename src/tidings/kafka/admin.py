"""Admin: topics and brokers of a cluster, as the Kafka protocol tells them, in values of our own.

Rule: one method is one question or one change, answered or refused before it returns.
Must not know: commands and terminals. Tests: tests/kafka/test_admin.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import KafkaException, Node, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DescribeClusterResult,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tidings.config.address import Address
from tidings.kafka.connection import (
    REQUEST_SECONDS_MAX,
    client_settings,
    kafka_errors,
)
from tidings.kafka.errors import Refused
from tidings.kafka.probe import living_brokers, require_majority

# The broker answers CreateTopics and the like when every broker knows; this is how long it may take.
OPERATION_SECONDS_MAX = 10.0
CLUSTER_DEFAULT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition as Metadata shows it; `leader` is -1 where there is none."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def behind(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.in_sync)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that the cluster names; for a while it names those that died too."""

    broker_id: int
    kafka: str
    rack: str
    is_up: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster at one moment; `controller` is -1 where there is none."""

    cluster_id: str
    controller: int
    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a partition's log ends, and the leader epoch there; -1 where the leader did not say."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A topic's setting."""

    name: str
    value: str
    is_default: bool


class ClusterAdmin:
    """A connection for questions and changes."""

    def __init__(self, bootstrap: str) -> None:
        require_majority(bootstrap)
        self._client = AdminClient(client_settings(bootstrap))

    def partitions(self, topic: str | None = None) -> tuple[Partition, ...]:
        """Of one topic, or of all; a topic that does not exist is refused."""
        with kafka_errors():
            # All are asked for: a question for one topic by name would create it.
            metadata = self._client.list_topics(timeout=REQUEST_SECONDS_MAX)
            if topic is not None and topic not in metadata.topics:
                raise Refused(f"there is no topic {topic}", "UNKNOWN_TOPIC_OR_PART")
            found: list[Partition] = []
            for name, described in sorted(metadata.topics.items()):
                if topic not in (None, name):
                    continue
                found += [
                    Partition(
                        topic=name,
                        number=number,
                        leader=partition.leader,
                        replicas=tuple(partition.replicas),
                        in_sync=tuple(partition.isrs),
                    )
                    for number, partition in sorted(described.partitions.items())
                ]
            return tuple(found)

    def cluster(self) -> ClusterView:
        with kafka_errors():
            asked = self._client.describe_cluster(request_timeout=REQUEST_SECONDS_MAX)
            described: DescribeClusterResult = asked.result()
        nodes: list[Node] = sorted(described.nodes, key=lambda node: int(node.id))
        living = set(living_brokers([Address(node.host, node.port) for node in nodes]))
        return ClusterView(
            cluster_id=described.cluster_id or "",
            controller=described.controller.id if described.controller else -1,
            brokers=tuple(
                Broker(
                    broker_id=node.id,
                    kafka=str(Address(node.host, node.port)),
                    rack=node.rack or "",
                    is_up=Address(node.host, node.port) in living,
                )
                for node in nodes
            ),
            partitions=self.partitions(),
        )

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, End]:
        """Log ends of those partitions that have a leader which answers."""
        led = {TopicPartition(each.topic, each.number): each for each in partitions if each.leader >= 0}
        if not led:
            return {}
        asked: Mapping[TopicPartition, Future[ListOffsetsResultInfo]] = self._client.list_offsets(
            {each: OffsetSpec.latest() for each in led}, request_timeout=REQUEST_SECONDS_MAX
        )
        found: dict[Partition, End] = {}
        for each, future in asked.items():
            try:
                answer = future.result()
            except KafkaException:
                continue
            epoch = answer.leader_epoch
            found[led[each]] = End(offset=answer.offset, leader_epoch=-1 if epoch is None else epoch)
        return found

    def settings(self, topic: str) -> list[Setting]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with kafka_errors():
            asked = self._client.describe_configs([resource], request_timeout=REQUEST_SECONDS_MAX)
            described: Mapping[str, ConfigEntry] = asked[resource].result()
        return [
            Setting(name=entry.name, value=entry.value or "", is_default=_is_default(entry))
            for _, entry in sorted(described.items())
        ]

    def change_settings(self, topic: str, changed: Mapping[str, str], removed: Sequence[str]) -> None:
        """Settings that are not named keep their values; those that are removed have the defaults again."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in changed.items()
        ]
        entries += [
            ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in removed
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        with kafka_errors():
            asked = self._client.incremental_alter_configs([resource], request_timeout=REQUEST_SECONDS_MAX)
            asked[resource].result()

    def create(self, topic: str, *, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        """CLUSTER_DEFAULT leaves partitions or replication to the cluster."""
        new = NewTopic(
            topic, num_partitions=partitions, replication_factor=replication, config=dict(settings)
        )
        self._change(self._client.create_topics([new], **_TIMEOUTS), topic)

    def remove(self, topic: str) -> None:
        self._change(self._client.delete_topics([topic], **_TIMEOUTS), topic)

    def grow(self, topic: str, partitions: int) -> None:
        """`partitions` is how many there are afterwards."""
        self._change(self._client.create_partitions([NewPartitions(topic, partitions)], **_TIMEOUTS), topic)

    def _change(self, asked: Mapping[str, Future[None]], topic: str) -> None:
        with kafka_errors():
            asked[topic].result()


_TIMEOUTS = {"operation_timeout": OPERATION_SECONDS_MAX, "request_timeout": REQUEST_SECONDS_MAX}


def _is_default(entry: ConfigEntry) -> bool:
    return ConfigSource(entry.source) is not ConfigSource.DYNAMIC_TOPIC_CONFIG
