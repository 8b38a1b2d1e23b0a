"""Verifying a folder: every row and every payload of every segment is read and checked.

The one rule: it only reads, and one finding does not end the search.
It must not be part of a start, which reads no history. Tests: tests/storage/test_verify.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import google_crc32c

from tidings.raft.entries import EntryKind
from tidings.storage.checkpoint import Checkpoint, SegmentView
from tidings.storage.errors import Damaged
from tidings.storage.files import Files, read_file
from tidings.storage.log_state import control_path, index_path, log_path
from tidings.storage.recovery import Recovered, group_folder, recover
from tidings.storage.rows import ROW_BYTES, Row, decode_row

_ROWS_PER_READ = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not what was written."""

    group: int | None  # None: the write-ahead log, which all share
    problem: str
    index: int | None = None  # of the entry concerned, where it is known


def verify(files: Files, folder: str, *, salt: bytes) -> Iterator[Finding]:
    """Findings as they come up. The folder must not be in use."""
    recovered = recover(files, folder, salt=salt)
    for problem in (recovered.damage, recovered.torn):
        if problem is not None:
            yield Finding(group=None, problem=problem)
    yield from verify_groups(files, folder, recovered, groups=recovered.groups, on_read=lambda _: None)


def verify_groups(
    files: Files,
    folder: str,
    recovered: Recovered,
    *,
    groups: Collection[int],
    on_read: Callable[[int], None],
) -> Iterator[Finding]:
    """The same of some groups of a folder that was recovered already. `on_read` is told how many bytes were
    read."""
    for group in sorted(groups):
        state = recovered.groups[group]
        if state.damaged is not None:
            yield Finding(group=group, problem=state.damaged)
        if state.checkpoint is not None:
            yield from _verify_group(files, group_folder(folder, group), state.checkpoint, on_read)


def _verify_group(
    files: Files, folder: str, checkpoint: Checkpoint, on_read: Callable[[int], None]
) -> Iterator[Finding]:
    next_index, next_offset = checkpoint.log_start.index + 1, checkpoint.log_start.offset
    term = checkpoint.log_start.term
    for segment in checkpoint.segments:
        walk = _SegmentWalk(files, folder, segment, next_index, next_offset, term)
        for number in range(segment.row_count):
            try:
                on_read(walk.step(number))
            except Damaged as error:
                index = segment.first_index + number
                yield Finding(group=checkpoint.group, problem=str(error), index=index)
        next_index, next_offset, term = segment.next_index, segment.next_offset, segment.last_term


class _SegmentWalk:
    """One pass over a segment's rows, each checked against the one before and against its payload."""

    def __init__(
        self, files: Files, folder: str, segment: SegmentView, next_index: int, next_offset: int, term: int
    ) -> None:
        self._files = files
        self._folder = folder
        self._segment = segment
        self._next_index = next_index
        self._next_offset = next_offset
        self._term = term
        self._ends = {True: 0, False: 0}  # of the .log file and of the .control file
        self._rows = b""
        self._first = 0

    def step(self, number: int) -> int:
        """Check the next row and its payload; how many bytes that has."""
        expected = (self._next_index, self._next_offset)
        self._next_index += 1
        row = self._row(number)
        is_batch = row.kind == EntryKind.RECORDS
        position = self._ends[is_batch]
        found = (row.index, row.base_offset)
        is_in_order = found == expected and row.term >= self._term and row.position == position
        self._next_index, self._next_offset, self._term = row.index + 1, row.next_offset, row.term
        self._ends[is_batch] = row.end
        if not is_in_order:
            raise Damaged("a row does not follow the one before", row=number, expected=expected, found=found)
        if row.payload_bytes:
            path = (log_path if is_batch else control_path)(self._folder, self._segment)
            payload = self._read(path, row.payload_bytes, row.position)
            if google_crc32c.value(payload) != row.payload_crc:
                raise Damaged("a payload is damaged", path=path, position=row.position)
        return row.payload_bytes

    def _row(self, number: int) -> Row:
        if number >= self._first + len(self._rows) // ROW_BYTES:
            count = min(_ROWS_PER_READ, self._segment.row_count - number)
            path = index_path(self._folder, self._segment)
            self._rows = self._read(path, count * ROW_BYTES, number * ROW_BYTES)
            self._first = number
        return decode_row(self._rows, (number - self._first) * ROW_BYTES)

    def _read(self, path: str, length: int, position: int) -> bytes:
        try:
            return read_file(self._files, path, length, position)
        except OSError as error:
            raise Damaged("a file cannot be read", path=path, error=error) from error
