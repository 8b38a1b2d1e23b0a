"""Persistence: a turn's work for the disk is handed to the threads, and what came of it is told to the node.

Its one rule: flushes are written one after the other, and the storage keeps the order of a group's jobs;
where the disk is full the same work is tried again, where it cannot be trusted the broker ends. It must not
know what is written. Tests: tests/runtime/test_persistence.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from tidings.config.exits import Exit
from tidings.node.jobs import ReadJob, RemoveGroup, StorageJob
from tidings.node.turn import Turn
from tidings.raft.outbox import Flush
from tidings.runtime.backlog import BACKLOG_BYTES_MAX, Backlog
from tidings.runtime.storage import LateOutcome, Then
from tidings.storage.errors import Damaged, DiskFull, StorageError
from tidings.storage.wal import WalPosition
from tidings.telemetry.events import EventLog

FULL_RETRY_S = 0.5  # after a full disk: when space is freed, producers notice within a blink


class PersistenceOwner(Protocol):
    """What a broker does about the outcomes."""

    log: EventLog

    def now_ms(self) -> int: ...
    def wake(self) -> None: ...
    def turn(self) -> None: ...
    def fail(self, code: Exit, reason: str) -> None: ...


class StoringNode(Protocol):
    """What the node is told."""

    is_storage_full: bool

    def flushed(self, flush: Flush, place: WalPosition, now_ms: int) -> None: ...
    def stored(self, job: StorageJob, result: object, now_ms: int) -> None: ...
    def damaged(self, group: int, now_ms: int) -> None: ...


class Storage(Protocol):
    """What the threads are given. `then` gets a result or an error, on the loop's thread."""

    def write(self, flush: Flush, then: Callable[[WalPosition | None, Exception | None], None]) -> None: ...
    def cut(self, below_file: int, then: Then) -> None: ...
    def mark(self, group: int, *, is_damaged: bool) -> None: ...
    def store(self, job: StorageJob, then: Then) -> None: ...
    def make_way(self, group: int, then: Then) -> None: ...
    def read(self, job: ReadJob, then: Then) -> None: ...


class Persistence:
    """Between one node and its storage threads."""

    def __init__(
        self,
        owner: PersistenceOwner,
        node: StoringNode,
        storage: Storage,
        *,
        full_retry_s: float = FULL_RETRY_S,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
    ) -> None:
        self.is_flushing = False
        self._full_retry_s = full_retry_s
        self._owner = owner
        self._node = node
        self._storage = storage
        self._is_log_full = False
        self._had_no_room = False
        self._was_behind = False
        self._backlog = Backlog(backlog_bytes_max)
        self._waiting_counts: dict[int, int] = {}  # by group: jobs that the storage keeps until there is room
        self._retries: set[asyncio.TimerHandle] = set()
        self._untold: list[Callable[[], None]] | None = None  # while paused: outcomes that wait
        self._is_closed = False

    def take(self, turn: Turn) -> None:
        for group, reason in turn.damaged:  # before the flush, which makes the mark durable
            self._owner.log.event("replica_damaged", group=group, reason=reason)
            self._storage.mark(group, is_damaged=True)
        if turn.flush is not None:
            self._flush(turn.flush)
        for group in turn.settled:
            self._owner.log.event("replica_settled", group=group)
            self._storage.mark(group, is_damaged=False)
        for job in turn.storage_jobs:
            self._store(job)
        for read, then in turn.reads:
            self._storage.read(read, self._telling(partial(self._was_read, read, then)))
        if turn.cut_below_file is not None:
            self._storage.cut(turn.cut_below_file, self._telling(self._was_cut))

    def pause(self) -> None:
        """Tell nothing until `resume`; the threads finish what they have."""
        if self._untold is None:
            self._untold = []

    def resume(self) -> None:
        untold, self._untold = self._untold, None
        for tell in untold or ():
            tell()

    def close(self) -> None:
        """Tell nothing any more, and begin nothing."""
        self._is_closed = True
        for retry in self._retries:
            retry.cancel()
        self._retries.clear()

    def _telling(self, then: Then) -> Then:
        # No closure that names itself: a cycle would keep the job's entries until the collector comes by.
        return partial(self._tell, then)

    def _tell(self, then: Then, result: object, error: Exception | None) -> None:
        if self._is_closed:
            return
        if self._untold is not None:
            self._untold.append(partial(self._tell, then, result, error))
        else:
            then(result, error)

    # -- the write-ahead log

    def _flush(self, flush: Flush) -> None:
        self.is_flushing = True
        self._storage.write(flush, self._telling(partial(self._flushed, flush)))

    def _flushed(self, flush: Flush, position: WalPosition | None, error: Exception | None) -> None:
        if isinstance(error, DiskFull):
            self._is_log_full = True
            self._room_changed(str(error))
            self._try_again(partial(self._flush, flush))
            return
        if error is not None:
            self._owner.fail(_exit_for(error), f"the write-ahead log failed: {error}")
            return
        assert position is not None
        if self._is_log_full:
            self._is_log_full = False
            self._room_changed("")
        self.is_flushing = False
        self._node.flushed(flush, position, self._owner.now_ms())
        self._owner.turn()

    def _was_cut(self, _result: object, error: Exception | None) -> None:
        if error is not None:
            self._owner.fail(_exit_for(error), f"cutting the write-ahead log failed: {error!r}")

    # -- segments and checkpoints

    def _store(self, job: StorageJob) -> None:
        self._backlog.handed(job)
        self._room_changed("")
        self._storage.store(job, self._telling(partial(self._stored, job)))

    def _stored(self, job: StorageJob, result: object, error: Exception | None) -> None:
        if isinstance(error, DiskFull):
            self._waits_for_room(job.group, error)
            return
        self._backlog.ended(job)
        self._room_changed("")
        if isinstance(error, Damaged):
            self._damaged(job.group, error)
        elif error is not None:
            reason = f"{type(job).__name__} of group {job.group} failed: {error!r}"
            self._owner.fail(_exit_for(error), reason)
        else:
            if isinstance(job, RemoveGroup):
                self._waits_no_more(job.group)
            self._node.stored(job, result, self._owner.now_ms())
            self._owner.wake()

    def _waits_for_room(self, group: int, error: DiskFull) -> None:
        is_first = group not in self._waiting_counts
        self._waiting_counts[group] = self._waiting_counts.get(group, 0) + 1
        if is_first:
            self._room_changed(str(error))
            self._try_again(partial(self._make_way, group))

    def _make_way(self, group: int) -> None:
        if group in self._waiting_counts:  # else it was removed
            self._storage.make_way(group, self._telling(partial(self._way_made, group)))

    def _way_made(self, group: int, outcomes: list[LateOutcome] | None, error: Exception | None) -> None:
        if error is not None:
            self._owner.fail(_exit_for(error), f"waiting jobs of group {group} failed: {error!r}")
            return
        assert outcomes is not None
        if group in self._waiting_counts:
            self._waiting_counts[group] -= len(outcomes)
            if self._waiting_counts[group]:
                self._try_again(partial(self._make_way, group))
            else:
                self._waits_no_more(group)
        for outcome in outcomes:
            self._stored(outcome.job, outcome.result, outcome.error)

    def _waits_no_more(self, group: int) -> None:
        if self._waiting_counts.pop(group, None) is not None:
            self._room_changed("")

    def _damaged(self, group: int, error: Damaged) -> None:
        self._owner.log.event("replica_damaged", group=group, reason=str(error))
        self._storage.mark(group, is_damaged=True)
        self._node.damaged(group, self._owner.now_ms())
        self._owner.wake()

    # -- reads

    def _was_read(
        self,
        job: ReadJob,
        then: Callable[[Any], None],  # any: the job's result
        result: object,
        error: Exception | None,
    ) -> None:
        if isinstance(error, Damaged):
            self._damaged(getattr(job, "group", 0), error)
        elif error is not None:
            self._owner.fail(_exit_for(error), f"{type(job).__name__} failed: {error!r}")
            return
        then(result)
        self._owner.wake()

    # -- a full disk

    def _try_again(self, call: Callable[[], None]) -> None:
        def again() -> None:
            self._retries.discard(retry)
            call()

        retry = asyncio.get_running_loop().call_later(self._full_retry_s, again)
        self._retries.add(retry)

    def _room_changed(self, reason: str) -> None:
        """Producers are refused while there is no room, and while the disk is too far behind what it was
        handed."""
        has_no_room = self._is_log_full or bool(self._waiting_counts)
        is_behind = self._backlog.is_over
        if has_no_room and not self._had_no_room:
            self._owner.log.warning("disk_full", reason=reason)
        if is_behind and not self._was_behind:
            self._owner.log.warning("disk_behind", unwritten_bytes=self._backlog.size_bytes)
        self._had_no_room, self._was_behind = has_no_room, is_behind
        self._node.is_storage_full = has_no_room or is_behind


def _exit_for(error: Exception) -> Exit:
    """A disk is said to have failed only where it was the disk: nobody shall replace one for a mistake of
    ours."""
    return Exit.DISK_FAILED if isinstance(error, StorageError | OSError) else Exit.FAILED
