"""Scanning one segment: row by row with its payload, up to where it can no longer be trusted.

The one rule: what the index says comes first. Only from the row on that is missing or wrong are batches
counted in the segment file, and then every batch must begin at the offset that is due and have its own CRC
right. Entries without records that stood among them left no trace there: as many as are missing at the end
are made up as empty term starts, so that the indexes behind the segment stay what they are. That is right
only in a log that nobody else has, which the caller has made sure of.
It must not know what is done about what it finds (salvage.py). Tests: tests/storage/test_scan_log.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import google_crc32c

from tidings.protocol.records import HEADER_BYTES, MAGIC, crc_is_right, read_header
from tidings.raft.entries import Entry, EntryKind, TermStart
from tidings.storage.checkpoint import SegmentView
from tidings.storage.errors import Damaged
from tidings.storage.files import File, Files
from tidings.storage.log_state import control_path, index_path, log_path
from tidings.storage.rows import NO_TIMESTAMP, ROW_BYTES, Row, decode_row, encode_row, max_timestamp

_ROWS_PER_READ = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """An end of a log: the last entry, and the offset behind it."""

    index: int
    term: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a segment is to be: where it begins, and what of it is promised."""

    first_index: int
    base_offset: int
    promised: SegmentView | None  # as the checkpoint has it; None: nothing is
    next_index: int | None  # where the next segment begins, if that is known
    is_checkpointed: bool  # the log has a checkpoint: what it does not speak of may be missing

    @property
    def empty(self) -> SegmentView:
        """The segment without its rows; also what its files are called after."""
        return SegmentView(
            self.base_offset, self.first_index, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, self.base_offset, 0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A segment as far as it can be trusted."""

    expected: Expected
    before: Position
    view: SegmentView
    end: Position
    terms: tuple[TermStart, ...]  # that begin in it
    counted_from: int | None  # the first row that is not in the index and was counted; None: all are
    index_problem: str | None  # why they were counted
    problem: str | None  # what is wrong with the next entry, so that nothing behind it counts


class _IndexDamaged(Exception):
    """The next row is missing or wrong, or the payload of an entry without records is."""


class _LogDamaged(Exception):
    """The next batch is missing or wrong."""


class SegmentScan:
    """One pass. `on_row` gets the rows of the index as it should be, `on_read` the bytes that were read."""

    def __init__(
        self,
        files: Files,
        folder: str,
        expected: Expected,
        before: Position,
        *,
        on_row: Callable[[bytes], None],
        on_read: Callable[[int], None],
    ) -> None:
        self._expected = expected
        self._before = before
        self._on_row = on_row
        self._on_read = on_read
        self._index = _Source(files, index_path(folder, expected.empty))
        self._log = _Source(files, log_path(folder, expected.empty))
        self._control = _Source(files, control_path(folder, expected.empty))
        self._view = replace(expected.empty, last_term=before.term)
        self._terms: list[TermStart] = []

    def run(self) -> Scanned:
        counted_from: int | None = None
        index_problem: str | None = None
        problem: str | None = None
        try:
            self._take_rows()
            if self._is_short:
                raise _IndexDamaged(f"{self._index.path} is missing or cut short")
        except _LogDamaged as error:
            problem = str(error)
        except _IndexDamaged as error:
            if self._is_short:
                index_problem = str(error)
                counted_from = self._view.row_count
                try:
                    self._count()
                except _LogDamaged as damage:
                    problem = str(damage)
        finally:
            for source in (self._index, self._log, self._control):
                source.close()
        has_rest = problem is not None and self._is_short
        return Scanned(
            expected=self._expected,
            before=self._before,
            view=self._view,
            end=self._end(),
            terms=tuple(self._terms),
            counted_from=counted_from,
            index_problem=index_problem,
            problem=problem if has_rest else None,
        )

    @property
    def _is_short(self) -> bool:
        """Whether there is to be more: behind what is promised, whatever is not whole was never synced."""
        expected = self._expected
        if expected.promised is not None:
            return self._view.row_count < expected.promised.row_count
        if expected.is_checkpointed:
            return False
        if expected.next_index is not None:
            return self._view.next_index < expected.next_index
        return self._view.log_bytes < self._log.size

    def _end(self) -> Position:
        view = self._view
        return Position(index=view.next_index - 1, term=view.last_term, offset=view.next_offset)

    # -- by the index

    def _take_rows(self) -> None:
        limit = self._rows_max()
        while limit is None or self._view.row_count < limit:
            count = _ROWS_PER_READ if limit is None else min(_ROWS_PER_READ, limit - self._view.row_count)
            content = self._index.read(count * ROW_BYTES, self._view.row_count * ROW_BYTES)
            if not content:
                return
            for at in range(0, len(content), ROW_BYTES):
                self._take_row(content[at : at + ROW_BYTES])

    def _rows_max(self) -> int | None:
        """A segment that another one follows does not grow."""
        expected = self._expected
        if expected.next_index is None:
            return None
        return expected.next_index - expected.first_index

    def _take_row(self, encoded: bytes) -> None:
        view = self._view
        try:
            row = decode_row(encoded)
        except Damaged as error:
            raise _IndexDamaged(f"row {view.row_count} of {self._index.path} is damaged") from error
        is_batch = row.kind == EntryKind.RECORDS
        position = view.log_bytes if is_batch else view.control_bytes
        due = (view.next_index, view.next_offset, position)
        if (row.index, row.base_offset, row.position) != due or row.term < view.last_term:
            raise _IndexDamaged(f"row {view.row_count} of {self._index.path} does not follow the one before")
        if row.payload_bytes:
            self._check_payload(row, is_batch=is_batch)
        self._append(row, encoded)

    def _check_payload(self, row: Row, *, is_batch: bool) -> None:
        source = self._log if is_batch else self._control
        payload = source.read(row.payload_bytes, row.position)
        self._on_read(len(payload))
        if len(payload) == row.payload_bytes and google_crc32c.value(payload) == row.payload_crc:
            return
        problem = f"{source.path} is damaged at byte {row.position} (offset {row.base_offset})"
        raise _LogDamaged(problem) if is_batch else _IndexDamaged(problem)

    # -- by counting

    def _count(self) -> None:
        expected = self._expected
        promised = expected.promised
        log_bytes = self._log.size if promised is None else promised.log_bytes
        while self._view.log_bytes < log_bytes:
            self._take_batch(self._batch_at(self._view.log_bytes, log_bytes))
        if expected.next_index is not None or promised is not None:
            next_index = promised.next_index if promised is not None else expected.next_index
            assert next_index is not None, expected
            self._make_up(next_index)

    def _batch_at(self, position: int, log_bytes: int) -> bytes:
        where = f"at byte {position} (offset {self._view.next_offset})"
        header_bytes = self._log.read(HEADER_BYTES, position)
        if len(header_bytes) < HEADER_BYTES:
            raise _LogDamaged(f"{self._log.path} is missing or cut short {where}")
        header = read_header(header_bytes)
        terms = range(self._view.last_term, self._term_max() + 1)
        is_due = header.base_offset == self._view.next_offset and header.leader_epoch in terms
        is_within = HEADER_BYTES <= header.batch_bytes <= log_bytes - position
        if header.magic != MAGIC or not is_due or not is_within:
            raise _LogDamaged(f"{self._log.path} has no batch {where}")
        batch = self._log.read(header.batch_bytes, position)
        self._on_read(len(batch))
        if len(batch) < header.batch_bytes or not crc_is_right(batch):
            raise _LogDamaged(f"{self._log.path} is damaged {where}")
        return batch

    def _term_max(self) -> int:
        promised = self._expected.promised
        return promised.last_term if promised is not None else (1 << 31) - 1

    def _take_batch(self, batch: bytes) -> None:
        header = read_header(batch)
        self._take_counted(header.leader_epoch, EntryKind.RECORDS, header.record_count, batch)

    def _make_up(self, next_index: int) -> None:
        """The entries without records that stood among the batches."""
        promised = self._expected.promised
        view = self._view
        is_too_much = view.next_index > next_index
        if is_too_much or (promised is not None and view.next_offset != promised.next_offset):
            raise _LogDamaged(f"{self._log.path} holds other batches than the log")
        term = view.last_term if promised is None else promised.last_term
        while self._view.next_index < next_index:
            self._take_counted(term, EntryKind.TERM_START, 0, b"")

    def _take_counted(self, term: int, kind: EntryKind, record_count: int, payload: bytes) -> None:
        view = self._view
        entry = Entry(view.next_index, term, kind, view.next_offset, record_count, payload)
        position = view.log_bytes if kind == EntryKind.RECORDS else view.control_bytes
        encoded = encode_row(entry, position, max_timestamp(entry))
        self._append(decode_row(encoded), encoded)

    def _append(self, row: Row, encoded: bytes) -> None:
        view = self._view
        if row.term != view.last_term:
            self._terms.append(TermStart(term=row.term, index=row.index, offset=row.base_offset))
        view.row_count += 1
        view.next_offset = row.next_offset
        view.last_term = row.term
        if row.kind == EntryKind.RECORDS:
            if not view.log_bytes:
                view.first_timestamp = row.max_timestamp
            view.log_bytes = row.end
            view.max_timestamp = max(view.max_timestamp, row.max_timestamp)
        else:
            view.control_bytes = row.end
        self._on_row(encoded)


class _Source:
    """A file that may be missing or unreadable: then it has no bytes there."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._file: File | None
        try:
            self._file = files.open(path, create=False)
        except OSError:
            self._file = None

    @property
    def size(self) -> int:
        return self._file.size() if self._file is not None else 0

    def read(self, length: int, position: int) -> bytes:
        if self._file is None:
            return b""
        try:
            return self._file.read_at(length, position)
        except OSError:
            return b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
