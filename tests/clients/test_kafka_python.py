"""Kafka-python, the pure Python client, against the cluster.

It reads its message files by a function that Python deprecates, which our warning filter would make an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from tests.clients.cluster import Cluster
from tests.clients.contract import (
    AdministratorContract,
    ReaderContract,
    RefusalContract,
    SeekerContract,
    WriterContract,
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

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.errors import KafkaError


class KafkaPython:
    """Implements all ports of witness.py."""

    def __init__(self, bootstrap: str) -> None:
        self._servers = bootstrap.split(",")

    # Writer

    def write(
        self, topic: str, messages: Sequence[Message], *, compression: str = "none", idempotent: bool = False
    ) -> list[int]:
        with self._producer(
            compression_type=None if compression == "none" else compression, enable_idempotence=idempotent
        ) as producer:
            waiting = [
                producer.send(
                    topic, message.value, key=message.key, partition=0, headers=list(message.headers)
                )
                for message in messages
            ]
            return [answer.get(ANSWER_S_MAX).offset for answer in waiting]

    def place(self, topic: str, keys: Sequence[bytes]) -> list[int]:
        with self._producer() as producer:
            waiting = [producer.send(topic, b"", key=key) for key in keys]
            return [answer.get(ANSWER_S_MAX).partition for answer in waiting]

    @contextmanager
    def _producer(self, **settings: object) -> Iterator[KafkaProducer]:
        producer = KafkaProducer(
            bootstrap_servers=self._servers, **{"acks": "all", "linger_ms": 5, **settings}
        )
        try:
            yield producer
        finally:
            producer.close(timeout=ANSWER_S_MAX)

    # Reader and Seeker

    def read(self, topic: str, start: Start, count: int) -> list[Stored]:
        with self._consumer(topic) as consumer:
            go_to(consumer, TopicPartition(topic, 0), start)
            return take(consumer, count)

    @contextmanager
    def follow(self, topic: str) -> Iterator[Callable[[int], list[Stored]]]:
        with self._consumer(topic) as consumer:
            consumer.seek_to_end()
            consumer.position(TopicPartition(topic, 0))
            yield lambda count: take(consumer, count)

    def read_at(self, topic: str, offsets: Sequence[int]) -> list[Stored]:
        found = []
        with self._consumer(topic) as consumer:
            for offset in offsets:
                consumer.seek(TopicPartition(topic, 0), offset)
                found += take(consumer, 1)
        return found

    @contextmanager
    def _consumer(self, topic: str) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(bootstrap_servers=self._servers, group_id=None)
        try:
            consumer.assign([TopicPartition(topic, 0)])
            yield consumer
        finally:
            consumer.close()

    # Refused

    def ask_for_group(self, topic: str) -> str:
        consumer = KafkaConsumer(topic, bootstrap_servers=self._servers, group_id="a-group")
        try:
            consumer.poll(timeout_ms=int(ANSWER_S_MAX * 1000))
        except KafkaError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            consumer.close()
        raise AssertionError("the group was taken")

    def ask_for_transactions(self) -> str:
        with self._producer(transactional_id="a-transaction") as producer:
            try:
                producer.init_transactions()
            except KafkaError as error:
                return f"{type(error).__name__}: {error}"
        raise AssertionError("transactions were taken")

    # Administrator

    def create_topic(
        self, topic: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(settings),
        }
        with self._admin() as admin:
            admin.create_topics({topic: wanted})

    def topic_names(self) -> set[str]:
        with self._admin() as admin:
            return set(admin.list_topics())

    def describe_topic(self, topic: str) -> TopicView:
        with self._admin() as admin:
            (view,) = admin.describe_topics([topic])
        partitions = sorted(view["partitions"], key=lambda partition: int(partition["partition_index"]))
        return TopicView(
            leaders=tuple(partition["leader_id"] for partition in partitions),
            replicas=tuple(frozenset(partition["replica_nodes"]) for partition in partitions),
            in_sync=tuple(frozenset(partition["isr_nodes"]) for partition in partitions),
        )

    def delete_topic(self, topic: str) -> None:
        with self._admin() as admin:
            admin.delete_topics([topic])

    def add_partitions(self, topic: str, total: int) -> None:
        with self._admin() as admin:
            admin.create_partitions({topic: total})

    def settings(self, topic: str) -> Mapping[str, str]:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        with self._admin() as admin:
            entries = admin.describe_configs([asked], config_filter="all")["topic"][topic]
        return {name: str(entry["value"]) for name, entry in entries.items()}

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))
        with self._admin() as admin:
            admin.alter_configs([wanted])

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = TopicPartition(topic, 0)
        with self._admin() as admin:
            return int(admin.delete_records({place: before_offset})[place]["low_watermark"])

    def describe_cluster(self) -> ClusterView:
        with self._admin() as admin:
            view = admin.describe_cluster()
        return ClusterView(
            addresses={node["broker_id"]: f"{node['host']}:{node['port']}" for node in view["brokers"]},
            controller=view["controller_id"],
        )

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(bootstrap_servers=self._servers)
        try:
            yield admin
        finally:
            admin.close()


def go_to(consumer: KafkaConsumer, place: TopicPartition, start: Start) -> None:
    match start:
        case Beginning():
            consumer.seek_to_beginning(place)
        case Offset(value):
            consumer.seek(place, value)
        case Since(timestamp_ms):
            consumer.seek(place, consumer.offsets_for_times({place: timestamp_ms})[place].offset)
        case Last(count):
            consumer.seek(place, consumer.end_offsets([place])[place] - count)


def take(consumer: KafkaConsumer, count: int) -> list[Stored]:
    found: list[Stored] = []
    deadline = Deadline(ANSWER_S_MAX, f"{count} messages")
    while len(found) < count:
        polled = consumer.poll(timeout_ms=int(deadline.left_s() * 1000), max_records=count - len(found))
        found += [stored(received) for records in polled.values() for received in records]
    return found


def stored(received: ConsumerRecord) -> Stored:
    message = Message(key=received.key, value=received.value, headers=tuple(received.headers))
    return Stored(offset=received.offset, timestamp_ms=received.timestamp, message=message)


class TestKafkaPython(WriterContract, ReaderContract, SeekerContract, AdministratorContract, RefusalContract):
    CLIENT = "kafka-python"

    @pytest.fixture
    def client(self, cluster: Cluster) -> KafkaPython:
        return KafkaPython(cluster.bootstrap)
