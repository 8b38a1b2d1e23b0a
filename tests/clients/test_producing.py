"""Producing: acknowledgements, sizes, idempotence and first use of a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import KafkaError

from tests.clients import wire
from tests.clients.cluster import Cluster
from tests.clients.librdkafka import Librdkafka, NotDelivered, deliver
from tests.clients.topics import Topics
from tests.clients.witness import Beginning, Message

CLIENT: Final = "librdkafka and raw requests"
BATCH_BYTES_MAX: Final = 1_048_588
"""Kafka's default of max.message.bytes: the whole batch with its 61 bytes of header and 12 before them."""
UNKNOWN_TOPIC: Final = 3
MESSAGE_TOO_LARGE: Final = 10
OUT_OF_ORDER_SEQUENCE: Final = 45
INVALID_PRODUCER_EPOCH: Final = 47


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create()


@pytest.fixture
def leader(cluster: Cluster, topic: str) -> Iterator[wire.Connection]:
    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        yield connection


def batch_of(size: int) -> bytes:
    """A batch of `size` bytes in all. A short record makes up for a length that takes a byte more."""
    sizes = ((pad, size - overhead) for pad in range(4) for overhead in range(70, 100))
    made = (wire.batch([bytes(pad), bytes(long)]) for pad, long in sizes)
    return next(batch for batch in made if len(batch) == size)


@pytest.mark.shows("batches up to max.message.bytes, not a byte more")
def test_the_largest_batch_is_taken_and_a_byte_more_is_not(leader: wire.Connection, topic: str) -> None:
    taken = wire.produce(leader, topic, batch_of(BATCH_BYTES_MAX))
    refused = wire.produce(leader, topic, batch_of(BATCH_BYTES_MAX + 1))

    assert taken == wire.Produced(error=0, base_offset=0)
    assert refused.error == MESSAGE_TOO_LARGE


def test_a_topic_can_set_its_own_largest_batch(topics: Topics, cluster: Cluster) -> None:
    topic = topics.create(max_message_bytes="2000")

    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as leader:
        taken = wire.produce(leader, topic, batch_of(2000))
        refused = wire.produce(leader, topic, batch_of(2001))

    assert (taken.error, refused.error) == (0, MESSAGE_TOO_LARGE)


def test_a_client_is_told_that_its_message_is_too_large(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create(max_message_bytes="2000")

    with pytest.raises(NotDelivered) as refused:
        deliver(stock.producer({}), [{"topic": topic, "partition": 0, "value": bytes(3000)}])

    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.shows("large messages that the topic allows")
def test_a_message_of_five_mebibytes_comes_back_whole(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.create(max_message_bytes=str(6 * 1024 * 1024))
    value = bytes(range(256)) * (5 * 1024 * 4)

    writer = stock.producer({"message.max.bytes": 6 * 1024 * 1024})
    deliver(writer, [{"topic": topic, "partition": 0, "value": value}])

    assert stock.read(topic, Beginning(), 1)[0].message == Message(value=value)


@pytest.mark.shows("acks=0, acks=1 and acks=all")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_messages_arrive_with_every_kind_of_acknowledgement(acks: str, stock: Librdkafka, topic: str) -> None:
    writer = stock.producer({"acks": acks})

    deliver(writer, [{"topic": topic, "partition": 0, "value": b"%d" % number} for number in range(20)])

    values = [each.message.value for each in stock.read(topic, Beginning(), 20)]
    assert values == [b"%d" % number for number in range(20)]


def test_a_request_with_acks_0_is_not_answered(leader: wire.Connection, topic: str) -> None:
    leader.send(wire.PRODUCE, 7, wire.produce_body(topic, wire.batch([b"x"]), acks=0))
    asked = leader.send(wire.API_VERSIONS, 0, b"")

    assert leader.read().int32() == asked


@pytest.mark.shows("five idempotent requests in flight")
def test_five_requests_in_flight_are_appended_in_order(leader: wire.Connection, topic: str) -> None:
    producer = wire.init_producer_id(leader)
    batches = [wire.batch([b"a", b"b"], producer=producer, first_sequence=2 * number) for number in range(5)]

    for batch in batches:
        leader.send(wire.PRODUCE, 7, wire.produce_body(topic, batch))
    answers = [wire.produced(leader.answer()) for _ in batches]

    assert answers == [wire.Produced(error=0, base_offset=2 * number) for number in range(5)]


@pytest.mark.shows("a repeated request is stored once")
def test_a_repeated_batch_is_answered_as_the_first_time(leader: wire.Connection, topic: str) -> None:
    producer = wire.init_producer_id(leader)
    batches = [wire.batch([b"x"], producer=producer, first_sequence=number) for number in range(5)]
    first = [wire.produce(leader, topic, batch) for batch in batches]

    again = [wire.produce(leader, topic, batch) for batch in batches]

    assert again == first
    assert wire.fetch(leader, topic, 0).high_watermark == 5


def test_a_gap_in_the_sequence_is_refused(leader: wire.Connection, topic: str) -> None:
    producer = wire.init_producer_id(leader)
    wire.produce(leader, topic, wire.batch([b"0"], producer=producer, first_sequence=0))

    refused = wire.produce(leader, topic, wire.batch([b"2"], producer=producer, first_sequence=2))

    assert refused.error == OUT_OF_ORDER_SEQUENCE


def test_an_older_epoch_of_the_producer_is_refused(leader: wire.Connection, topic: str) -> None:
    number, epoch = wire.init_producer_id(leader)
    newer = wire.batch([b"new"], producer=(number, epoch + 1), first_sequence=0)
    assert wire.produce(leader, topic, newer).error == 0

    refused = wire.produce(leader, topic, wire.batch([b"old"], producer=(number, epoch), first_sequence=0))

    assert refused.error == INVALID_PRODUCER_EPOCH


def test_producers_are_given_different_ids(leader: wire.Connection) -> None:
    numbers = [wire.init_producer_id(leader)[0] for _ in range(20)]

    assert len(set(numbers)) == 20


def test_many_small_idempotent_batches_arrive_once_and_in_order(stock: Librdkafka, topic: str) -> None:
    settings = {"enable.idempotence": True, "max.in.flight": 5, "batch.num.messages": 1}
    values = [b"%d" % number for number in range(500)]

    received = deliver(
        stock.producer(settings), [{"topic": topic, "partition": 0, "value": value} for value in values]
    )

    assert [message.offset() for message in received] == list(range(500))
    assert [each.message.value for each in stock.read(topic, Beginning(), 500)] == values


@pytest.mark.shows("first use creates a topic")
def test_a_message_creates_the_topic_it_goes_to(stock: Librdkafka, topics: Topics) -> None:
    topic = topics.name()

    deliver(stock.producer({}), [{"topic": topic, "value": b"first"}])

    view = stock.describe_topic(topic)
    assert {len(replicas) for replicas in view.replicas} == {topics.replicas}


def test_asking_about_a_topic_does_not_create_it(cluster: Cluster, stock: Librdkafka, topics: Topics) -> None:
    topic = topics.name()

    assert wire.leaders(cluster.addresses[0], topic) == []
    assert topic not in stock.topic_names()


def test_a_topic_that_is_not_there_takes_nothing(cluster: Cluster, topics: Topics) -> None:
    with wire.Connection(cluster.addresses[0]) as connection:
        refused = wire.produce(connection, topics.name(), wire.batch([b"x"]))

    assert refused.error == UNKNOWN_TOPIC
