"""A cluster as commands reach it, in memory: topics, messages, and errors on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidings.cli.doors import Doors
from tidings.kafka.admin import Broker, ClusterView, End, Partition, Setting
from tidings.kafka.errors import Refused, Unreachable
from tidings.kafka.positions import AtOffset, Edge, Position
from tidings.kafka.publisher import Header, OnOutcome, Outcome, Stored
from tidings.kafka.reader import Received

REPLICAS = (1, 2, 3)


@dataclass
class FakeCluster:
    """What there is, what was asked, and what goes wrong."""

    brokers: tuple[Broker, ...] = ()
    topics: dict[str, list[Partition]] = field(default_factory=dict)
    settings_by_topic: dict[str, list[Setting]] = field(default_factory=dict)
    end_by_partition: dict[Partition, End] = field(default_factory=dict)
    messages: list[Received] = field(default_factory=list)
    problem: Exception | None = None  # raised by whatever is asked next
    asked: list[tuple[object, ...]] = field(default_factory=list)
    bootstraps: list[str] = field(default_factory=list)

    def doors(self) -> Doors:
        return Doors(
            topics=self._open_admin,
            cluster=self._open_admin,
            publisher=self._open_publisher,
            reader=self._open_reader,
        )

    def add_topic(self, name: str, partitions: int, *, in_sync: tuple[int, ...] = REPLICAS) -> None:
        self.topics[name] = [
            Partition(topic=name, number=number, leader=in_sync[0], replicas=REPLICAS, in_sync=in_sync)
            for number in range(partitions)
        ]

    def ask(self, *what: object) -> None:
        self.asked.append(what)
        if self.problem is not None:
            raise self.problem

    def _open_admin(self, bootstrap: str) -> FakeAdmin:
        self.bootstraps.append(bootstrap)
        if isinstance(self.problem, Unreachable):
            raise self.problem
        return FakeAdmin(self)

    def _open_publisher(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int,
        delivery_ms_max: int,
        on_outcome: OnOutcome,
        on_pause: Callable[[], None],
    ) -> FakePublisher:
        self.bootstraps.append(bootstrap)
        self.ask("publish to", topic, partition, delivery_ms_max)
        return FakePublisher(self, topic, max(partition, 0), on_outcome)

    def _open_reader(self, bootstrap: str, topic: str, *, partition: int | None) -> FakeReader:
        self.bootstraps.append(bootstrap)
        self.ask("read", topic, partition)
        return FakeReader(self, topic)


class FakeAdmin:
    """TopicAdmin and ClusterQuestions."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def partitions(self, topic: str | None = None) -> tuple[Partition, ...]:
        self._cluster.ask("partitions", topic)
        if topic is not None and topic not in self._cluster.topics:
            raise Refused(f"there is no topic {topic}", "UNKNOWN_TOPIC_OR_PART")
        names = sorted(self._cluster.topics) if topic is None else [topic]
        return tuple(each for name in names for each in self._cluster.topics[name])

    def settings(self, topic: str) -> list[Setting]:
        return self._cluster.settings_by_topic.get(topic, [])

    def change_settings(self, topic: str, changed: Mapping[str, str], removed: Sequence[str]) -> None:
        self._cluster.ask("change settings", topic, dict(changed), tuple(removed))

    def create(self, topic: str, *, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        self._cluster.ask("create", topic, partitions, replication, dict(settings))

    def remove(self, topic: str) -> None:
        self._cluster.ask("remove", topic)

    def grow(self, topic: str, partitions: int) -> None:
        self._cluster.ask("grow", topic, partitions)

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, End]:
        ends = self._cluster.end_by_partition
        return {each: ends[each] for each in partitions if each in ends}

    def cluster(self) -> ClusterView:
        self._cluster.ask("cluster")
        return ClusterView(
            cluster_id="c1", controller=2, brokers=self._cluster.brokers, partitions=self.partitions()
        )


class FakePublisher:
    """Stores in memory. A value that begins with `bad` is refused."""

    def __init__(self, cluster: FakeCluster, topic: str, partition: int, on_outcome: OnOutcome) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._on_outcome = on_outcome
        self._count = 0

    def publish(self, value: bytes | None, *, key: bytes | None, headers: Sequence[Header]) -> None:
        number, self._count = self._count, self._count + 1
        outcome: Outcome = Stored(topic=self._topic, partition=self._partition, offset=number)
        if value is not None and value.startswith(b"bad"):
            outcome = Refused("Broker: Message size too large", "MSG_SIZE_TOO_LARGE")
        else:
            self._cluster.messages.append(
                message(value, topic=self._topic, offset=number, key=key, headers=tuple(headers))
            )
        self._on_outcome(number, outcome)

    def close(self) -> None:
        self._cluster.asked.append(("publisher closed",))


class FakeReader:
    """Hands out the messages of the cluster."""

    def __init__(self, cluster: FakeCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic

    def topic_exists(self) -> bool:
        return self._topic in self._cluster.topics

    def read(
        self,
        position: Position,
        *,
        follow: bool,
        on_idle: Callable[[], None],
        on_beyond: Callable[[int], None],
    ) -> Iterator[Received]:
        self._cluster.ask("from", position, follow)
        end = len(self._cluster.messages)
        if isinstance(position, AtOffset) and position.offset > end:
            on_beyond(end)
        if position is not Edge.LATEST:
            yield from self._cluster.messages
        if follow:
            on_idle()
            raise KeyboardInterrupt  # there is nothing more, and somebody presses Ctrl-C

    def close(self) -> None:
        self._cluster.asked.append(("reader closed",))


def message(
    value: bytes | None,
    *,
    topic: str = "news",
    partition: int = 0,
    offset: int = 0,
    key: bytes | None = None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> Received:
    return Received(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=1_700_000_000_000,
        key=key,
        value=value,
        headers=headers,
    )
