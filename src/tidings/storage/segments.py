"""One group's segments: the committed entries, in files of bounded size, and the checkpoint that says how
far they go.

The one rule: only committed entries come here, in order, so nothing is ever cut off but what recovery will
write again; nothing counts until a checkpoint says so. Files are synced when a checkpoint is made, not
before. One background thread writes (everything but the reads); one reader thread reads at the same time
(segment_reader.py).
It must not know what a payload means. Tests: tests/storage/test_segments.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidings.raft.entries import Entry, EntryKind, StartState
from tidings.storage.checkpoint import Checkpoint, LogStart, SegmentView, read_checkpoint, write_checkpoint
from tidings.storage.errors import Damaged, disk_error
from tidings.storage.files import Files, folder_of
from tidings.storage.log_state import (
    LogState,
    Published,
    control_path,
    index_path,
    is_segment_file,
    log_path,
    paths,
)
from tidings.storage.open_files import OpenFiles
from tidings.storage.rows import NO_TIMESTAMP, ROW_BYTES, encode_row, max_timestamp
from tidings.storage.segment_reader import SegmentReader


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFiles:
    """What all stores of a broker share: the file system, and the open files of the two threads."""

    files: Files
    written: OpenFiles
    read: OpenFiles


class SegmentStore:
    """The segments of one group. Made by create() or open()."""

    def __init__(self, shared: StoreFiles, folder: str, checkpoint: Checkpoint, damaged: str | None) -> None:
        self._files = shared.files
        self._written = shared.written
        self._read = shared.read
        self._folder = folder
        self._group = checkpoint.group
        self._title = checkpoint.title
        self._damaged = damaged
        self._reset_sequence = checkpoint.reset_sequence
        self._checkpoint_index = checkpoint.start.index
        self._unsynced: set[str] = set()
        self._has_new_names = False
        self._published = Published(LogState(1, checkpoint.log_start, checkpoint.segments))
        self.reader = SegmentReader(shared.read, folder, self._published)

    @staticmethod
    def create(shared: StoreFiles, folder: str, *, group: int, start: StartState, title: str) -> SegmentStore:
        """An empty log behind `start`, for a group that is new here; durable when this returns."""
        log_start = LogStart(index=start.index, term=start.term, offset=start.offset)
        checkpoint = Checkpoint(group=group, start=start, log_start=log_start, title=title)
        store = SegmentStore(shared, folder, checkpoint, None)
        with _disk_errors(f"creating {folder}"):
            shared.files.make_folder(folder)
            write_checkpoint(shared.files, folder, checkpoint)
            store._remove_unknown_files()
        return store

    @staticmethod
    def open(shared: StoreFiles, folder: str, checkpoint: Checkpoint, *, damaged: str | None) -> SegmentStore:
        """What recovery found. A damaged group is left as it is, readable as far as it goes, until
        reset()."""
        store = SegmentStore(shared, folder, checkpoint, damaged)
        if damaged is None:
            with _disk_errors(f"cutting {folder} back to its checkpoint"):
                store._remove_unknown_files()
                store._cut_back()
        return store

    @property
    def start(self) -> LogStart:
        return self._published.state.start

    @property
    def last_index(self) -> int:
        return self._published.state.next_index - 1

    @property
    def next_offset(self) -> int:
        return self._published.state.next_offset

    def segments(self) -> tuple[SegmentView, ...]:
        """What retention asks: offsets, sizes and newest timestamps, oldest first."""
        return self._published.state.segments

    def append(self, entries: Sequence[Entry], *, segment_bytes: int, segment_ms: int) -> None:
        """Write committed entries behind those already here. On DiskFull nothing changed and the same call
        may be made again: what was written lies behind the published end."""
        self._refuse_if_damaged()
        if not entries:
            return
        state = self._published.state
        assert entries[0].index == state.next_index, (entries[0].index, state.next_index, self._folder)
        run = _Run(state.segments[-1] if state.segments else self._new_segment(state, entries[0]))
        full: list[SegmentView] = []
        with _disk_errors(f"writing segments of {self._folder}"):
            for entry in entries:
                if run.is_full_before(entry, segment_bytes, segment_ms):
                    full.append(self._write(run))
                    run = _Run(_empty_segment(entry))
                run.add(entry)
            active = self._write(run)
        self._published.state = LogState(state.generation, state.start, (*state.segments[:-1], *full, active))

    def sync(self) -> None:
        """Everything appended is durable once this returns; DiskFailed means that nobody knows."""
        with _disk_errors(f"syncing {self._folder}"):
            for path in sorted(self._unsynced):
                self._written.sync(path)
            self._unsynced.clear()
            if self._has_new_names:
                self._files.sync_folder(self._folder)
                self._has_new_names = False

    def checkpoint(self, start: StartState, title: str) -> None:
        """Sync, then make `start` (at the last entry appended) what recovery begins from."""
        self._refuse_if_damaged()
        state = self._published.state
        here = (state.next_index - 1, state.last_term, state.next_offset)
        assert (start.index, start.term, start.offset) == here, (start, here, self._folder)
        self.sync()
        self._title = title
        self._save(start, state)
        self._checkpoint_index = start.index

    def drop_below(self, log_start_offset: int) -> LogStart:
        """Remove the segments that lie wholly below, as far as they are checkpointed; the active one too if
        it holds batches, or those of a quiet topic would stay for ever. Returns where the log now starts."""
        self._refuse_if_damaged()
        state = self._published.state
        dropped = 0
        for segment in state.segments:
            if segment.next_offset > log_start_offset or segment.next_index - 1 > self._checkpoint_index:
                break
            if segment is state.segments[-1] and not segment.log_bytes:
                break
            dropped += 1
        if not dropped:
            return state.start
        last = state.segments[dropped - 1]
        start = LogStart(index=last.next_index - 1, term=last.last_term, offset=last.next_offset)
        with _disk_errors(f"dropping segments of {self._folder}"):
            saved = read_checkpoint(self._files, self._folder)
            assert saved is not None, self._folder
            # The checkpoint first: a crash may leave files that no checkpoint knows, never the other way
            # round.
            offset = max(saved.start.log_start_offset, start.offset)
            kept = replace(
                saved,
                start=replace(saved.start, log_start_offset=offset),
                log_start=start,
                segments=tuple(one for one in saved.segments if one.first_index > start.index),
            )
            write_checkpoint(self._files, self._folder, kept)
            self._published.state = LogState(state.generation, start, state.segments[dropped:])
            for segment in state.segments[:dropped]:
                self._remove(paths(self._folder, segment))
        return start

    def reset(self, start: StartState, title: str, *, wal_sequence: int) -> None:
        """Replace everything by an empty log behind `start`. A crash leaves the old log or the new one.
        `wal_sequence` is that of the durable flush with the start mark: entries before the mark are of the
        old log."""
        log_start = LogStart(index=start.index, term=start.term, offset=start.offset)
        before = self._published.state
        state = LogState(before.generation + 1, log_start, ())
        self._title = title
        self._reset_sequence = wal_sequence
        with _disk_errors(f"replacing the log in {self._folder}"):
            self._files.make_folder(self._folder)
            self._save(start, state)
            self._published.state = state
            self._damaged = None
            self._checkpoint_index = start.index
            self._unsynced.clear()
            self._remove_unknown_files()

    def remove(self) -> None:
        """The group was removed from this broker by a committed command: nothing of it is kept."""
        state = self._published.state
        end = LogStart(index=state.next_index - 1, term=state.last_term, offset=state.next_offset)
        self._published.state = LogState(state.generation + 1, end, ())
        self._damaged = "the group was removed"
        self._unsynced.clear()
        with _disk_errors(f"removing {self._folder}"):
            # The checkpoint last: a folder without one belongs to nobody, and is left alone for ever.
            self._remove_unknown_files()
            for name in self._files.names(self._folder):
                self._files.remove(f"{self._folder}/{name}")
            self._files.remove(self._folder)
            self._files.sync_folder(folder_of(self._folder))

    def read_entries(self, first_index: int, bytes_max: int) -> list[Entry]:
        """See SegmentReader.read_entries."""
        return self.reader.read_entries(first_index, bytes_max)

    def read_offset(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes]:
        """See SegmentReader.read_offset."""
        return self.reader.read_offset(offset, bytes_max, offset_max)

    def _write(self, run: _Run) -> SegmentView:
        """One write per file."""
        before, after = run.before, run.after()
        if run.rows:
            if not before.row_count:
                self._has_new_names = True
            for path, buffers, position in (
                (log_path(self._folder, before), run.batches, before.log_bytes),
                (control_path(self._folder, before), run.controls, before.control_bytes),
                (index_path(self._folder, before), run.rows, before.row_count * ROW_BYTES),
            ):
                if buffers:
                    self._has_new_names = self._has_new_names or not position
                    self._written.write(path, buffers, position)
                    self._unsynced.add(path)
        return after

    def _new_segment(self, state: LogState, entry: Entry) -> SegmentView:
        assert entry.base_offset == state.next_offset, (entry, state)
        return _empty_segment(entry)

    def _save(self, start: StartState, state: LogState) -> None:
        checkpoint = Checkpoint(
            group=self._group,
            start=start,
            log_start=state.start,
            segments=state.segments,
            reset_sequence=self._reset_sequence,
            title=self._title,
        )
        with _disk_errors(f"writing the checkpoint of {self._folder}"):
            write_checkpoint(self._files, self._folder, checkpoint)

    def _cut_back(self) -> None:
        """Bytes behind the checkpoint were never synced; the write-ahead log has their entries."""
        for segment in self._published.state.segments[-1:]:
            for path, size in paths(self._folder, segment).items():
                if size and self._written.size(path) > size:
                    self._written.truncate(path, size)
                    self._unsynced.add(path)

    def _remove_unknown_files(self) -> None:
        known: set[str] = set()
        for segment in self._published.state.segments:
            known.update(path for path, size in paths(self._folder, segment).items() if size)
        names = filter(is_segment_file, self._files.names(self._folder))
        found = [f"{self._folder}/{name}" for name in names]
        unknown = [path for path in found if path not in known]
        if unknown:
            # Read after a kill, the name of the checkpoint that does not know them may not be durable yet.
            self._files.sync_folder(self._folder)
            self._remove(unknown)

    def _remove(self, unwanted: Iterable[str]) -> None:
        for path in unwanted:
            self._unsynced.discard(path)
            self._written.discard(path)
            self._read.discard(path)
            try:
                self._files.remove(path)
            except FileNotFoundError:
                continue  # a segment without such entries has no such file
        self._written.trim()

    def _refuse_if_damaged(self) -> None:
        if self._damaged is not None:
            raise Damaged(self._damaged, folder=self._folder)


class _Run:
    """Entries on their way into one segment."""

    def __init__(self, segment: SegmentView) -> None:
        self.before = segment
        self.batches: list[bytes] = []
        self.controls: list[bytes] = []
        self.rows: list[bytes] = []
        self._log_bytes = segment.log_bytes
        self._control_bytes = segment.control_bytes
        self._first_timestamp = segment.first_timestamp
        self._max_timestamp = segment.max_timestamp
        self._last: Entry | None = None

    def is_full_before(self, entry: Entry, segment_bytes: int, segment_ms: int) -> bool:
        """Whether a new segment begins with this entry. Only batches fill a segment."""
        if entry.kind != EntryKind.RECORDS or not self._log_bytes:
            return False
        if self._log_bytes + len(entry.payload) > segment_bytes:
            return True
        timestamp = max_timestamp(entry)
        return (
            timestamp >= 0 and self._first_timestamp >= 0 and timestamp - self._first_timestamp > segment_ms
        )

    def add(self, entry: Entry) -> None:
        payload = entry.payload
        if entry.kind == EntryKind.RECORDS:
            timestamp = max_timestamp(entry)
            self.rows.append(encode_row(entry, self._log_bytes, timestamp))
            self.batches.append(payload)
            if not self._log_bytes:
                self._first_timestamp = timestamp
            self._log_bytes += len(payload)
            if timestamp > self._max_timestamp:
                self._max_timestamp = timestamp
        else:
            self.rows.append(encode_row(entry, self._control_bytes, NO_TIMESTAMP))
            if payload:
                self.controls.append(payload)
                self._control_bytes += len(payload)
        self._last = entry

    def after(self) -> SegmentView:
        if self._last is None:
            return self.before
        return SegmentView(
            self.before.base_offset,
            self.before.first_index,
            self.before.row_count + len(self.rows),
            self._log_bytes,
            self._control_bytes,
            self._first_timestamp,
            self._max_timestamp,
            self._last.next_offset,
            self._last.term,
        )


def _empty_segment(first: Entry) -> SegmentView:
    return SegmentView(
        first.base_offset, first.index, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, first.base_offset, first.term
    )


@contextmanager
def _disk_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(error, doing) from error
