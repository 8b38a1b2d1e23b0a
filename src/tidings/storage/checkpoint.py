"""A group's checkpoint: all that is needed at one index, so that a start reads neither history nor old log
files.

Little endian, CRC-32C:

     0 magic 8 bytes "TIDECKP\\n"     8 format version u32     12 CRC u32 of the version and what follows
    16 group u32
    20 index, term, offset, log start offset, log start's index, term and offset, reset sequence: u64 each
    84 bytes of membership, count of terms, count of segments, bytes of title: u32 each; bytes of state u64
   108 membership | terms (term, index, offset: u64) | segments (SegmentView: 64 bits each) | title | state

Recovery cuts the segment files back to the sizes in here; what was written behind them is in the write-ahead
log.

The one rule: the file is replaced in one step and only after everything it speaks of was synced.
It must not know what `state` means. Tests: tests/storage/test_checkpoint.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import google_crc32c

from tidings.raft.entries import Membership, StartState, TermStart
from tidings.storage.errors import Damaged, FormatTooNew
from tidings.storage.files import Files, read_whole, write_whole

CHECKPOINT_NAME = "checkpoint"
FORMAT_VERSION = 1
_MAGIC = b"TIDECKP\n"
_FRAME = struct.Struct("<8sII")
_HEAD = struct.Struct("<I8QIIIIQ")
_TERM = struct.Struct("<QQQ")
_SEGMENT = struct.Struct("<QQQQQqqQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """The entry before the first one that is kept; the offset is that of the first record kept."""

    index: int
    term: int
    offset: int


@dataclass(slots=True)
class SegmentView:
    """A segment as far as it is written. Never changed after it was made (not frozen: made per append)."""

    base_offset: int
    first_index: int
    row_count: int
    log_bytes: int
    control_bytes: int
    first_timestamp: int  # of the first batch, -1: none; what the age of a segment is counted from
    max_timestamp: int  # of all batches, -1: none
    next_offset: int
    last_term: int

    @property
    def next_index(self) -> int:
        return self.first_index + self.row_count

    @property
    def size_bytes(self) -> int:
        return self.log_bytes

    @property
    def stem(self) -> str:
        """What the names of the segment's files begin with."""
        return f"{self.base_offset:020d}-{self.first_index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One group at index `start.index`."""

    group: int
    start: StartState
    log_start: LogStart
    segments: tuple[SegmentView, ...] = ()
    reset_sequence: int = 0  # of the newest flush with a start mark that was carried out
    title: str = ""  # topic and partition, for people


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    start = checkpoint.start
    log_start = checkpoint.log_start
    membership = start.membership.encode()
    title = checkpoint.title.encode()
    body = b"".join(
        (
            _HEAD.pack(
                checkpoint.group,
                start.index,
                start.term,
                start.offset,
                start.log_start_offset,
                log_start.index,
                log_start.term,
                log_start.offset,
                checkpoint.reset_sequence,
                len(membership),
                len(start.terms),
                len(checkpoint.segments),
                len(title),
                len(start.state),
            ),
            membership,
            *(_TERM.pack(term.term, term.index, term.offset) for term in start.terms),
            *map(_encode_segment, checkpoint.segments),
            title,
            start.state,
        )
    )
    return _FRAME.pack(_MAGIC, FORMAT_VERSION, _crc(FORMAT_VERSION, body)) + body


def decode_checkpoint(content: bytes, path: str) -> Checkpoint:
    """Raises Damaged, or FormatTooNew where the bytes are intact but of a later program."""
    if len(content) < _FRAME.size:
        raise Damaged("the checkpoint is cut short", path=path)
    magic, version, crc = _FRAME.unpack_from(content)
    body = content[_FRAME.size :]
    if magic != _MAGIC or crc != _crc(version, body):
        raise Damaged("the checkpoint's CRC is wrong", path=path)
    if version > FORMAT_VERSION:
        raise FormatTooNew(path, version, FORMAT_VERSION)
    (
        group,
        index,
        term,
        offset,
        log_start_offset,
        start_index,
        start_term,
        start_offset,
        reset_sequence,
        membership_bytes,
        term_count,
        segment_count,
        title_bytes,
        state_bytes,
    ) = _HEAD.unpack_from(body)
    at_terms = _HEAD.size + membership_bytes
    at_segments = at_terms + term_count * _TERM.size
    at_title = at_segments + segment_count * _SEGMENT.size
    at_state = at_title + title_bytes
    terms = tuple(
        TermStart(term=number, index=first_index, offset=first_offset)
        for number, first_index, first_offset in _TERM.iter_unpack(body[at_terms:at_segments])
    )
    return Checkpoint(
        group=group,
        start=StartState(
            index=index,
            term=term,
            offset=offset,
            membership=Membership.decode(body[_HEAD.size : at_terms]),
            log_start_offset=log_start_offset,
            terms=terms,
            state=body[at_state : at_state + state_bytes],
        ),
        log_start=LogStart(index=start_index, term=start_term, offset=start_offset),
        segments=tuple(SegmentView(*fields) for fields in _SEGMENT.iter_unpack(body[at_segments:at_title])),
        reset_sequence=reset_sequence,
        title=body[at_title:at_state].decode(),
    )


def write_checkpoint(files: Files, folder: str, checkpoint: Checkpoint) -> None:
    """Replace the group's checkpoint; durable when this returns."""
    write_whole(files, f"{folder}/{CHECKPOINT_NAME}", encode_checkpoint(checkpoint))


def read_checkpoint(files: Files, folder: str) -> Checkpoint | None:
    """The group's checkpoint, None if there is none."""
    path = f"{folder}/{CHECKPOINT_NAME}"
    try:
        content = read_whole(files, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged("the checkpoint cannot be read", path=path, error=error) from error
    return decode_checkpoint(content, path)


def _crc(version: int, body: bytes) -> int:
    crc: int = google_crc32c.extend(google_crc32c.value(version.to_bytes(4, "little")), body)
    return crc


def _encode_segment(segment: SegmentView) -> bytes:
    return _SEGMENT.pack(
        segment.base_offset,
        segment.first_index,
        segment.row_count,
        segment.log_bytes,
        segment.control_bytes,
        segment.first_timestamp,
        segment.max_timestamp,
        segment.next_offset,
        segment.last_term,
    )
