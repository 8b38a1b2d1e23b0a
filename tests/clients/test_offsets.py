"""Offsets, as clients see them: where a partition begins and ends, what stands at a time, what is deleted."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.clients import wire
from tests.clients.cluster import Cluster
from tests.clients.librdkafka import Librdkafka, deliver
from tests.clients.topics import Topics
from tests.clients.witness import ANSWER_S_MAX, COMPRESSIONS, Beginning, Message, Offset

CLIENT: Final = "librdkafka and raw requests"
OUT_OF_RANGE: Final = 1
MINUTE_MS: Final = 60_000
LATEST_WANTED: Final = -1
"""What DeleteRecords takes for "all that is readable"."""


def found_at(stock: Librdkafka, topic: str, wanted: OffsetSpec) -> tuple[int, int]:
    """Offset and time of the record that ListOffsets names."""
    place = TopicPartition(topic, 0)
    answer = stock.admin.list_offsets({place: wanted})[place].result(ANSWER_S_MAX)
    return int(answer.offset), int(answer.timestamp)


def watermarks(stock: Librdkafka, topic: str) -> tuple[int, int]:
    consumer = stock.consumer({})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ANSWER_S_MAX)
        return int(low), int(high)
    finally:
        consumer.close()


@pytest.mark.shows("a new topic begins and ends at offset 0")
def test_a_new_topic_begins_and_ends_at_zero(stock: Librdkafka, topics: Topics, cluster: Cluster) -> None:
    topic = topics.create()

    assert watermarks(stock, topic) == (0, 0)
    assert found_at(stock, topic, OffsetSpec.latest())[0] == 0
    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        empty = wire.fetch(connection, topic, 0)
    assert (empty.error, empty.high_watermark, empty.records) == (0, 0, b"")


@pytest.mark.shows("a topic can be used as soon as its creation is answered")
def test_a_new_topic_can_be_asked_for_its_end_at_once(
    cluster: Cluster, stock: Librdkafka, topics: Topics
) -> None:
    if cluster.log is None:
        pytest.skip("Apache Kafka answers before all its brokers know the topic")
    names = [topics.name() for _ in range(20)]

    for name in names:
        stock.create_topic(name, partitions=1, replicas=topics.replicas, settings={})

        assert watermarks(stock, name) == (0, 0)


@pytest.mark.shows("offset by time, exact to the record")
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_time_finds_the_first_record_that_is_not_older(
    compression: str, stock: Librdkafka, topics: Topics
) -> None:
    topic = topics.create()
    begin_ms = int(time.time() * 1000) - MINUTE_MS
    times_ms = [begin_ms, begin_ms + 10, begin_ms + 40, begin_ms + 20, begin_ms + 50]
    stock.write(topic, [Message(value=b"x" * 100)] * 5, compression=compression, timestamps_ms=times_ms)

    assert found_at(stock, topic, OffsetSpec.for_timestamp(begin_ms - 1)) == (0, begin_ms)
    assert found_at(stock, topic, OffsetSpec.for_timestamp(begin_ms + 10)) == (1, begin_ms + 10)
    assert found_at(stock, topic, OffsetSpec.for_timestamp(begin_ms + 11)) == (2, begin_ms + 40)
    assert found_at(stock, topic, OffsetSpec.for_timestamp(begin_ms + 45)) == (4, begin_ms + 50)
    assert found_at(stock, topic, OffsetSpec.for_timestamp(begin_ms + 51)) == (-1, -1)


@pytest.mark.shows("offset of the newest time, exact to the record")
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_newest_time_is_found_at_its_record(compression: str, stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create()
    begin_ms = int(time.time() * 1000) - MINUTE_MS
    times_ms = [begin_ms, begin_ms + 900, begin_ms + 20, begin_ms + 30]
    stock.write(topic, [Message(value=b"x" * 100)] * 4, compression=compression, timestamps_ms=times_ms)
    stock.write(topic, [Message(value=b"older")], timestamps_ms=[begin_ms + 500])

    assert found_at(stock, topic, OffsetSpec.max_timestamp()) == (1, begin_ms + 900)


@pytest.mark.shows("log append time instead of the producer's")
def test_a_topic_can_stamp_the_time_of_the_append(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    stock.write(topic, [Message(value=b"x")] * 3, compression="gzip", timestamps_ms=[1_000_000_000_000] * 3)

    stored = stock.read(topic, Beginning(), 3)

    assert all(before_ms <= each.timestamp_ms <= before_ms + MINUTE_MS for each in stored)
    assert found_at(stock, topic, OffsetSpec.for_timestamp(before_ms))[0] == 0


@pytest.mark.shows("delete records up to an offset")
def test_deleted_records_are_gone_and_offsets_stay(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create()
    stock.write(topic, [Message(value=b"%d" % number) for number in range(10)])

    low = stock.delete_records(topic, 4)

    assert low == 4
    assert watermarks(stock, topic) == (4, 10)
    assert [each.offset for each in stock.read(topic, Offset(4), 6)] == [4, 5, 6, 7, 8, 9]
    assert stock.write(topic, [Message(value=b"next")]) == [10]


@pytest.mark.shows("delete all records")
def test_all_records_can_be_deleted(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create()
    stock.write(topic, [Message(value=b"x")] * 7)

    assert stock.delete_records(topic, LATEST_WANTED) == 7
    assert watermarks(stock, topic) == (7, 7)


def test_what_does_not_exist_cannot_be_deleted(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create()
    stock.write(topic, [Message(value=b"x")] * 3)

    with pytest.raises(KafkaException) as refused:
        stock.delete_records(topic, 4)

    assert refused.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_fetch_outside_the_log_is_told_where_it_lies(
    stock: Librdkafka, topics: Topics, cluster: Cluster
) -> None:
    topic = topics.create()
    stock.write(topic, [Message(value=b"x")] * 5)
    stock.delete_records(topic, 2)

    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        below = wire.fetch(connection, topic, 1)
        above = wire.fetch(connection, topic, 6)

    assert (below.error, above.error) == (OUT_OF_RANGE, OUT_OF_RANGE)
    assert (below.records, above.records) == (b"", b"")


@pytest.mark.shows("a fetch at the end waits for the next record")
def test_a_fetch_at_the_end_is_answered_by_the_next_record(
    stock: Librdkafka, topics: Topics, cluster: Cluster
) -> None:
    topic = topics.create()
    stock.write(topic, [Message(value=b"first")])

    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        body = wire.fetch_body(topic, 1, wait_ms=int(ANSWER_S_MAX * 500))
        connection.send(wire.FETCH, 4, body)
        stock.write(topic, [Message(value=b"second")])
        began_s = time.monotonic()
        answer = wire.fetched(connection.answer())

    assert b"second" in answer.records
    assert answer.high_watermark == 2
    assert time.monotonic() - began_s < 2.0


def test_a_fetch_at_the_end_is_answered_when_its_wait_is_over(topics: Topics, cluster: Cluster) -> None:
    topic = topics.create()

    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        began_s = time.monotonic()
        answer = wire.fetched(connection.ask(wire.FETCH, 4, wire.fetch_body(topic, 0, wait_ms=300)))
        took_s = time.monotonic() - began_s

    assert (answer.error, answer.records) == (0, b"")
    assert 0.25 <= took_s < 5.0


@pytest.mark.shows("order is kept per partition")
def test_each_producers_messages_stay_in_order_in_every_partition(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    producers, per_partition = 3, 200

    def write(producer: int) -> None:
        writer = stock.producer({"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 7})
        deliver(
            writer,
            [
                {"topic": topic, "partition": number % 2, "value": b"%d %d" % (producer, number)}
                for number in range(2 * per_partition)
            ],
        )

    with ThreadPoolExecutor(producers) as pool:
        list(pool.map(write, range(producers)))

    values = [each.message.value or b"" for each in stock.read(topic, Beginning(), producers * per_partition)]
    for producer in range(producers):
        own = [int(value.split()[1]) for value in values if value.split()[0] == b"%d" % producer]
        assert own == list(range(0, 2 * per_partition, 2))
