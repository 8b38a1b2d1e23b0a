"""The records inside a batch: reading them one by one, finding one by its time, and writing a batch.

    record: length | attributes i8 = 0 | timestamp delta | offset delta |
            key length (-1: null), key | value length (-1: null), value | header count,
            then per header: name length, name | value length (-1: null), value

All numbers but the attributes are zigzag varints. Timestamps count from the batch's base timestamp, offsets
from its base offset; with log append time every record has the batch's maximum timestamp.

The one rule: what a producer wrote is a stranger's. Reading it ends in records or in ProtocolError, and
decompresses no more than it is told. It must not know where batches come from. A broker reads records only
where it must (a search by time); writing is for its own topics, for tools and for tests.
Tests: tests/protocol/test_record_codec.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import google_crc32c

from tidings.protocol.compression import Compression, compress, decompress
from tidings.protocol.errors import ProtocolError
from tidings.protocol.records import (
    CONTROL_BIT,
    CRC,
    CRC_POSITION,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_ID,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)

_NO_EPOCH = -1
_NO_SEQUENCE = -1
_I64_MIN, _I64_MAX = -(2**63), 2**63 - 1
_HEADER_BYTES_MIN = 2  # of a record's header: two lengths


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """A name and a value beside a record. Bytes of the name that are no UTF-8 survive as lone surrogates."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its place and time spelled out."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


def decode_records(batch: bytes | memoryview, *, decoded_bytes_max: int) -> Iterator[Record]:
    """The records of one whole batch in their order. Its CRC is not looked at."""
    header = read_header(batch)
    cursor = _Cursor(_payload(batch, header, decoded_bytes_max))
    for place in _walk(cursor, header):
        yield _decode_rest(cursor, place)


def find_timestamp(batch: bytes | memoryview, timestamp: int, *, decoded_bytes_max: int) -> Record | None:
    """The first record of `timestamp` or later."""
    header = read_header(batch)
    cursor = _Cursor(_payload(batch, header, decoded_bytes_max))
    for place in _walk(cursor, header):
        if place.timestamp >= timestamp:
            return _decode_rest(cursor, place)
    return None


def max_timestamp_record(batch: bytes | memoryview, *, decoded_bytes_max: int) -> Record | None:
    """The first record that holds the greatest timestamp; None where compaction left no record."""
    header = read_header(batch)
    cursor = _Cursor(_payload(batch, header, decoded_bytes_max))
    newest: _Place | None = None
    for place in _walk(cursor, header):
        if newest is None or place.timestamp > newest.timestamp:
            newest = place
    return None if newest is None else _decode_rest(cursor, newest)


def encode_batch(
    records: Sequence[Record],
    *,
    base_timestamp: int | None = None,
    compression: int = Compression.NONE,
    leader_epoch: int = _NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = _NO_EPOCH,
    base_sequence: int = _NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """One batch of at least one record. Its base offset and time are the first record's."""
    assert records, "a batch has at least one record"
    base_offset = records[0].offset
    if base_timestamp is None:
        base_timestamp = records[0].timestamp
    attributes = compression
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT

    plain = bytearray()
    for record in records:
        _append_record(plain, record, record.offset - base_offset, record.timestamp - base_timestamp)
    payload = compress(compression, bytes(plain))
    header = HEADER.pack(
        base_offset,
        HEADER_BYTES - LENGTH_END + len(payload),
        leader_epoch,
        MAGIC,
        0,  # the CRC, of what follows it
        attributes,
        records[-1].offset - base_offset,
        base_timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    crc = google_crc32c.extend(google_crc32c.value(header[CRC_START:]), payload)
    return b"".join((header[:CRC_POSITION], CRC.pack(crc), header[CRC_START:], payload))


def _append_record(payload: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    body = bytearray(1)  # attributes: none are in use
    append_varint(body, timestamp_delta)
    append_varint(body, offset_delta)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    append_varint(body, len(record.headers))
    for header in record.headers:
        _append_bytes(body, header.key.encode("utf-8", "surrogateescape"))
        _append_bytes(body, header.value)
    append_varint(payload, len(body))
    payload += body


def _append_bytes(body: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(body, -1)
        return
    append_varint(body, len(value))
    body += value


def append_varint(buffer: bytearray, number: int) -> None:
    """Append `number`, of at most 64 bits, as a zigzag varint: 0, -1, 1, -2 become 0, 1, 2, 3."""
    assert _I64_MIN <= number <= _I64_MAX, number
    rest = (number << 1) ^ (number >> 63)
    while rest > 0x7F:
        buffer.append(rest & 0x7F | 0x80)
        rest >>= 7
    buffer.append(rest)


class _Cursor:
    """A place in decompressed records, which moves on with every number read."""

    __slots__ = ("payload", "position")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.position = 0

    def varint(self, bits: int = 32) -> int:
        """A zigzag varint of at most `bits` bits."""
        payload = self.payload
        position = self.position
        number = shift = 0
        try:
            while (byte := payload[position]) > 0x7F:
                number |= (byte & 0x7F) << shift
                shift += 7
                position += 1
                if shift >= bits:
                    raise ProtocolError("a varint is too long", position=self.position)
        except IndexError:
            raise ProtocolError("a record ends within a number", position=self.position) from None
        number |= byte << shift
        if number >> bits:
            raise ProtocolError("a varint is too large", position=self.position)
        self.position = position + 1
        return (number >> 1) ^ -(number & 1)

    def nullable_bytes(self, end: int) -> bytes | None:
        """A length and as many bytes, before `end`; None for length -1."""
        length = self.varint()
        if length == -1:
            return None
        start = self.position
        if not 0 <= length <= end - start:
            raise ProtocolError("a length does not fit its record", length=length, left_bytes=end - start)
        self.position = start + length
        return self.payload[start : start + length]


@dataclass(slots=True)
class _Place:
    """A record whose first numbers are read: the rest of it is from `rest` to `end`."""

    offset: int
    timestamp: int
    rest: int
    end: int


def _payload(batch: bytes | memoryview, header: BatchHeader, decoded_bytes_max: int) -> bytes:
    if header.magic != MAGIC:
        raise ProtocolError("the batch's format is unknown", magic=header.magic)
    if header.batch_bytes != len(batch):
        raise ProtocolError("the bytes are not one batch", batch_bytes=header.batch_bytes, size=len(batch))
    payload = memoryview(batch)[HEADER_BYTES:]
    return decompress(header.compression, payload, decoded_bytes_max=decoded_bytes_max)


def _walk(cursor: _Cursor, header: BatchHeader) -> Iterator[_Place]:
    """The places of all records. Between two of them the cursor may be moved at will."""
    payload_bytes = len(cursor.payload)
    last_offset_delta = -1
    for _ in range(header.record_count):
        length = cursor.varint()
        end = cursor.position + length
        if length <= 0 or end > payload_bytes:
            raise ProtocolError("a record's length does not fit", length=length, position=cursor.position)
        cursor.position += 1  # the attributes, of which none are in use
        timestamp = header.base_timestamp + cursor.varint(64)
        offset_delta = cursor.varint()
        if not last_offset_delta < offset_delta <= header.last_offset_delta:
            raise ProtocolError("a record's offset is out of order", offset_delta=offset_delta)
        if header.is_log_append_time:
            timestamp = header.max_timestamp
        elif not _I64_MIN <= timestamp <= _I64_MAX:
            raise ProtocolError("a record's timestamp is out of range", timestamp=timestamp)
        if cursor.position > end:
            raise ProtocolError("a record is shorter than its numbers", length=length, position=end)
        yield _Place(header.base_offset + offset_delta, timestamp, cursor.position, end)
        last_offset_delta = offset_delta
        cursor.position = end
    if cursor.position != payload_bytes:
        raise ProtocolError("bytes behind the last record", left_bytes=payload_bytes - cursor.position)


def _decode_rest(cursor: _Cursor, place: _Place) -> Record:
    end = place.end
    cursor.position = place.rest
    key = cursor.nullable_bytes(end)
    value = cursor.nullable_bytes(end)
    header_count = cursor.varint()
    if not 0 <= header_count <= (end - cursor.position) // _HEADER_BYTES_MIN:
        raise ProtocolError("a record's header count does not fit", header_count=header_count)
    headers = []
    for _ in range(header_count):
        name = cursor.nullable_bytes(end)
        if name is None:
            raise ProtocolError("a record's header has no name", position=cursor.position)
        headers.append(RecordHeader(name.decode("utf-8", "surrogateescape"), cursor.nullable_bytes(end)))
    if cursor.position != end:
        raise ProtocolError("a record's length is wrong", left_bytes=end - cursor.position)
    return Record(place.offset, place.timestamp, key, value, tuple(headers))
