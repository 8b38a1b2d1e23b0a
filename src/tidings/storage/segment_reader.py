"""Reading a group's segments while they are written to.

The one rule: a read works on one published state; whatever it then misses is Gone if that state is no longer
the newest, and Damaged if it is. Every row and every payload is checked before it is handed out.
Used by one reader thread. It must not know how segments are written. Tests:
tests/storage/test_segment_reader.py
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

import google_crc32c

from tidings.raft.entries import Entry, EntryKind
from tidings.storage.checkpoint import SegmentView
from tidings.storage.errors import Damaged, Gone
from tidings.storage.log_state import LogState, Published, control_path, index_path, log_path
from tidings.storage.open_files import OpenFiles
from tidings.storage.rows import ROW_BYTES, Row, decode_row

_ROWS_PER_READ = 64
_HINTS_MAX = 16
_BASE_OFFSET = attrgetter("base_offset")
_FIRST_INDEX = attrgetter("first_index")


class SegmentReader:
    """Finds entries by index, offset and time."""

    def __init__(self, files: OpenFiles, folder: str, published: Published) -> None:
        self._files = files
        self._folder = folder
        self._published = published
        # Where a reader that goes on will ask next: offset -> (first index of the segment, row).
        self._hints: dict[int, tuple[int, int]] = {}

    def read_offset(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes]:
        """Whole batches from the one that contains the offset: at least one, then as many as fit into
        `bytes_max`, all of one segment and below `offset_max`. None where there is none yet; Gone below the
        log's start."""
        state = self._published.state
        if offset < state.start.offset:
            raise Gone(f"offset {offset} is below the log's start {state.start.offset}")
        if offset >= min(offset_max, state.next_offset):
            return []
        segment = state.segments[bisect_right(state.segments, offset, key=_BASE_OFFSET) - 1]
        row_number = self._find_offset(state, segment, offset)
        chosen: list[Row] = []
        batches_bytes = 0
        for row in self._rows(state, segment, row_number):
            if row.kind == EntryKind.RECORDS:
                batches_bytes += row.payload_bytes
                if row.next_offset > offset_max or (chosen and batches_bytes > bytes_max):
                    break
                chosen.append(row)
            row_number += 1
        if not chosen:
            return []
        self._remember(chosen[-1].next_offset, segment, row_number)
        return self._payloads(state, log_path(self._folder, segment), chosen)

    def read_entries(self, first_index: int, bytes_max: int) -> list[Entry]:
        """Entries of all kinds, at least one, as many as fit into `bytes_max` and stand in one segment. None
        where there is none yet; Gone at and below the log's start."""
        state = self._published.state
        if first_index <= state.start.index:
            raise Gone(f"index {first_index} is not above the log's start {state.start.index}")
        if first_index >= state.next_index:
            return []
        segment = state.segments[bisect_right(state.segments, first_index, key=_FIRST_INDEX) - 1]
        chosen: list[Row] = []
        entry_bytes = 0
        for row in self._rows(state, segment, first_index - segment.first_index):
            entry_bytes += ROW_BYTES + row.payload_bytes
            if chosen and entry_bytes > bytes_max:
                break
            chosen.append(row)
        batches = [row for row in chosen if row.kind == EntryKind.RECORDS]
        controls = [row for row in chosen if row.kind != EntryKind.RECORDS]
        payloads = {
            **self._payloads_by_index(state, log_path(self._folder, segment), batches),
            **self._payloads_by_index(state, control_path(self._folder, segment), controls),
        }
        return [
            Entry(row.index, row.term, row.kind, row.base_offset, row.record_count, payloads[row.index])
            for row in chosen
        ]

    def find_time(self, timestamp: int, *, offset_min: int) -> bytes | None:
        """The first batch whose maximum timestamp is at least this, not wholly below `offset_min`."""
        state = self._published.state
        for segment in state.segments:
            if segment.max_timestamp < timestamp or segment.next_offset <= offset_min:
                continue
            for row in self._rows(state, segment, 0):
                if (
                    row.kind == EntryKind.RECORDS
                    and row.max_timestamp >= timestamp
                    and row.next_offset > offset_min
                ):
                    return self._payloads(state, log_path(self._folder, segment), [row])[0]
        return None

    def find_newest(self, *, offset_min: int) -> bytes | None:
        """The first batch that holds the maximum timestamp of all that are not wholly below `offset_min`."""
        state = self._published.state
        newest: Row | None = None
        newest_in: SegmentView | None = None
        for segment in sorted(state.segments, key=lambda one: (-one.max_timestamp, one.first_index)):
            if newest is not None and segment.max_timestamp <= newest.max_timestamp:
                break
            for row in self._rows(state, segment, 0):
                if row.kind != EntryKind.RECORDS or row.next_offset <= offset_min:
                    continue
                if newest is None or row.max_timestamp > newest.max_timestamp:
                    newest, newest_in = row, segment
        if newest is None or newest_in is None:
            return None
        return self._payloads(state, log_path(self._folder, newest_in), [newest])[0]

    def _find_offset(self, state: LogState, segment: SegmentView, offset: int) -> int:
        """The row of the batch that contains the offset: the last one that does not begin behind it.
        (Entries without records stand before the batch of the same base offset.)"""
        first_index, hint = self._hints.get(offset, (0, 0))
        if first_index == segment.first_index and hint < segment.row_count:
            return hint
        low, high = 0, segment.row_count
        while high - low > 1:
            middle = (low + high) // 2
            row = next(self._rows(state, segment, middle, count=1))
            if row.base_offset <= offset:
                low = middle
            else:
                high = middle
        return low

    def _remember(self, offset: int, segment: SegmentView, row_number: int) -> None:
        self._hints[offset] = (segment.first_index, row_number)
        if len(self._hints) > _HINTS_MAX:
            del self._hints[next(iter(self._hints))]

    def _rows(
        self, state: LogState, segment: SegmentView, first: int, count: int = _ROWS_PER_READ
    ) -> Iterator[Row]:
        path = index_path(self._folder, segment)
        while first < segment.row_count:
            wanted = min(count, segment.row_count - first)
            content = self._read(state, path, wanted * ROW_BYTES, first * ROW_BYTES)
            for at in range(0, len(content), ROW_BYTES):
                row = self._row(state, path, content, at)
                if row.index != segment.first_index + first:
                    raise self._miss(state, "a row has another index", path=path, row=first, index=row.index)
                yield row
                first += 1

    def _row(self, state: LogState, path: str, content: bytes, at: int) -> Row:
        try:
            return decode_row(content, at)
        except Damaged as error:
            raise self._miss(state, error.problem, path=path) from error

    def _payloads_by_index(self, state: LogState, path: str, rows: list[Row]) -> dict[int, bytes]:
        return {
            row.index: payload for row, payload in zip(rows, self._payloads(state, path, rows), strict=True)
        }

    def _payloads(self, state: LogState, path: str, rows: list[Row]) -> list[bytes]:
        """One read of the whole range, which has no gaps, then cut into payloads."""
        if not rows or rows[-1].end == rows[0].position:
            return [b""] * len(rows)
        start = rows[0].position
        content = self._read(state, path, rows[-1].end - start, start)
        payloads: list[bytes] = []
        expected = start
        for row in rows:
            payload = content[row.position - start : row.end - start]
            if row.position != expected or google_crc32c.value(payload) != row.payload_crc:
                raise self._miss(
                    state, "a payload is damaged", path=path, index=row.index, position=row.position
                )
            expected = row.end
            payloads.append(payload)
        return payloads

    def _read(self, state: LogState, path: str, length: int, position: int) -> bytes:
        try:
            content = self._files.read(path, length, position)
        except OSError as error:
            raise self._miss(state, "a file cannot be read", path=path, error=error) from error
        if len(content) < length:
            raise self._miss(state, "a file is cut short", path=path, position=position + len(content))
        return content

    def _miss(self, state: LogState, problem: str, **facts: object) -> Gone | Damaged:
        newest = self._published.state
        if newest.generation != state.generation or newest.start.index != state.start.index:
            return Gone(f"the log was cut while it was read: {problem}")
        return Damaged(problem, **facts)
