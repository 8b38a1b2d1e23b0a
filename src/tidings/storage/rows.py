"""The rows of a segment's index file: one per entry, in the order of their indexes, 64 bytes each, little
endian.

     0 index u64               32 max timestamp i64, -1: none      52 kind u8
     8 term u64                40 record count u32                 53 zeros
    16 base offset u64         44 payload bytes u32                60 CRC-32C u32 of bytes 0 to 60
    24 position u64            48 payload CRC-32C u32

A payload stands at `position` of the segment's .log file if its kind is RECORDS, else of its .control file.
Indexes have no holes, so the row of an index is found by arithmetic; the row of an offset by halving.

The one rule: a row is data, not a cache: where term starts and memberships stood is written nowhere else.
Tests: tests/storage/test_rows.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import google_crc32c

from tidings.raft.entries import Entry, EntryKind
from tidings.storage.errors import Damaged

ROW_BYTES = 64
_FIELDS = struct.Struct("<QQQQqIIIB7x")
_CRC = struct.Struct("<I")
_CRC_AT = _FIELDS.size
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_AT = 35  # in a record batch of format 2, see protocol/records.py
NO_TIMESTAMP = -1

assert _FIELDS.size + _CRC.size == ROW_BYTES


@dataclass(slots=True)
class Row:
    """One row as it was read."""

    index: int
    term: int
    base_offset: int
    position: int
    max_timestamp: int
    record_count: int
    payload_bytes: int
    payload_crc: int
    kind: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.record_count

    @property
    def end(self) -> int:
        return self.position + self.payload_bytes


def max_timestamp(entry: Entry) -> int:
    if entry.kind != EntryKind.RECORDS or len(entry.payload) < _MAX_TIMESTAMP_AT + 8:
        return NO_TIMESTAMP
    found: int = _MAX_TIMESTAMP.unpack_from(entry.payload, _MAX_TIMESTAMP_AT)[0]
    return found


def encode_row(entry: Entry, position: int, timestamp: int) -> bytes:
    payload = entry.payload
    fields = _FIELDS.pack(
        entry.index,
        entry.term,
        entry.base_offset,
        position,
        timestamp,
        entry.record_count,
        len(payload),
        google_crc32c.value(payload),
        entry.kind,
    )
    return fields + _CRC.pack(google_crc32c.value(fields))


def decode_row(content: bytes, at: int = 0) -> Row:
    """Raises Damaged where the row's CRC is wrong or the row is not whole."""
    fields = content[at : at + _CRC_AT]
    if len(content) < at + ROW_BYTES or _CRC.unpack_from(content, at + _CRC_AT)[0] != google_crc32c.value(
        fields
    ):
        raise Damaged("a row of the index is damaged", place=at // ROW_BYTES)
    return Row(*_FIELDS.unpack(fields))


def decode_rows(content: bytes) -> Iterator[Row]:
    for at in range(0, len(content), ROW_BYTES):
        yield decode_row(content, at)
