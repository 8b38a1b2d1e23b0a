"""Bad inputs: whatever comes in at a broker's door gets Kafka's error or a closed connection with one event.

While each of these tests runs, a stock producer goes on; after each it must not have noticed.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import psutil
import pytest

from bench import processes
from tests.clients import wire
from tests.clients.bystander import Bystander
from tests.clients.cluster import Cluster
from tests.clients.librdkafka import Librdkafka
from tests.clients.topics import Topics
from tests.clients.witness import ANSWER_S_MAX, Beginning

MIB: Final = 1024 * 1024
REQUEST_BYTES_MAX: Final = 16 * MIB
UNNOTICED_S_MAX: Final = 2.0
"""Between a hiccup of a loaded machine and what a client would call a fault."""
UNSUPPORTED_VERSION: Final = 35
CORRUPT_MESSAGE: Final = 2
MESSAGE_TOO_LARGE: Final = 10
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
UNSUPPORTED_COMPRESSION: Final = 76
INVALID_RECORD: Final = 87
UNKNOWN_API: Final = 9_999
TLS_HELLO: Final = bytes.fromhex("16030100c8010000c40303") + bytes(189)
HTTP_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def header(api_key: int, version: int, *, client_id: bytes = b"\0\4test") -> bytes:
    return struct.pack(">hhi", api_key, version, 1) + client_id


STRANGERS: Final = {
    "an HTTP request": HTTP_REQUEST,
    "a TLS hello": TLS_HELLO,
    "random bytes": random.Random(4).randbytes(4096),
    "random bytes in a frame": sized(random.Random(5).randbytes(4096)),
    "a frame of 2 GiB": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "a frame of negative length": struct.pack(">i", -1),
    "a frame of the most negative length": struct.pack(">i", -(2**31)),
    "an empty frame": sized(b""),
    "a frame that ends in its header": sized(struct.pack(">hh", wire.METADATA, 4)),
    "a client id longer than the frame": sized(header(wire.METADATA, 4, client_id=b"\x7f\xffab")),
    "a client id of negative length": sized(header(wire.METADATA, 4, client_id=b"\xff\x00ab")),
    "a frame that ends in its body": sized(header(wire.PRODUCE, 7) + b"\xff\xff\xff\xff\0\0"),
    "an array longer than its frame": sized(header(wire.METADATA, 4) + struct.pack(">i", 2**31 - 1) + b"\0"),
    "an endless varint": sized(header(wire.METADATA, 9) + b"\0" + b"\xff" * 30),
    "an API that does not exist": sized(header(UNKNOWN_API, 0) + b"\0" * 8),
    "an API with a negative key": sized(header(-1, 0) + b"\0" * 8),
    "a version that is too new": sized(header(wire.PRODUCE, 99) + b"\0" * 8),
    "a version that is too old": sized(header(wire.FETCH, 0) + b"\0" * 8),
    "a negative version": sized(header(wire.METADATA, -1) + b"\0" * 8),
}
# Apache Kafka takes frames of 100 MB, reads a negative length as null, and any bytes as a client id.
KAFKA_LISTENS_TO: Final = {
    "a frame a byte too long": struct.pack(">i", REQUEST_BYTES_MAX + 1),
    "a client id that is no text": sized(header(wire.METADATA, 4, client_id=b"\0\2\xff\xfe") + bytes(5)),
    "an array of negative length": sized(header(wire.METADATA, 4) + struct.pack(">i", -2) + b"\0"),
    "a compact array longer than its frame": sized(
        header(wire.METADATA, 9) + b"\0" + b"\xff\xff\xff\xff\x0f" + bytes(4)
    ),
}


@pytest.fixture(scope="module")
def bystander(stock: Librdkafka, topics: Topics) -> Iterator[Bystander]:
    topic = topics.create()
    with Bystander(stock.producer({"enable.idempotence": True}), topic) as beside:
        yield beside


@pytest.fixture(autouse=True)
def others_notice_nothing(bystander: Bystander) -> Iterator[None]:
    bystander.longest_wait_s()
    yield
    assert bystander.longest_wait_s() < UNNOTICED_S_MAX


@pytest.fixture
def address(cluster: Cluster) -> str:
    return cluster.addresses[0]


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create()


@pytest.fixture
def leader(cluster: Cluster, topic: str) -> Iterator[wire.Connection]:
    with wire.Connection(wire.leader_address(cluster.addresses, topic)) as connection:
        yield connection


@contextmanager
def one_event(cluster: Cluster) -> Iterator[None]:
    """The block makes brokers of ours log one closed connection, with a reason, and not two."""

    def closed() -> list[dict[str, object]]:
        return [event for event in cluster.events() if event["event"] == "connection_closed"]

    before = len(closed())
    yield
    if cluster.log is None:
        return
    processes.wait_until(
        lambda: len(closed()) > before, seconds_max=ANSWER_S_MAX, what="an event about the connection"
    )
    (event,) = closed()[before:]
    assert event["reason"]


@pytest.mark.parametrize("name", STRANGERS)
def test_who_does_not_speak_kafka_is_hung_up_on(name: str, cluster: Cluster, address: str) -> None:
    with one_event(cluster), wire.Connection(address) as connection:
        connection.socket.sendall(STRANGERS[name])

        assert connection.is_closed()


@pytest.mark.parametrize("name", KAFKA_LISTENS_TO)
def test_who_says_what_cannot_be_meant_is_hung_up_on(name: str, cluster: Cluster, address: str) -> None:
    if cluster.log is None:
        pytest.skip("Apache Kafka listens to it")

    with one_event(cluster), wire.Connection(address) as connection:
        connection.socket.sendall(KAFKA_LISTENS_TO[name])

        assert connection.is_closed()


def test_an_api_that_is_left_out_closes_the_connection(
    cluster: Cluster, address: str, without_groups: None
) -> None:
    with one_event(cluster), wire.Connection(address) as connection:
        connection.socket.sendall(sized(header(wire.JOIN_GROUP, 0) + b"\0" * 8))

        assert connection.is_closed()


def test_half_a_frame_and_a_goodbye_cost_nothing(address: str) -> None:
    with wire.Connection(address) as connection:
        connection.socket.sendall(struct.pack(">i", 1000) + b"half")
        connection.socket.shutdown(socket.SHUT_WR)

        assert connection.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_with_those_served(address: str) -> None:
    with wire.Connection(address) as connection:
        # As a client of the future writes it: no tags in the header, its name and version, no tags.
        answer = connection.ask(wire.API_VERSIONS, 99, b"\0" + b"\5wire" + b"\x021" + b"\0")
        error = answer.int16()
        keys = {wire.api_versions_row(answer)[0] for _ in answer.count()}

        assert error == UNSUPPORTED_VERSION
        assert wire.API_VERSIONS in keys
        assert connection.ask(wire.API_VERSIONS, 0, b"").int16() == 0


def test_a_request_that_comes_in_single_bytes_is_answered(address: str) -> None:
    with wire.Connection(address) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in wire.frame(wire.API_VERSIONS, 0, b""):
            connection.socket.sendall(bytes([byte]))

        assert connection.read().int32() == 1


def test_many_requests_in_one_write_are_answered_in_order(address: str) -> None:
    frames = [wire.frame(wire.API_VERSIONS, 0, b"", correlation=number) for number in range(200)]
    with wire.Connection(address) as connection:
        connection.socket.sendall(b"".join(frames))

        assert [connection.read().int32() for _ in frames] == list(range(200))


def corrupted(batch: bytes, *, at: int) -> bytes:
    return batch[:at] + bytes([batch[at] ^ 1]) + batch[at + 1 :]


ONE: Final = wire.batch([b"one"])
LARGE: Final = wire.batch([bytes(MIB - 1000)])
BAD_BATCHES: Final = {
    "a wrong CRC": (corrupted(ONE, at=len(ONE) - 2), CORRUPT_MESSAGE),
    "a wrong CRC field": (corrupted(ONE, at=wire.CRC_OFFSET), CORRUPT_MESSAGE),
    "an old format": (wire.batch([b"one"], magic=1), INVALID_RECORD),
    "the oldest format": (wire.batch([b"one"], magic=0), INVALID_RECORD),
    "two batches": (ONE + ONE, INVALID_RECORD),
    "no batch": (b"", INVALID_RECORD),
    "a control batch": (wire.batch([b"one"], attributes=0x20), INVALID_RECORD),
    "a wrong count": (wire.batch([b"one"], count=2), INVALID_RECORD),
    "no records": (wire.batch([]), INVALID_RECORD),
    "a transaction of nobody": (wire.batch([b"one"], attributes=0x10), INVALID_RECORD),
    "a producer without a sequence": (wire.batch([b"one"], producer=(7, 0)), INVALID_RECORD),
    "a batch cut short": (ONE[:-3], INVALID_RECORD),
    "half a header": (ONE[:30], INVALID_RECORD),
    "half an offset": (ONE[:5], INVALID_RECORD),
    "a format of the future": (wire.batch([b"one"], magic=3), CORRUPT_MESSAGE),
    "an unknown compression": (wire.batch([b"one"], attributes=5), UNSUPPORTED_COMPRESSION),
    "a transaction": (
        wire.batch([b"one"], attributes=0x10, producer=(7, 0), first_sequence=0),
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}
KAFKA_SAYS_OTHERWISE: Final = {
    "an unknown compression": "UNKNOWN_SERVER_ERROR",
    "a transaction of nobody": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_the_connection_goes_on(
    name: str, cluster: Cluster, leader: wire.Connection, topic: str
) -> None:
    batch, error = BAD_BATCHES[name]
    if cluster.log is None and name in KAFKA_SAYS_OTHERWISE:
        pytest.skip(f"Apache Kafka says {KAFKA_SAYS_OTHERWISE[name]}")

    refused = wire.produce(leader, topic, batch)
    taken = wire.produce(leader, topic, ONE)

    assert refused.error == error
    assert taken == wire.Produced(error=0, base_offset=0)


@pytest.mark.serial
def test_five_hundred_silent_connections_cost_little(cluster: Cluster, address: str) -> None:
    with ExitStack() as stack, memory_within(cluster, 20 * MIB):
        connections = [stack.enter_context(wire.Connection(address)) for _ in range(500)]

        with wire.Connection(address) as one_more:
            assert one_more.ask(wire.API_VERSIONS, 0, b"").int16() == 0
        assert connections[0].ask(wire.API_VERSIONS, 0, b"").int16() == 0


@pytest.mark.serial
def test_requests_that_are_begun_and_never_ended_cost_bounded_memory(
    cluster: Cluster, leader: wire.Connection, topic: str
) -> None:
    begun = struct.pack(">i", REQUEST_BYTES_MAX) + bytes(8 * MIB)
    with ExitStack() as stack, memory_within(cluster, 200 * MIB):
        for _ in range(60):
            connection = stack.enter_context(wire.Connection(address_of(leader)))
            send_what_is_taken(connection.socket, begun)

        assert wire.produce(leader, topic, LARGE).error == 0


@pytest.mark.serial
def test_a_reader_that_takes_no_answers_costs_bounded_memory(
    cluster: Cluster, stock: Librdkafka, leader: wire.Connection, topic: str
) -> None:
    # More than brokers keep in memory for readers at the end: answers are made from the files.
    for _ in range(40):
        assert wire.produce(leader, topic, LARGE).error == 0
    asked = b"".join(wire.frame(wire.FETCH, 4, wire.fetch_body(topic, 0)) for _ in range(50))

    with ExitStack() as stack, memory_within(cluster, 200 * MIB):
        for _ in range(40):
            stack.enter_context(wire.Connection(address_of(leader))).socket.sendall(asked)

        # Time enough for the answers to be made.
        for _ in range(300):
            assert wire.produce(leader, topic, ONE).error == 0
        assert len(stock.read(topic, Beginning(), 300)) == 300


@contextmanager
def memory_within(cluster: Cluster, bytes_max: int) -> Iterator[None]:
    """No broker of ours grows by more than `bytes_max` in the block."""
    if not cluster.pids:
        pytest.skip("the processes are not ours to look into, and would suffer")
    brokers = [psutil.Process(pid) for pid in cluster.pids.values()]
    before = [broker.memory_info().rss for broker in brokers]
    yield
    grown = [broker.memory_info().rss - was for broker, was in zip(brokers, before, strict=True)]
    assert all(growth <= bytes_max for growth in grown), grown


def address_of(connection: wire.Connection) -> str:
    host, port = connection.socket.getpeername()
    return f"{host}:{port}"


def send_what_is_taken(connection: socket.socket, octets: bytes) -> None:
    """Until the broker stops reading for a while."""
    connection.settimeout(0.05)
    view = memoryview(octets)
    try:
        while view:
            view = view[connection.send(view) :]
    except TimeoutError:
        return
