"""Aiokafka, the asyncio client, against the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.clients.cluster import Cluster
from tests.clients.contract import (
    AdministratorContract,
    ReaderContract,
    RefusalContract,
    SeekerContract,
    WriterContract,
)
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

T = TypeVar("T")


class Aiokafka:
    """Implements all ports of witness.py; each call runs a loop of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    # Writer

    def write(
        self, topic: str, messages: Sequence[Message], *, compression: str = "none", idempotent: bool = False
    ) -> list[int]:
        async def send() -> list[int]:
            async with AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all",
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
            ) as producer:
                waiting = [
                    await producer.send(
                        topic, message.value, key=message.key, partition=0, headers=list(message.headers)
                    )
                    for message in messages
                ]
                return [answer.offset for answer in await asyncio.gather(*waiting)]

        return run(send())

    def place(self, topic: str, keys: Sequence[bytes]) -> list[int]:
        async def send() -> list[int]:
            async with AIOKafkaProducer(bootstrap_servers=self._bootstrap, acks="all") as producer:
                waiting = [await producer.send(topic, b"", key=key) for key in keys]
                return [answer.partition for answer in await asyncio.gather(*waiting)]

        return run(send())

    # Reader and Seeker

    def read(self, topic: str, start: Start, count: int) -> list[Stored]:
        async def fetch(consumer: AIOKafkaConsumer) -> list[Stored]:
            await go_to(consumer, TopicPartition(topic, 0), start)
            return await take(consumer, count)

        return self._with_reader(topic, fetch)

    @contextmanager
    def follow(self, topic: str) -> Iterator[Callable[[int], list[Stored]]]:
        with asyncio.Runner() as runner:
            consumer = runner.run(self._reader_at_end(topic))
            try:
                yield lambda count: runner.run(asyncio.wait_for(take(consumer, count), ANSWER_S_MAX))
            finally:
                runner.run(consumer.stop())

    def read_at(self, topic: str, offsets: Sequence[int]) -> list[Stored]:
        async def fetch(consumer: AIOKafkaConsumer) -> list[Stored]:
            found = []
            for offset in offsets:
                consumer.seek(TopicPartition(topic, 0), offset)
                found += await take(consumer, 1)
            return found

        return self._with_reader(topic, fetch)

    async def _reader(self, topic: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.start()
        return consumer

    async def _reader_at_end(self, topic: str) -> AIOKafkaConsumer:
        consumer = await self._reader(topic)
        await consumer.seek_to_end()
        await consumer.position(TopicPartition(topic, 0))
        return consumer

    def _with_reader(self, topic: str, fetch: Callable[[AIOKafkaConsumer], Awaitable[T]]) -> T:
        async def read() -> T:
            consumer = await self._reader(topic)
            try:
                return await fetch(consumer)
            finally:
                await consumer.stop()

        return run(read())

    # Refused

    def ask_for_group(self, topic: str) -> str:
        async def subscribe() -> str:
            consumer = AIOKafkaConsumer(topic, bootstrap_servers=self._bootstrap, group_id="a-group")
            try:
                await consumer.start()
            except KafkaError as error:
                return f"{type(error).__name__}: {error}"
            finally:
                await consumer.stop()
            raise AssertionError("the group was taken")

        return run(subscribe())

    def ask_for_transactions(self) -> str:
        async def begin() -> str:
            producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, transactional_id="a-transaction")
            try:
                await producer.start()
            except KafkaError as error:
                return f"{type(error).__name__}: {error}"
            finally:
                await producer.stop()
            raise AssertionError("transactions were taken")

        return run(begin())

    # Administrator

    def create_topic(
        self, topic: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        wanted = NewTopic(topic, partitions, replicas, topic_configs=dict(settings))
        answer = self._with_admin(lambda admin: admin.create_topics([wanted]))
        ((_, error, *_),) = answer.topic_errors
        assert error == 0, answer

    def topic_names(self) -> set[str]:
        return set(self._with_admin(lambda admin: admin.list_topics()))

    def describe_topic(self, topic: str) -> TopicView:
        (view,) = self._with_admin(lambda admin: admin.describe_topics([topic]))
        partitions = sorted(view["partitions"], key=lambda partition: int(partition["partition"]))
        return TopicView(
            leaders=tuple(partition["leader"] for partition in partitions),
            replicas=tuple(frozenset(partition["replicas"]) for partition in partitions),
            in_sync=tuple(frozenset(partition["isr"]) for partition in partitions),
        )

    def delete_topic(self, topic: str) -> None:
        answer = self._with_admin(lambda admin: admin.delete_topics([topic]))
        assert answer.topic_error_codes == [(topic, 0)], answer

    def add_partitions(self, topic: str, total: int) -> None:
        self._with_admin(lambda admin: admin.create_partitions({topic: NewPartitions(total)}))

    def settings(self, topic: str) -> Mapping[str, str]:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._with_admin(lambda admin: admin.describe_configs([asked]))
        ((error, why, _, _, entries),) = answer.resources
        assert error == 0, why
        return {name: value for name, value, *_ in entries}

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))
        (answer,) = self._with_admin(lambda admin: admin.alter_configs([wanted]))
        ((error, why, *_),) = answer.resources
        assert error == 0, why

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = TopicPartition(topic, 0)
        answer = self._with_admin(lambda admin: admin.delete_records({place: RecordsToDelete(before_offset)}))
        return int(answer[place])

    def describe_cluster(self) -> ClusterView:
        view = self._with_admin(lambda admin: admin.describe_cluster())
        return ClusterView(
            addresses={node["node_id"]: f"{node['host']}:{node['port']}" for node in view["brokers"]},
            controller=view["controller_id"],
        )

    def _with_admin(self, ask: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def asked() -> T:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                return await ask(admin)
            finally:
                await admin.close()

        return run(asked())


def run(work: Awaitable[T]) -> T:
    async def in_time() -> T:
        return await asyncio.wait_for(work, ANSWER_S_MAX)

    return asyncio.run(in_time())


async def go_to(consumer: AIOKafkaConsumer, place: TopicPartition, start: Start) -> None:
    match start:
        case Beginning():
            await consumer.seek_to_beginning(place)
        case Offset(value):
            consumer.seek(place, value)
        case Since(timestamp_ms):
            found = await consumer.offsets_for_times({place: timestamp_ms})
            consumer.seek(place, found[place].offset)
        case Last(count):
            ends = await consumer.end_offsets([place])
            consumer.seek(place, ends[place] - count)


async def take(consumer: AIOKafkaConsumer, count: int) -> list[Stored]:
    return [stored(await consumer.getone()) for _ in range(count)]


def stored(received: ConsumerRecord[bytes, bytes]) -> Stored:
    message = Message(key=received.key, value=received.value, headers=tuple(received.headers))
    return Stored(offset=received.offset, timestamp_ms=received.timestamp, message=message)


class TestAiokafka(WriterContract, ReaderContract, SeekerContract, AdministratorContract, RefusalContract):
    CLIENT = "aiokafka"

    @pytest.fixture
    def client(self, cluster: Cluster) -> Aiokafka:
        return Aiokafka(cluster.bootstrap)
