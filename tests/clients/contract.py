"""Contract: what every stock client must be able to do with the cluster, one mixin per port of witness.py.

The one rule: a client's module inherits the mixins that fit it and says how the client is used; what is
expected stands here once. A writer is checked with librdkafka and the bytes on the wire, a reader reads what
librdkafka wrote. Must not know: any client's interface.
"""

from __future__ import annotations

import time
from typing import Final

import pytest

from tests.clients import murmur2, wire
from tests.clients.cluster import Cluster
from tests.clients.librdkafka import Librdkafka
from tests.clients.topics import Topics
from tests.clients.witness import (
    COMPRESSIONS,
    Administrator,
    Beginning,
    Last,
    Message,
    Offset,
    Reader,
    Refused,
    Seeker,
    Since,
    Stored,
    Writer,
)

HEADERS: Final = (("trace", b"1f"), ("trace", b"20"), ("empty", b""))
KINDS: Final = {
    "plain": Message(key=b"key", value=b"value"),
    "headers": Message(key=b"key", value=b"value", headers=HEADERS),
    "null key": Message(key=None, value=b"value"),
    "null value": Message(key=b"key", value=None),
    "empty value": Message(key=b"key", value=b""),
}
KIND_CASES: Final = [
    pytest.param(kind, marks=pytest.mark.shows(f"message: {kind}"), id=kind) for kind in KINDS
]
COMPRESSION_CASES: Final = [
    pytest.param(name, marks=pytest.mark.shows(f"compression: {name}"), id=name) for name in COMPRESSIONS
]
MANY: Final = [Message(key=b"%d" % number, value=b"%d " % number * 50) for number in range(40)]
KEYS: Final = [f"customer-{number}".encode() for number in range(40)] + [b"", b"x" * 1000]
PARTITIONS: Final = 7
AT_ONCE_S: Final = 2.0


def texts(stored: list[Stored]) -> list[Message]:
    return [each.message for each in stored]


class WriterContract:
    """What a client that produces must get right."""

    @pytest.mark.parametrize("kind", KIND_CASES)
    def test_writes_each_kind_of_message_bit_for_bit(
        self, kind: str, client: Writer, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()

        offsets = client.write(topic, [KINDS[kind]])

        assert offsets == [0]
        assert texts(stock.read(topic, Beginning(), 1)) == [KINDS[kind]]

    @pytest.mark.parametrize("compression", COMPRESSION_CASES)
    def test_writes_with_each_compression(
        self, compression: str, client: Writer, stock: Librdkafka, topics: Topics, cluster: Cluster
    ) -> None:
        topic = topics.create()

        client.write(topic, MANY, compression=compression)

        assert wire.compressions(cluster.addresses, topic) == {compression}
        assert texts(stock.read(topic, Beginning(), len(MANY))) == MANY

    @pytest.mark.shows("produce: idempotent")
    def test_writes_as_an_idempotent_producer(
        self, client: Writer, stock: Librdkafka, topics: Topics, cluster: Cluster
    ) -> None:
        topic = topics.create()

        offsets = client.write(topic, MANY, idempotent=True)

        assert offsets == list(range(len(MANY)))
        assert all(batch.producer_id >= 0 for batch in wire.batches(cluster.addresses, topic))
        assert texts(stock.read(topic, Beginning(), len(MANY))) == MANY

    @pytest.mark.shows("produce: answers name the offset")
    def test_is_told_the_offset_of_each_message(self, client: Writer, topics: Topics) -> None:
        topic = topics.create()

        first = client.write(topic, MANY)
        second = client.write(topic, MANY[:3])

        assert first == list(range(len(MANY)))
        assert second == [len(MANY), len(MANY) + 1, len(MANY) + 2]

    @pytest.mark.shows("produce: keys go where Java puts them")
    def test_puts_a_key_where_java_puts_it(self, client: Writer, topics: Topics) -> None:
        topic = topics.create(partitions=PARTITIONS)

        placed = client.place(topic, KEYS)

        assert placed == [murmur2.partition(key, PARTITIONS) for key in KEYS]


class ReaderContract:
    """What a client that reads by assignment must get right."""

    @pytest.mark.parametrize("kind", KIND_CASES)
    def test_reads_each_kind_of_message_bit_for_bit(
        self, kind: str, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        stock.write(topic, [KINDS[kind]])

        stored = client.read(topic, Beginning(), 1)

        assert texts(stored) == [KINDS[kind]]

    @pytest.mark.parametrize("compression", COMPRESSION_CASES)
    def test_reads_each_compression(
        self, compression: str, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        stock.write(topic, MANY, compression=compression)

        assert texts(client.read(topic, Beginning(), len(MANY))) == MANY

    @pytest.mark.shows("consume: from the beginning")
    def test_reads_from_the_beginning_in_order(
        self, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        stock.write(topic, MANY[:20])
        stock.write(topic, MANY[20:])

        stored = client.read(topic, Beginning(), len(MANY))

        assert [each.offset for each in stored] == list(range(len(MANY)))
        assert texts(stored) == MANY

    @pytest.mark.shows("consume: by assignment, from an offset")
    def test_reads_from_an_offset_inside_a_batch(
        self, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        stock.write(topic, MANY, compression="lz4")

        stored = client.read(topic, Offset(17), 5)

        assert [each.offset for each in stored] == [17, 18, 19, 20, 21]
        assert texts(stored) == MANY[17:22]

    @pytest.mark.shows("consume: by time")
    def test_reads_from_a_time_exact_to_the_message(
        self, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        begin_ms = int(time.time() * 1000) - 60_000
        times_ms = [begin_ms + 100 * number for number in range(len(MANY))]
        stock.write(topic, MANY, compression="zstd", timestamps_ms=times_ms)

        stored = client.read(topic, Since(times_ms[22] - 99), 3)

        assert [each.offset for each in stored] == [22, 23, 24]
        assert [each.timestamp_ms for each in stored] == times_ms[22:25]

    @pytest.mark.shows("consume: the last N")
    def test_reads_the_newest_so_many(self, client: Reader, stock: Librdkafka, topics: Topics) -> None:
        topic = topics.create()
        stock.write(topic, MANY)

        stored = client.read(topic, Last(10), 10)

        assert texts(stored) == MANY[-10:]

    @pytest.mark.shows("consume: from the end")
    def test_reads_from_the_end_only_what_comes_after(
        self, client: Reader, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()
        stock.write(topic, MANY)

        with client.follow(topic) as next_messages:
            stock.write(topic, [KINDS["plain"]])
            stored = next_messages(1)

        assert [each.offset for each in stored] == [len(MANY)]
        assert texts(stored) == [KINDS["plain"]]


class SeekerContract:
    """What a reader that can be moved must get right."""

    @pytest.mark.shows("consume: seek")
    def test_goes_where_it_is_sent(self, client: Seeker, stock: Librdkafka, topics: Topics) -> None:
        topic = topics.create()
        stock.write(topic, MANY)

        stored = client.read_at(topic, [30, 2, 39])

        assert texts(stored) == [MANY[30], MANY[2], MANY[39]]


class RefusalContract:
    """How a client must fail over what is not served: at once, and saying what is wrong."""

    GROUP_REFUSED = "groupauthorization"
    TRANSACTIONS_REFUSED = "transactionalidauthorization"

    @pytest.mark.shows("refused at once: consumer groups")
    def test_subscribing_is_refused_at_once(
        self, client: Refused, topics: Topics, without_groups: None
    ) -> None:
        topic = topics.create()
        began_s = time.monotonic()

        said = client.ask_for_group(topic)

        assert self.GROUP_REFUSED in letters(said), said
        assert time.monotonic() - began_s < AT_ONCE_S

    @pytest.mark.shows("refused at once: transactions")
    def test_transactions_are_refused_at_once(self, client: Refused, without_groups: None) -> None:
        began_s = time.monotonic()

        said = client.ask_for_transactions()

        assert self.TRANSACTIONS_REFUSED in letters(said), said
        assert time.monotonic() - began_s < AT_ONCE_S


def letters(text: str) -> str:
    """Each client spells the names of errors in its own way."""
    return "".join(filter(str.isalpha, text.lower()))


class AdministratorContract:
    """What a client that administers must get right."""

    @pytest.mark.shows("admin: create a topic")
    def test_creates_a_topic_with_settings(
        self, client: Administrator, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.name()

        client.create_topic(
            topic, partitions=4, replicas=topics.replicas, settings={"retention.ms": "3600000"}
        )

        view = stock.describe_topic(topic)
        assert len(view.leaders) == 4
        assert {len(replicas) for replicas in view.replicas} == {topics.replicas}
        assert stock.settings(topic)["retention.ms"] == "3600000"

    @pytest.mark.shows("admin: describe a topic")
    def test_describes_a_topic(self, client: Administrator, topics: Topics) -> None:
        topic = topics.create(partitions=3)

        view = client.describe_topic(topic)

        assert topic in client.topic_names()
        assert len(view.leaders) == 3
        assert all(leader in replicas for leader, replicas in zip(view.leaders, view.replicas, strict=True))
        assert view.in_sync == view.replicas

    @pytest.mark.shows("admin: delete a topic")
    def test_deletes_a_topic(self, client: Administrator, stock: Librdkafka, topics: Topics) -> None:
        topic = topics.create()

        client.delete_topic(topic)

        topics.wait_until_gone(topic)
        assert topic not in stock.topic_names()

    @pytest.mark.shows("admin: add partitions")
    def test_adds_partitions(self, client: Administrator, stock: Librdkafka, topics: Topics) -> None:
        topic = topics.create(partitions=2)

        client.add_partitions(topic, 5)

        topics.wait_for_partitions(topic, 5)
        assert len(stock.describe_topic(topic).leaders) == 5

    @pytest.mark.shows("admin: read and change settings")
    def test_reads_and_changes_settings(
        self, client: Administrator, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()

        client.change_settings(topic, {"max.message.bytes": "4321"})

        topics.wait_for_setting(topic, "max.message.bytes", "4321")
        assert client.settings(topic)["max.message.bytes"] == "4321"
        assert client.settings(topic)["cleanup.policy"] == "delete"

    @pytest.mark.shows("admin: delete records")
    def test_deletes_records(self, client: Administrator, stock: Librdkafka, topics: Topics) -> None:
        topic = topics.create()
        stock.write(topic, MANY)

        low = client.delete_records(topic, 25)

        assert low == 25
        assert stock.read(topic, Beginning(), 1)[0].offset == 25

    @pytest.mark.shows("admin: describe the cluster")
    def test_describes_the_cluster(self, client: Administrator, cluster: Cluster) -> None:
        view = client.describe_cluster()

        assert set(view.addresses.values()) == set(cluster.addresses)
        assert view.controller in view.addresses
