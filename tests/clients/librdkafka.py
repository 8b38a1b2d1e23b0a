"""Librdkafka: confluent-kafka as a witness, and the reference with which other clients' tests write and read.

The one rule: only its public classes and documented settings. Must not know: what is expected of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import Message as Received
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.clients.deadline import Deadline
from tests.clients.witness import (
    ANSWER_S_MAX,
    Beginning,
    ClusterView,
    Last,
    Message,
    Offset,
    Since,
    Start,
    Stored,
    TopicView,
)

Setting = str | int | bool
T = TypeVar("T")


class Librdkafka:
    """Implements all ports of witness.py."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin: AdminClient | None = None

    def producer(self, settings: Mapping[str, Setting]) -> Producer:
        return Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "linger.ms": 0, **settings})

    def consumer(self, settings: Mapping[str, Setting]) -> Consumer:
        """A reader by assignment. The binding asks for a group's name and never uses it without commits."""
        by_hand: dict[str, Setting] = {"group.id": "unused", "enable.auto.commit": False}
        # A seek waits for the fetch that is parked at the broker: not half a second, the default.
        return Consumer(
            {"bootstrap.servers": self._bootstrap, "fetch.wait.max.ms": 50, **by_hand, **settings}
        )

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self._bootstrap})
        return self._admin

    # Writer

    def write(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        compression: str = "none",
        idempotent: bool = False,
        timestamps_ms: Sequence[int] | None = None,
    ) -> list[int]:
        # With a pause before sending, all messages travel in one batch.
        settings: dict[str, Setting] = {
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": 20,
        }
        times = timestamps_ms or [0] * len(messages)
        return [
            _offset(received)
            for received in deliver(
                self.producer(settings),
                [
                    {
                        "topic": topic,
                        "partition": 0,
                        "key": message.key,
                        "value": message.value,
                        "headers": list(message.headers),
                        "timestamp": time_ms,
                    }
                    for message, time_ms in zip(messages, times, strict=True)
                ],
            )
        ]

    def place(self, topic: str, keys: Sequence[bytes]) -> list[int]:
        writer = self.producer({"partitioner": "murmur2_random"})
        return [
            _partition(received)
            for received in deliver(writer, [{"topic": topic, "key": key} for key in keys])
        ]

    # Reader and Seeker

    def read(self, topic: str, start: Start, count: int) -> list[Stored]:
        consumer = self.consumer({})
        try:
            assign(consumer, topic, _first_offset(consumer, topic, start))
            return take(consumer, count)
        finally:
            consumer.close()

    @contextmanager
    def follow(self, topic: str) -> Iterator[Callable[[int], list[Stored]]]:
        consumer = self.consumer({"enable.partition.eof": True})
        try:
            assign(consumer, topic, OFFSET_END)
            _wait_for_end(consumer)
            yield lambda count: take(consumer, count)
        finally:
            consumer.close()

    def read_at(self, topic: str, offsets: Sequence[int]) -> list[Stored]:
        consumer = self.consumer({})
        found: list[Stored] = []
        try:
            assign(consumer, topic, OFFSET_BEGINNING)
            take(consumer, 1)
            for offset in offsets:
                consumer.seek(TopicPartition(topic, 0, offset))
                found += take(consumer, 1)
            return found
        finally:
            consumer.close()

    # Refused

    def ask_for_group(self, topic: str) -> str:
        consumer = self.consumer({"group.id": "a-group"})
        try:
            consumer.subscribe([topic])
            received = consumer.poll(ANSWER_S_MAX)
            assert received is not None, "neither a message nor an error"
            error = known(received.error())
            return f"{error.name()}: {error.str()}"
        finally:
            consumer.close()

    def ask_for_transactions(self) -> str:
        writer = self.producer({"transactional.id": "a-transaction"})
        try:
            writer.init_transactions(ANSWER_S_MAX)
        except KafkaException as refused:
            error: KafkaError = refused.args[0]
            return f"{error.name()}: {error.str()}"
        raise AssertionError("transactions were taken")

    # Administrator

    def create_topic(
        self, topic: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        wanted = NewTopic(topic, partitions, replicas, config=dict(settings))
        self.admin.create_topics([wanted])[topic].result(ANSWER_S_MAX)

    def topic_names(self) -> set[str]:
        return set(self.admin.list_topics(timeout=ANSWER_S_MAX).topics)

    def describe_topic(self, topic: str) -> TopicView:
        view = self.admin.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic]
        partitions = [view.partitions[number] for number in sorted(view.partitions)]
        return TopicView(
            leaders=tuple(partition.leader for partition in partitions),
            replicas=tuple(frozenset(partition.replicas) for partition in partitions),
            in_sync=tuple(frozenset(partition.isrs) for partition in partitions),
        )

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(ANSWER_S_MAX)

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(ANSWER_S_MAX)

    def settings(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self.admin.describe_configs([resource])[resource].result(ANSWER_S_MAX)
        return {name: entry.value for name, entry in entries.items()}

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result(ANSWER_S_MAX)

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = TopicPartition(topic, 0, before_offset)
        return int(self.admin.delete_records([place])[place].result(ANSWER_S_MAX).low_watermark)

    def describe_cluster(self) -> ClusterView:
        view = self.admin.describe_cluster().result(ANSWER_S_MAX)
        return ClusterView(
            addresses={node.id: f"{node.host}:{node.port}" for node in view.nodes},
            controller=view.controller.id,
        )


class NotDelivered(Exception):
    """The cluster refused a message, or did not answer in time."""


def deliver(writer: Producer, messages: Sequence[Mapping[str, object]]) -> list[Received]:
    """Sends all and waits for their acknowledgements; `messages` are the arguments of produce()."""
    received: dict[int, Received] = {}
    errors: list[KafkaError] = []

    def answer(number: int) -> Callable[[KafkaError | None, Received], None]:
        def delivered(error: KafkaError | None, message: Received) -> None:
            received[number] = message
            if error is not None:
                errors.append(error)

        return delivered

    for number, message in enumerate(messages):
        writer.produce(**message, on_delivery=answer(number))  # type: ignore[arg-type]  # as the caller spelled them
    unanswered = writer.flush(ANSWER_S_MAX)
    if errors or unanswered:
        raise NotDelivered(*errors, f"{unanswered} unanswered")
    return [received[number] for number in range(len(messages))]


def assign(consumer: Consumer, topic: str, offset: int) -> None:
    """Partition 0 from `offset`. Without knowing its leader yet, librdkafka would ask for it 500 ms later."""
    consumer.list_topics(topic, timeout=ANSWER_S_MAX)
    consumer.assign([TopicPartition(topic, 0, offset)])


def take(consumer: Consumer, count: int) -> list[Stored]:
    """The next messages of an assigned reader."""
    found: list[Stored] = []
    deadline = Deadline(ANSWER_S_MAX, f"{count} messages")
    while len(found) < count:
        received = consumer.poll(deadline.left_s())
        if received is not None and not _is_news(received.error()):
            found.append(_stored(received))
    return found


def _is_news(error: KafkaError | None) -> bool:
    """Whether a poll told of something that is no message. A group's refusal does not touch an assignment."""
    if error is None:
        return False
    if error.code() in (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED):
        return True
    raise AssertionError(error.str())


def _wait_for_end(consumer: Consumer) -> None:
    deadline = Deadline(ANSWER_S_MAX, "the end of the partition")
    while True:
        received = consumer.poll(deadline.left_s())
        if received is None:
            continue
        error = received.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
        assert _is_news(error), "a reader that stands at the end was given a message"


def _first_offset(consumer: Consumer, topic: str, start: Start) -> int:
    match start:
        case Beginning():
            return int(OFFSET_BEGINNING)
        case Offset(value):
            return value
        case Since(timestamp_ms):
            asked = [TopicPartition(topic, 0, timestamp_ms)]
            return int(consumer.offsets_for_times(asked, timeout=ANSWER_S_MAX)[0].offset)
        case Last(count):
            _, end_offset = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ANSWER_S_MAX)
            return int(end_offset) - count


def _offset(received: Received) -> int:
    return known(received.offset())


def _partition(received: Received) -> int:
    return known(received.partition())


def _stored(received: Received) -> Stored:
    headers = received.headers() or []
    assert isinstance(headers, list), headers
    return Stored(
        offset=_offset(received),
        timestamp_ms=received.timestamp()[1],
        message=Message(
            key=as_bytes(received.key()),
            value=as_bytes(received.value()),
            headers=tuple((name, as_bytes(value)) for name, value in headers),
        ),
    )


def as_bytes(value: str | bytes | None) -> bytes | None:
    """What the binding hands out is bytes; only its annotations leave room for text."""
    assert value is None or isinstance(value, bytes), value
    return value


def known(value: T | None) -> T:
    assert value is not None
    return value
