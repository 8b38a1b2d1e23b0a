"""The write-ahead log's bytes, little endian. CRCs are CRC-32C, those of headers salted with the folder's
uuid.

A file is a header, then flushes, then one end mark. Its first flush holds the state of every group.

    file header (64 bytes)                       flush header or mark (32 bytes)
     0 magic 8 bytes "TIDEWAL\\n"                  0 kind u32: FLUSH, END or SEALED
     8 format version u32                         4 CRC u32 of bytes 8 to 32, salted with the kind
    12 flags u32: NEW_CHAIN, OPENED               8 sequence u64: of this flush; of a mark: of the next flush
    16 file number u64                           16 CRC of the previous flush's header u32
    24 sequence of the first flush u64           20 CRC of the body u32; of a mark 0
    32 CRC of the previous flush's header u32    24 body bytes u64; of a mark 0
    36 CRC u32 of bytes 0 to 36
    40 zeros

    record (37 bytes, then its payload): group u32 | kind u8 | record count u32 | payload bytes u32
                                         | index u64 | term u64 | base offset u64
        kind 0-127    an entry of that kind
        HARD_STATE    base offset is the vote
        MARKS         record count is the marks
        STATE         as both, index is the last entry's, and the payload (u64) the last entry's term
        FORGOTTEN     the group was removed from this broker; what follows is of a new life of it

Every write carries an END mark behind its flush, which the next write covers with its header; a file that is
left gets its END replaced by SEALED once the next file's first flush is durable. So a clean end is a valid
mark, never silence: zeros, an older use of the file, or a lost page are told apart from it.

The one rule: only layout here; what it means is in wal.py and wal_reader.py.
Tests: tests/storage/test_wal_reader.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntFlag

import google_crc32c

from tidings.raft.entries import HardState

FORMAT_VERSION = 1
FILE_MAGIC = b"TIDEWAL\n"
FILE_HEADER_BYTES = 64
FILE_HEADER = struct.Struct("<8sIIQQI")
NEW_CHAIN = 1  # what came before was damaged and judged: the sequence goes on behind a gap
OPENED = 2  # the first file of a process: a start mark before it that was not carried out never will be

HEADER = struct.Struct("<IIQIIQ")
HEADER_BYTES = HEADER.size
HEADER_START = struct.Struct("<II")
HEADER_REST = struct.Struct("<QIIQ")
FLUSH = 0x48534C46
END = 0x20444E45
SEALED = 0x4C414553
FLUSH_MAGIC = FLUSH.to_bytes(4, "little")

RECORD = struct.Struct("<IBIIQQQ")
RECORD_BYTES = RECORD.size
ENTRY_KINDS_BELOW = 128
HARD_STATE = 128
MARKS = 129
STATE = 130
FORGOTTEN = 131
LAST_TERM = struct.Struct("<Q")
_CRC = struct.Struct("<I")

WAL_SUFFIX = ".wal"
SPARE_PREFIX = "spare-"


class Mark(IntFlag):
    """What a restart must not forget about a group."""

    NONE = 0
    DOUBTFUL = 1  # a torn tail was cut that may have held promises of this group
    DAMAGED = 2
    VOTE_LOST = 4  # it may have voted in a term that it does not remember


@dataclass(slots=True)
class LastEntry:
    """Where a group's log ends in the write-ahead log."""

    index: int
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """The first bytes of a file."""

    version: int
    flags: int
    number: int
    first_sequence: int
    previous_crc: int

    def encode(self, salt: Salt) -> bytes:
        fields = FILE_HEADER.pack(
            FILE_MAGIC, self.version, self.flags, self.number, self.first_sequence, self.previous_crc
        )
        crc = _CRC.pack(google_crc32c.extend(salt.file, fields))
        return (fields + crc).ljust(FILE_HEADER_BYTES, b"\0")


def decode_file_header(content: bytes, salt: Salt) -> FileHeader | None:
    """The header, or None if it is not one of this folder."""
    if len(content) < FILE_HEADER_BYTES:
        return None
    fields, crc = content[: FILE_HEADER.size], content[FILE_HEADER.size : FILE_HEADER.size + 4]
    if fields[:8] != FILE_MAGIC or crc != _CRC.pack(google_crc32c.extend(salt.file, fields)):
        return None
    _, version, flags, number, first_sequence, previous_crc = FILE_HEADER.unpack(fields)
    return FileHeader(
        version=version,
        flags=flags,
        number=number,
        first_sequence=first_sequence,
        previous_crc=previous_crc,
    )


class Salt:
    """The CRC seeds of one folder: a header that a client hid in its payload, or one from another folder,
    fits none."""

    __slots__ = ("file", "kinds")

    def __init__(self, salt: bytes) -> None:
        self.file = google_crc32c.value(salt + FILE_MAGIC)
        self.kinds = {
            kind: google_crc32c.value(salt + kind.to_bytes(4, "little")) for kind in (FLUSH, END, SEALED)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A flush header or a mark that has the right CRC."""

    kind: int
    crc: int
    sequence: int
    previous_crc: int
    body_crc: int
    body_bytes: int


def encode_mark(kind: int, sequence: int, previous_crc: int, salt: Salt) -> bytes:
    crc: int = google_crc32c.extend(salt.kinds[kind], HEADER_REST.pack(sequence, previous_crc, 0, 0))
    return HEADER.pack(kind, crc, sequence, previous_crc, 0, 0)


def decode_header(content: bytes, salt: Salt) -> Header | None:
    """The header or mark, or None if these bytes are none of this folder."""
    if len(content) < HEADER_BYTES:
        return None
    kind, crc, sequence, previous_crc, body_crc, body_bytes = HEADER.unpack_from(content)
    seed = salt.kinds.get(kind)
    if seed is None or crc != google_crc32c.extend(seed, content[8:HEADER_BYTES]):
        return None
    return Header(
        kind=kind,
        crc=crc,
        sequence=sequence,
        previous_crc=previous_crc,
        body_crc=body_crc,
        body_bytes=body_bytes,
    )


def file_name(number: int) -> str:
    return f"{number:020d}{WAL_SUFFIX}"


@dataclass(slots=True, kw_only=True)
class HeldFile:
    """An older file and what of each group it still holds."""

    number: int
    file_bytes: int
    last_index: dict[int, int]  # group -> the highest index in this file that no later file replaced


@dataclass(slots=True, kw_only=True)
class WalStart:
    """Where a writer goes on: what recovery read, or nothing at all in a blank folder."""

    file_number: int = 1
    sequence: int = 1
    previous_crc: int = 0
    is_new_chain: bool = False
    older: list[HeldFile] = field(default_factory=list)
    hard_states: dict[int, HardState] = field(default_factory=dict)
    marks: dict[int, Mark] = field(default_factory=dict)
    last: dict[int, LastEntry] = field(default_factory=dict)
    seal_file: int = 0  # the file with the last flush, and
    seal_position: int = 0  # where that flush ends; 0: there is none, or the chain is broken


def supersede(older: list[HeldFile], group: int, index: int) -> None:
    """`index` is written again: from it on, what older files hold of the group is no longer needed."""
    for file in older:
        held = file.last_index.get(group)
        if held is not None and held >= index:
            file.last_index[group] = index - 1
