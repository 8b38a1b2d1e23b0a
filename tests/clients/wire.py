"""Wire: requests made by hand, byte by byte, and as much of the answers as a test asks about.

The one rule: nothing of Tidings and nothing of a client is used, so that a mistake of theirs shows. Must not
know: what is right to answer. Only versions without compact lengths: Metadata 4, Produce 7, Fetch 4.

    frame    length i32 | api key i16 | api version i16 | correlation id i32 | client id (i16 length) | body
    batch    base offset i64 | length i32 | leader epoch i32 | magic i8 | crc u32 | attributes i16 |
             last offset delta i32 | first time i64 | newest time i64 |
             producer id i64 | producer epoch i16 | first sequence i32 | count i32
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import google_crc32c

from tests.clients.deadline import Deadline
from tests.clients.witness import ANSWER_S_MAX, COMPRESSIONS

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
JOIN_GROUP: Final = 11
API_VERSIONS: Final = 18
INIT_PRODUCER_ID: Final = 22
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
BATCH_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_OFFSET: Final = 17
CRC_COVERS_FROM: Final = 21
LENGTH_COUNTS_FROM: Final = 12
FETCH_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The header fields that tests look at."""

    base_offset: int
    leader_epoch: int
    compression: str
    producer_id: int
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """What a produce request was answered, for its one partition."""

    error: int
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch request was answered, for its one partition."""

    error: int
    high_watermark: int
    records: bytes


class Hung(Exception):
    """The broker closed the connection."""


class Connection:
    """A socket that speaks in frames. Use it in a `with` block."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_S_MAX)
        self._sent = 0
        self._answered = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, api_key: int, version: int, body: bytes) -> Fields:
        """Sends a request and returns its answer's body."""
        self.send(api_key, version, body)
        return self.answer()

    def send(self, api_key: int, version: int, body: bytes) -> int:
        """Sends a request without waiting; its number."""
        self._sent += 1
        self.socket.sendall(frame(api_key, version, body, correlation=self._sent))
        return self._sent

    def answer(self) -> Fields:
        """The answer to the oldest request that has none yet."""
        self._answered += 1
        answer = self.read()
        assert answer.int32() == self._answered, "answers come in the order of the requests"
        return answer

    def read(self) -> Fields:
        """The next frame; Hung where the broker closed instead."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return Fields(self._exactly(length))

    def is_closed(self) -> bool:
        """Waits for the broker to close; whatever it still says before that is skipped."""
        deadline = Deadline(ANSWER_S_MAX, "the broker closing the connection")
        while True:
            self.socket.settimeout(deadline.left_s())
            try:
                if not self.socket.recv(65_536):
                    return True
            except ConnectionError:
                return True
            except TimeoutError:
                return False

    def _exactly(self, count: int) -> bytes:
        parts = bytearray()
        deadline = Deadline(ANSWER_S_MAX, "the broker's answer")
        while len(parts) < count:
            self.socket.settimeout(deadline.left_s())
            try:
                part = self.socket.recv(min(count - len(parts), 1 << 20))
            except ConnectionError as error:
                raise Hung("reset by the broker") from error
            if not part:
                raise Hung("closed by the broker")
            parts += part
        return bytes(parts)


class Fields:
    """Reads an answer from front to back."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._at = 0

    def _take(self, kind: str) -> int:
        (value,) = struct.unpack_from(f">{kind}", self._answer, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(value)

    def int8(self) -> int:
        return self._take("b")

    def int16(self) -> int:
        return self._take("h")

    def int32(self) -> int:
        return self._take("i")

    def int64(self) -> int:
        return self._take("q")

    def text(self) -> str:
        return self._bytes(self.int16()).decode()

    def octets(self) -> bytes:
        return self._bytes(self.int32())

    def numbers(self) -> list[int]:
        return [self.int32() for _ in self.count()]

    def count(self) -> range:
        """An array's length, to loop over; null is none."""
        return range(max(self.int32(), 0))

    def rest(self) -> bytes:
        return self._answer[self._at :]

    def _bytes(self, count: int) -> bytes:
        self._at += max(count, 0)
        return self._answer[self._at - max(count, 0) : self._at]


def frame(api_key: int, version: int, body: bytes, *, correlation: int = 1) -> bytes:
    request = struct.pack(">hhi", api_key, version, correlation) + text("wire") + body
    return struct.pack(">i", len(request)) + request


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def record(value: bytes, *, offset_delta: int = 0) -> bytes:
    """A record without key and headers, at the batch's first time; lengths are zigzag varints."""
    body = b"\0" + varint(0) + varint(offset_delta) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    parts = bytearray()
    while zigzag > 0x7F:
        parts.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    parts.append(zigzag)
    return bytes(parts)


def batch(
    values: Sequence[bytes],
    *,
    magic: int = 2,
    attributes: int = 0,
    producer: tuple[int, int] = (-1, -1),
    first_sequence: int = -1,
    time_ms: int = 0,
    count: int | None = None,
) -> bytes:
    """A record batch as a producer makes it; the CRC is right for whatever it holds. `count` is a lie."""
    records = b"".join(record(value, offset_delta=number) for number, value in enumerate(values))
    length = BATCH_HEADER.size - LENGTH_COUNTS_FROM + len(records)
    header = bytearray(
        BATCH_HEADER.pack(
            *(0, length, -1, magic, 0, attributes, len(values) - 1, time_ms, time_ms),
            *(*producer, first_sequence, len(values) if count is None else count),
        )
    )
    crc = google_crc32c.value(bytes(header[CRC_COVERS_FROM:]) + records)
    struct.pack_into(">I", header, CRC_OFFSET, crc)
    return bytes(header) + records


def produce_body(topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> bytes:
    """Produce 3 to 8."""
    data = struct.pack(">ii", partition, len(records)) + records
    return (
        struct.pack(">hhi", -1, acks, 30_000)
        + struct.pack(">i", 1)
        + text(topic)
        + struct.pack(">i", 1)
        + data
    )


def produce(connection: Connection, topic: str, records: bytes, *, partition: int = 0) -> Produced:
    answer = connection.ask(PRODUCE, 7, produce_body(topic, records, partition=partition))
    return produced(answer)


def produced(answer: Fields) -> Produced:
    """Produce 7's answer: topics of partitions of (number, error, base offset, ...)."""
    assert len(answer.count()) == 1
    answer.text()
    assert len(answer.count()) == 1
    answer.int32()
    return Produced(error=answer.int16(), base_offset=answer.int64())


def fetch_body(topic: str, offset: int, *, partition: int = 0, wait_ms: int = 0, bytes_min: int = 1) -> bytes:
    """Fetch 4: replica, longest wait, fewest and most bytes, isolation, topics."""
    head = struct.pack(">iiiib", -1, wait_ms, bytes_min, FETCH_BYTES_MAX, 0)
    place = struct.pack(">iqi", partition, offset, FETCH_BYTES_MAX)
    return head + struct.pack(">i", 1) + text(topic) + struct.pack(">i", 1) + place


def fetch(connection: Connection, topic: str, offset: int) -> Fetched:
    return fetched(connection.ask(FETCH, 4, fetch_body(topic, offset)))


def fetched(answer: Fields) -> Fetched:
    """Fetch 4's answer: topics of partitions of (number, error, high watermark, stable, aborted, records)."""
    answer.int32()
    assert len(answer.count()) == 1
    answer.text()
    assert len(answer.count()) == 1
    answer.int32()
    error, high_watermark, _ = answer.int16(), answer.int64(), answer.int64()
    for _ in answer.count():
        answer.int64(), answer.int64()
    return Fetched(error=error, high_watermark=high_watermark, records=answer.octets())


def init_producer_id(connection: Connection) -> tuple[int, int]:
    """The number and epoch for a new idempotent producer. Asked again while a broker has no numbers yet."""
    deadline = Deadline(ANSWER_S_MAX, "a producer id")
    while True:
        answer = connection.ask(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 30_000))
        answer.int32()
        error, number, epoch = answer.int16(), answer.int64(), answer.int16()
        if error == 0:
            return number, epoch
        assert error == COORDINATOR_LOAD_IN_PROGRESS, error
        deadline.left_s()


def api_keys(address: str) -> set[int]:
    """The APIs that a broker says it serves."""
    with Connection(address) as connection:
        answer = connection.ask(API_VERSIONS, 0, b"")
    assert answer.int16() == 0
    return {api_versions_row(answer)[0] for _ in answer.count()}


def api_versions_row(answer: Fields) -> tuple[int, int, int]:
    """ApiVersions 0: key, lowest and highest version."""
    return answer.int16(), answer.int16(), answer.int16()


def leaders(address: str, topic: str) -> list[int]:
    """The leader of each partition as this broker knows them, -1 for none; empty for an unknown topic."""
    return [leader for _, leader in sorted(_metadata(address, topic).leaders.items())]


def leader_address(addresses: Sequence[str], topic: str, partition: int = 0) -> str:
    found = _metadata(addresses[0], topic)
    return found.addresses[found.leaders[partition]]


def batches(addresses: Sequence[str], topic: str) -> list[Batch]:
    """The headers of all batches of partition 0, as its leader sends them."""
    with Connection(leader_address(addresses, topic)) as connection:
        answer = fetch(connection, topic, 0)
    assert answer.error == 0, answer
    return list(_headers(answer.records))


def compressions(addresses: Sequence[str], topic: str) -> set[str]:
    return {each.compression for each in batches(addresses, topic)}


def _headers(records: bytes) -> Iterator[Batch]:
    at = 0
    while at + BATCH_HEADER.size <= len(records):
        fields = BATCH_HEADER.unpack_from(records, at)
        base, length, epoch, _, _, attributes, *_, producer, _, _, count = fields
        yield Batch(
            base_offset=base,
            leader_epoch=epoch,
            compression=COMPRESSIONS[attributes & 7],
            producer_id=producer,
            record_count=count,
        )
        at += LENGTH_COUNTS_FROM + length


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    addresses: dict[int, str]
    leaders: dict[int, int]


def _metadata(address: str, topic: str) -> _Metadata:
    """Metadata 4 for one topic, the first version that can ask without creating it."""
    with Connection(address) as connection:
        answer = connection.ask(METADATA, 4, struct.pack(">i", 1) + text(topic) + b"\0")
    answer.int32()
    addresses: dict[int, str] = {}
    for _ in answer.count():
        broker, host, port = answer.int32(), answer.text(), answer.int32()
        addresses[broker] = f"{host}:{port}"
        answer.text()
    answer.text(), answer.int32()
    found: dict[int, int] = {}
    for _ in answer.count():
        answer.int16(), answer.text(), answer.int8()
        for _ in answer.count():
            answer.int16()
            partition, leader = answer.int32(), answer.int32()
            found[partition] = leader
            answer.numbers(), answer.numbers()
    return _Metadata(addresses=addresses, leaders=found)
