"""Storage: a broker's files behind its threads: one writes the log, one segments and checkpoints, one reads.

Its one rule: jobs of one thread are done in order; what a job came to is told on the loop's thread. An error
that concerns one group is told as such; one that makes the disk untrustworthy ends the broker. It must not
know what is in an entry, nor why a job was given. Tests: tests/runtime/test_storage.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from tidings.node.jobs import (
    METADATA_GROUP,
    BeginGroup,
    Compute,
    DropBelow,
    Dropped,
    FindTime,
    ReadEntries,
    ReadJob,
    ReadOffsets,
    RemoveGroup,
    ResetLog,
    SaveCheckpoint,
    SegmentFacts,
    StorageJob,
    WriteEntries,
    Written,
)
from tidings.raft.entries import Entry, StartState
from tidings.raft.outbox import Flush
from tidings.runtime.disk import DiskThread
from tidings.runtime.pace import DiskPace
from tidings.storage.checkpoint import SegmentView
from tidings.storage.errors import DiskFull, Gone, StorageError
from tidings.storage.recovery import group_folder
from tidings.storage.segments import SegmentStore, StoreFiles
from tidings.storage.state_store import StateStore
from tidings.storage.wal import WalPosition, WalWriter
from tidings.storage.wal_format import Mark

_SMALL_FLUSH_BYTES = 128 * 1024
Then = Callable[[Any, Exception | None], None]  # any: the job's result


@dataclass(frozen=True, slots=True, kw_only=True)
class LateOutcome:
    """What came of a job that had found no room when it was given."""

    job: StorageJob
    result: object
    error: Exception | None


class StorageThreads:
    """The three threads and what they work on. Methods are called on the loop's thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        name: str,
        folder: str,
        files: StoreFiles,
        wal: WalWriter,
        stores: dict[int, SegmentStore],
        metadata: StateStore,
    ) -> None:
        self._loop = loop
        self._wal = wal
        self._wal_calls = 0  # given to the log's thread and not ended
        self._pace = DiskPace()
        self._groups = _Groups(folder, files, stores, metadata)
        self._wal_thread = DiskThread(loop, f"{name}-log")
        self._segment_thread = DiskThread(loop, f"{name}-segments")
        self._read_thread = DiskThread(loop, f"{name}-reads")

    def write(self, flush: Flush, then: Callable[[WalPosition | None, Exception | None], None]) -> None:
        """Make a flush durable: here if that is quick, nothing else is under way in the log and no file of it
        has to be made first, else in the thread."""
        if not is_small(flush):
            self._in_wal_thread(self._write, flush, then=then)
        elif self._wal_calls == 0 and self._pace.is_quick and self._wal.space_ready:
            outcome = self._write_here(flush)
            self._loop.call_soon(then, *outcome)
        else:
            self._in_wal_thread(self._write_small, flush, then=then)

    def cut(self, below_file: int, then: Then) -> None:
        self._in_wal_thread(self._wal.cut, below_file, then=then)

    def mark(self, group: int, *, is_damaged: bool) -> None:
        """Have a restart know, with the next flush, whether the group's files can be trusted."""
        mark = Mark.DAMAGED if is_damaged else Mark.NONE
        self._in_wal_thread(self._wal.mark, group, mark, then=_ignore)

    def store(self, job: StorageJob, then: Then) -> None:
        """DiskFull: the job is kept, and so is what comes behind it for its group, until `make_way`."""
        if isinstance(job, RemoveGroup):
            self._in_wal_thread(self._wal.forget, job.group, then=_ignore)
        self._segment_thread.submit(self._groups.do, job, then=then)

    def read(self, job: ReadJob, then: Then) -> None:
        self._read_thread.submit(self._groups.read, job, then=then)

    def make_way(self, group: int, then: Then) -> None:
        """Try again what the group waits for room for; tells a list of LateOutcome, of those that ended."""
        self._segment_thread.submit(self._groups.make_way, group, then=then)

    def close(self) -> None:
        """End the threads after what they are at, and close all files. What was promised is in the log."""
        threads = (self._wal_thread, self._segment_thread, self._read_thread)
        for thread in threads:
            thread.end()
        for thread in threads:
            thread.join()
        self._wal.close()
        self._groups.close()

    def _in_wal_thread(
        self,
        function: Callable[..., Any],  # any: see DiskThread
        *arguments: Any,  # any: as above
        then: Then,
    ) -> None:
        """The log is used by one thread at a time: by the loop's only while its own has nothing to do."""
        self._wal_calls += 1

        def told(result: Any, error: Exception | None) -> None:  # any: the function's result
            self._wal_calls -= 1
            then(result, error)

        self._wal_thread.submit(function, *arguments, then=told)

    def _write_here(self, flush: Flush) -> tuple[WalPosition | None, Exception | None]:
        try:
            return self._write_small(flush), None
        except StorageError as error:
            return None, error

    def _write_small(self, flush: Flush) -> WalPosition:
        began_s = perf_counter()
        position = self._write(flush)
        self._pace.took(perf_counter() - began_s)
        return position

    def _write(self, flush: Flush) -> WalPosition:
        position = self._wal.write(flush)
        if not self._wal.space_ready:
            self._segment_thread.submit(self._wal.prepare_next, then=_ignore)
        return position


def is_small(flush: Flush) -> bool:
    """Whether the flush's bytes are copied in no time."""
    return sum(len(entry.payload) for _, entry in flush.entries) <= _SMALL_FLUSH_BYTES


class _Groups:
    """The groups' files. `do` runs on the segment thread, `read` on the reader's."""

    def __init__(
        self, folder: str, files: StoreFiles, stores: dict[int, SegmentStore], metadata: StateStore
    ) -> None:
        self._folder = folder
        self._files = files
        self._stores = stores
        self._metadata = metadata
        # New groups get their folder with their first entry: a topic that is never written to costs no file.
        self._begun: dict[int, BeginGroup] = {}
        # What found no room, and behind it what must not overtake it. The order is kept here, where the jobs
        # are done: whoever gave them learns of a refusal only after having given more.
        self._waiting: dict[int, deque[StorageJob]] = {}

    def do(self, job: StorageJob) -> object:
        if job.group in self._waiting and not isinstance(job, DropBelow | RemoveGroup):
            self._waiting[job.group].append(job)
            raise DiskFull("an earlier job of the group waits for room")
        try:
            return self._do(job)
        except DiskFull:
            self._waiting.setdefault(job.group, deque()).append(job)
            raise

    def make_way(self, group: int) -> list[LateOutcome]:
        outcomes: list[LateOutcome] = []
        waiting = self._waiting.get(group)
        while waiting:
            result, failure = None, None
            try:
                result = self._do(waiting[0])
            except DiskFull:
                return outcomes
            except Exception as error:  # noqa: BLE001 - told to the one who asked, who decides
                failure = error
            outcomes.append(LateOutcome(job=waiting.popleft(), result=result, error=failure))
        self._waiting.pop(group, None)
        return outcomes

    def close(self) -> None:
        """Without a sync: what is behind the checkpoints is in the log, as after a crash."""
        self._files.written.abandon()
        self._files.read.abandon()

    def _do(self, job: StorageJob) -> object:
        match job:
            case WriteEntries():
                store = self._store(job.group)
                store.append(
                    job.entries, segment_bytes=job.limits.segment_bytes, segment_ms=job.limits.segment_ms
                )
                return Written(segments=segment_facts(store.segments()))
            case SaveCheckpoint():
                self._save(job.group, job.start, job.title)
            case DropBelow():
                return self._drop(job)
            case ResetLog():
                self._reset(job)
            case BeginGroup():
                self._begun[job.group] = job
            case RemoveGroup():
                self._waiting.pop(job.group, None)
                self._begun.pop(job.group, None)
                store_or_none = self._stores.pop(job.group, None)
                if store_or_none is not None:
                    store_or_none.remove()
        return None

    def read(self, job: ReadJob) -> object:
        if isinstance(job, Compute):
            return job.function(*job.arguments)
        store = self._stores.get(job.group)
        if store is None:
            return [] if isinstance(job, FindTime) else None
        try:
            return _read(store, job)
        except Gone:
            return None

    def _store(self, group: int) -> SegmentStore:
        store = self._stores.get(group)
        if store is None:
            begun = self._begun[group]
            store = SegmentStore.create(
                self._files,
                group_folder(self._folder, group),
                group=group,
                start=begun.start,
                title=begun.title,
            )
            self._stores[group] = store
            del self._begun[group]  # only now: a full disk may have kept the folder from being made
        return store

    def _save(self, group: int, start: StartState, title: str) -> None:
        if group == METADATA_GROUP:
            self._metadata.checkpoint(start, title)
        else:
            self._store(group).checkpoint(start, title)

    def _drop(self, job: DropBelow) -> Dropped:
        store = self._store(job.group)
        start = store.drop_below(job.log_start_offset)
        return Dropped(
            index=start.index, term=start.term, offset=start.offset, segments=segment_facts(store.segments())
        )

    def _reset(self, job: ResetLog) -> None:
        if job.group == METADATA_GROUP:
            self._metadata.reset(job.start, job.title, wal_sequence=job.wal_sequence)
        else:
            self._store(job.group).reset(job.start, job.title, wal_sequence=job.wal_sequence)


def _read(store: SegmentStore, job: ReadOffsets | ReadEntries | FindTime) -> list[bytes] | list[Entry] | None:
    match job:
        case ReadOffsets():
            return store.read_offset(job.offset, job.bytes_max, job.offset_max)
        case ReadEntries():
            return store.read_entries(job.first_index, job.bytes_max)
        case FindTime(timestamp=None):
            return _as_list(store.reader.find_newest(offset_min=job.offset_min))
        case FindTime():
            assert job.timestamp is not None, job
            return _as_list(store.reader.find_time(job.timestamp, offset_min=job.offset_min))


def _as_list(batch: bytes | None) -> list[bytes]:
    """None is for what could not be read: not finding a batch is an answer."""
    return [] if batch is None else [batch]


def segment_facts(segments: tuple[SegmentView, ...]) -> tuple[SegmentFacts, ...]:
    return tuple(
        SegmentFacts(
            base_offset=segment.base_offset,
            next_offset=segment.next_offset,
            size_bytes=segment.size_bytes,
            max_timestamp=segment.max_timestamp,
        )
        for segment in segments
    )


def _ignore(_result: object, _error: Exception | None) -> None:
    """A failure of these shows in the next write of the log."""
