"""The record batch, format 2: its header, the checks of what producers send, and what a broker writes.

     0 base offset i64             23 last offset delta i32     all big endian; attributes by bit:
     8 length i32 (what follows)   27 base timestamp i64            0-2 compression
    12 leader epoch i32            35 max timestamp i64             3 log append time
    16 magic i8 = 2                43 producer id i64               4 transactional
    17 CRC-32C u32 (21 to end)     51 producer epoch i16            5 control
    21 attributes i16              53 base sequence i32             6 delete horizon
                                   57 record count i32
                                   61 records

The one rule: a batch is opaque. Only base offset and leader epoch are ever written (both outside the CRC),
and on topics of log append time its bit, the maximum timestamp and with them the CRC.
It must not know what a record looks like (record_codec.py), nor decompress.
Tests: tests/protocol/test_records.py; benchmark: bench/records.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import google_crc32c

from tidings.protocol.compression import Compression
from tidings.protocol.errors import ErrorCode, ProtocolError

MAGIC = 2
HEADER_BYTES = 61
LENGTH_END = 12  # the length field counts the bytes behind itself
CRC_POSITION = 17
CRC_START = 21  # the CRC covers everything from here on
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
SEQUENCE_COUNT = 1 << 31  # sequences run from 0 to 2^31-1 and then start again at 0

HEADER = struct.Struct(">qiibIhiqqqhii")
CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">i")
_STAMP = struct.Struct(">qii")  # base offset, length, leader epoch: bytes 0 to 16
_BEFORE_CRC = struct.Struct(">qiibI")  # bytes 0 to 21
_TIMES = struct.Struct(">hiqq")  # attributes, last offset delta, base and max timestamp: bytes 21 to 43
_MAGIC_POSITION = 16
_TIMES_END = 43
_LENGTH_MIN = HEADER_BYTES - LENGTH_END
_ZSTD_PRODUCE_VERSION = 7  # KIP-110: older consumers of older brokers could not know the codec


class BatchError(Exception):
    """A produced batch is refused: its producer gets the code, and the message where the version has room."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class BatchHeader:
    """One batch's header, never changed after it was read (not frozen: made per batch, on the hot path)."""

    base_offset: int
    batch_bytes: int  # of the whole batch, the 12 bytes before the length's count included
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; after 2^31-1 comes 0. -1 where the batch has no sequences."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_COUNT

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0


@dataclass(slots=True)
class CheckedBatch:
    """A produced batch that passed every check which needs no decompression; `view` is exactly the batch."""

    header: BatchHeader
    view: memoryview


def read_header(batch: bytes | memoryview, position: int = 0) -> BatchHeader:
    """The header that starts at `position`, unchecked but for its size: its reader judges what it says."""
    if len(batch) - position < HEADER_BYTES:
        raise ProtocolError("a batch header is cut short", left_bytes=len(batch) - position)
    base_offset, length, *rest = HEADER.unpack_from(batch, position)
    return BatchHeader(base_offset, length + LENGTH_END, *rest)


def check_produced(
    records: memoryview | bytes | None, *, batch_bytes_max: int, produce_version: int
) -> CheckedBatch:
    """The one batch a producer sent for a partition, or BatchError with Kafka's code for what is wrong."""
    if not records:
        raise BatchError(
            ErrorCode.INVALID_RECORD, "a produce request must hold one record batch per partition"
        )
    view = memoryview(records)
    header = _check_frame(view)
    if header.batch_bytes > batch_bytes_max:
        text = (
            f"the batch of {header.batch_bytes} bytes is larger than the topic's limit of {batch_bytes_max}"
        )
        raise BatchError(ErrorCode.MESSAGE_TOO_LARGE, text)
    if _crc32c(view[CRC_START:]) != header.crc:
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its CRC")
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        text = f"{header.record_count} records do not fit a last offset delta of {header.last_offset_delta}"
        raise BatchError(ErrorCode.INVALID_RECORD, text)
    _check_attributes(header, produce_version)
    if header.producer_id > NO_PRODUCER_ID:
        if header.base_sequence < 0 or header.producer_epoch < 0:
            numbers = f"epoch {header.producer_epoch} and sequence {header.base_sequence}"
            text = f"producer {header.producer_id} sent {numbers}, both must be 0 or more"
            raise BatchError(ErrorCode.INVALID_RECORD, text)
    elif header.attributes & TRANSACTIONAL_BIT:
        raise BatchError(ErrorCode.INVALID_RECORD, "a transactional batch must name its producer")
    return CheckedBatch(header, view)


def _check_frame(view: memoryview) -> BatchHeader:
    """Exactly one whole batch of format 2: the codes are those of Apache Kafka for the same bytes."""
    size = len(view)
    if size <= _MAGIC_POSITION:
        raise BatchError(ErrorCode.INVALID_RECORD, f"{size} bytes hold no record batch")
    magic = view[_MAGIC_POSITION]
    if magic < MAGIC:
        raise BatchError(
            ErrorCode.INVALID_RECORD, f"message format {magic} is no longer taken, only format {MAGIC}"
        )
    if magic > MAGIC:
        raise BatchError(
            ErrorCode.CORRUPT_MESSAGE, f"message format {magic} is unknown, only format {MAGIC} is taken"
        )
    if size < HEADER_BYTES:
        raise BatchError(ErrorCode.INVALID_RECORD, f"{size} bytes are no whole record batch")
    header = read_header(view)
    if header.batch_bytes != size:
        _refuse_length(header.batch_bytes, size)
    return header


def _refuse_length(batch_bytes: int, size: int) -> None:
    if batch_bytes < HEADER_BYTES:
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {batch_bytes} bytes cannot hold its header")
    if batch_bytes > size:
        raise BatchError(ErrorCode.INVALID_RECORD, f"the batch ends after {size} of {batch_bytes} bytes")
    text = f"{size - batch_bytes} bytes behind the batch: a partition takes exactly one batch per request"
    raise BatchError(ErrorCode.INVALID_RECORD, text)


def _check_attributes(header: BatchHeader, produce_version: int) -> None:
    attributes = header.attributes
    if attributes & (CONTROL_BIT | DELETE_HORIZON_BIT):
        raise BatchError(ErrorCode.INVALID_RECORD, "only brokers write control batches and delete horizons")
    if attributes & LOG_APPEND_TIME_BIT:
        raise BatchError(ErrorCode.INVALID_TIMESTAMP, "only brokers write log append times")
    compression = attributes & COMPRESSION_MASK
    if compression >= Compression.ZSTD:
        if compression > Compression.ZSTD:
            text = f"compression {compression} is unknown"
            raise BatchError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
        if produce_version < _ZSTD_PRODUCE_VERSION:
            text = f"zstd needs Produce version {_ZSTD_PRODUCE_VERSION}, this is {produce_version}"
            raise BatchError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)


def check_timestamps(header: BatchHeader, now_ms: int, before_max_ms: int, after_max_ms: int) -> None:
    """Refuse timestamps too far from the clock (KIP-937): the first and the newest, which the header names.

    For topics of create time only: on others what the producer wrote does not count.
    """
    for timestamp in (header.base_timestamp, header.max_timestamp):
        if timestamp == NO_TIMESTAMP:
            continue
        if now_ms - timestamp > before_max_ms or timestamp - now_ms > after_max_ms:
            text = f"timestamp {timestamp} is out of range: {now_ms} -{before_max_ms} +{after_max_ms} ms"
            raise BatchError(ErrorCode.INVALID_TIMESTAMP, text)


def stamp(batch: memoryview | bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with its place in the log: one copy, the CRC stays right."""
    start = _STAMP.pack(base_offset, len(batch) - LENGTH_END, leader_epoch)
    return b"".join((start, memoryview(batch)[_MAGIC_POSITION:]))


def stamp_append_time(batch: memoryview | bytes, base_offset: int, leader_epoch: int, now_ms: int) -> bytes:
    """The batch with its place in the log and the broker's time for all its records: a new CRC."""
    view = memoryview(batch)
    attributes, last_offset_delta, base_timestamp, _max_timestamp = _TIMES.unpack_from(view, CRC_START)
    times = _TIMES.pack(attributes | LOG_APPEND_TIME_BIT, last_offset_delta, base_timestamp, now_ms)
    rest = view[_TIMES_END:]
    crc = _crc32c(rest, google_crc32c.value(times))
    start = _BEFORE_CRC.pack(base_offset, len(view) - LENGTH_END, leader_epoch, MAGIC, crc)
    return b"".join((start, times, rest))


def split_batches(buffer: bytes | memoryview) -> list[memoryview]:
    """The whole batches that `buffer` is made of, without a copy; anything but whole batches is malformed."""
    view = memoryview(buffer)
    batches = []
    position = 0
    while position < len(view):
        left_bytes = len(view) - position
        if left_bytes < HEADER_BYTES:
            raise ProtocolError("a batch header is cut short", left_bytes=left_bytes)
        (length,) = _LENGTH.unpack_from(view, position + LENGTH_END - _LENGTH.size)
        if not _LENGTH_MIN <= length <= left_bytes - LENGTH_END:
            raise ProtocolError("a batch length does not fit", length=length, left_bytes=left_bytes)
        end = position + LENGTH_END + length
        batches.append(view[position:end])
        position = end
    return batches


def crc_is_right(batch: bytes | memoryview) -> bool:
    """Whether the bytes from the attributes on are those the CRC was made of."""
    if len(batch) < HEADER_BYTES:
        return False
    written_crc: int = CRC.unpack_from(batch, CRC_POSITION)[0]
    return _crc32c(memoryview(batch)[CRC_START:]) == written_crc


def _crc32c(view: memoryview, crc: int = 0) -> int:
    """CRC-32C of `view`, going on from `crc`. The library takes bytes only: the copy is half of the time."""
    extended: int = google_crc32c.extend(crc, bytes(view))
    return extended
