"""What a node wants on disk is handed over in order, its outcome told; a full disk is waited out."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.loops import run, until
from tidings.config.exits import Exit
from tidings.config.options import Config
from tidings.node.jobs import (
    Compute,
    ReadJob,
    ReadOffsets,
    RemoveGroup,
    SaveCheckpoint,
    SegmentLimits,
    StorageJob,
    WriteEntries,
    Written,
)
from tidings.node.turn import Turn
from tidings.raft.entries import Entry, EntryKind, Membership, StartState
from tidings.raft.outbox import Flush
from tidings.runtime.persistence import Persistence
from tidings.runtime.storage import LateOutcome
from tidings.storage.errors import Damaged, DiskFailed, DiskFull, WalFailed, WalFull
from tidings.storage.wal import WalPosition
from tidings.telemetry.events import open_log

GROUP = 5
NOW_MS = 1_000
PLACE = WalPosition(file_number=1, file_bytes=2, sequence=3)
START = StartState(index=0, term=0, offset=0, membership=Membership(voters=(1,)))
READ = ReadOffsets(group=GROUP, offset=0, bytes_max=1, offset_max=1)
LIMITS = SegmentLimits(segment_bytes=1, segment_ms=1)

Then = Callable[[Any, Exception | None], None]  # any: the result is the call's


class Disk:
    """Storage threads whose outcomes are the test's: `given` is what they were asked to do, oldest first."""

    def __init__(self) -> None:
        self.given: list[tuple[str, object, Then]] = []
        self.said: list[tuple[str, int]] = []

    def write(self, flush: Flush, then: Then) -> None:
        self.given.append(("write", flush, then))

    def cut(self, below_file: int, then: Then) -> None:
        self.given.append(("cut", below_file, then))

    def mark(self, group: int, *, is_damaged: bool) -> None:
        self.said.append(("damaged" if is_damaged else "sound", group))

    def store(self, job: StorageJob, then: Then) -> None:
        self.given.append(("store", job, then))

    def make_way(self, group: int, then: Then) -> None:
        self.given.append(("make way", group, then))

    def read(self, job: ReadJob, then: Then) -> None:
        self.given.append(("read", job, then))

    def end(self, result: object = None, error: Exception | None = None) -> None:
        """The oldest is done, or failed."""
        _, _, then = self.given.pop(0)
        then(result, error)

    def waiting(self) -> list[object]:
        return [what for _, what, _ in self.given]


class Owner:
    """Both the node and the broker around it: notes what it is told."""

    def __init__(self) -> None:
        self.log = open_log(Config(), io.StringIO())
        self.is_storage_full = False
        self.told: list[tuple[object, ...]] = []
        self.failures: list[tuple[Exit, str]] = []
        self.turns = 0

    def now_ms(self) -> int:
        return NOW_MS

    def wake(self) -> None:
        self.turns += 1

    def turn(self) -> None:
        self.turns += 1

    def fail(self, code: Exit, reason: str) -> None:
        self.failures.append((code, reason))

    def flushed(self, flush: Flush, place: WalPosition, now_ms: int) -> None:
        self.told.append(("flushed", flush.number, place.sequence, now_ms))

    def stored(self, job: StorageJob, result: object, now_ms: int) -> None:
        self.told.append(("stored", job, result))

    def damaged(self, group: int, now_ms: int) -> None:
        self.told.append(("damaged", group))


class Bench:
    """A persistence between the two."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.owner = Owner()
        self.persistence = Persistence(self.owner, self.owner, self.disk, full_retry_s=0.01)

    def store(self, *jobs: StorageJob) -> None:
        self.persistence.take(Turn(storage_jobs=list(jobs)))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def flush(number: int = 1) -> Flush:
    return Flush(number=number, entries=[], hard_states={}, last={})


def write(index: int, group: int = GROUP) -> WriteEntries:
    entry = Entry(index, 1, EntryKind.RECORDS, index, 1, b"payload")
    return WriteEntries(group=group, entries=[entry], limits=LIMITS)


def checkpoint() -> SaveCheckpoint:
    return SaveCheckpoint(group=GROUP, start=START, title="t-0")


def late(job: StorageJob, error: Exception | None = None) -> LateOutcome:
    return LateOutcome(job=job, result=None if error else Written(segments=()), error=error)


# Flushes


def test_one_flush_is_written_at_a_time(bench: Bench) -> None:
    bench.persistence.take(Turn(flush=flush(7)))
    assert bench.persistence.is_flushing

    bench.disk.end(PLACE)

    assert not bench.persistence.is_flushing
    assert bench.owner.told == [("flushed", 7, 3, NOW_MS)]
    assert bench.owner.turns == 1


def test_a_log_that_fails_ends_the_broker_and_nothing_is_flushed(bench: Bench) -> None:
    bench.persistence.take(Turn(flush=flush()))

    bench.disk.end(error=WalFailed("no"))

    assert bench.owner.failures == [(Exit.DISK_FAILED, "the write-ahead log failed: no")]
    assert bench.owner.told == []


def test_a_log_without_room_is_tried_again_until_there_is_some() -> None:
    async def work() -> None:
        bench = Bench()
        bench.persistence.take(Turn(flush=flush()))

        bench.disk.end(error=WalFull("no room"))
        assert bench.owner.is_storage_full
        assert bench.persistence.is_flushing
        await until(lambda: len(bench.disk.given) == 1, "another try")
        bench.disk.end(PLACE)

        assert not bench.owner.is_storage_full
        assert bench.owner.told == [("flushed", 1, 3, NOW_MS)]

    run(work())


def test_cutting_the_log_is_told_to_nobody_unless_it_fails(bench: Bench) -> None:
    bench.persistence.take(Turn(cut_below_file=4))
    bench.disk.end()
    assert bench.owner.told == bench.owner.failures == []

    bench.persistence.take(Turn(cut_below_file=5))
    bench.disk.end(error=WalFailed("no"))

    assert bench.owner.failures[0][0] is Exit.DISK_FAILED


# Jobs


def test_jobs_are_handed_over_in_order_and_their_results_told(bench: Bench) -> None:
    jobs: list[StorageJob] = [write(1), checkpoint()]

    bench.store(*jobs)
    assert bench.disk.waiting() == jobs
    written = Written(segments=())
    bench.disk.end(written)

    assert bench.owner.told == [("stored", jobs[0], written)]


def test_a_job_that_fails_ends_the_broker(bench: Bench) -> None:
    bench.store(checkpoint())

    bench.disk.end(error=DiskFailed("no"))

    ((code, reason),) = bench.owner.failures
    assert code is Exit.DISK_FAILED
    assert reason.startswith("SaveCheckpoint of group 5 failed")


def test_a_mistake_of_ours_in_a_thread_is_not_told_as_a_failed_disk(bench: Bench) -> None:
    bench.persistence.take(Turn(flush=flush(), storage_jobs=[write(1)], cut_below_file=1))

    for _ in range(3):
        bench.disk.end(error=AssertionError("impossible"))

    assert [code for code, _ in bench.owner.failures] == [Exit.FAILED] * 3


def test_a_damaged_group_is_the_node_s_to_refill_and_marked_for_a_restart(bench: Bench) -> None:
    bench.store(write(1))

    bench.disk.end(error=Damaged("a bit flipped"))

    assert bench.owner.told == [("damaged", GROUP)]
    assert bench.disk.said == [("damaged", GROUP)]
    assert bench.owner.failures == []


def test_what_the_node_finds_damaged_is_marked_for_a_restart_before_the_flush(bench: Bench) -> None:
    bench.persistence.take(Turn(flush=flush(), damaged=[(GROUP, "it contradicts its leader's")]))

    assert bench.disk.said[0] == ("damaged", GROUP)


def test_a_settled_group_is_marked_sound(bench: Bench) -> None:
    bench.persistence.take(Turn(settled=[GROUP]))

    assert bench.disk.said == [("sound", GROUP)]


# A full disk


def test_what_finds_no_room_is_tried_again_by_who_keeps_it_and_told_in_order() -> None:
    async def work() -> None:
        bench = Bench()
        jobs: list[StorageJob] = [write(1), write(2), checkpoint()]
        bench.store(*jobs)

        for _ in jobs:
            bench.disk.end(error=DiskFull("no room"))
        assert bench.owner.is_storage_full
        await until(lambda: len(bench.disk.given) == 1, "another try")
        assert bench.disk.waiting() == [GROUP]
        bench.disk.end([late(job) for job in jobs])

        assert [told[1] for told in bench.owner.told] == jobs
        assert not bench.owner.is_storage_full

    run(work())


def test_the_disk_is_full_until_nothing_waits_for_room() -> None:
    async def work() -> None:
        bench = Bench()
        bench.store(write(1), write(2))
        bench.disk.end(error=DiskFull("no room"))
        bench.disk.end(error=DiskFull("no room"))
        await until(lambda: len(bench.disk.given) == 1, "another try")

        bench.disk.end([late(write(1))])
        assert bench.owner.is_storage_full
        await until(lambda: len(bench.disk.given) == 1, "one more try")
        bench.disk.end([late(write(2))])

        assert not bench.owner.is_storage_full

    run(work())


def test_a_job_that_fails_when_there_is_room_ends_the_broker() -> None:
    async def work() -> None:
        bench = Bench()
        bench.store(write(1))
        bench.disk.end(error=DiskFull("no room"))
        await until(lambda: len(bench.disk.given) == 1, "another try")

        bench.disk.end([late(write(1), DiskFailed("no"))])

        assert [failure[0] for failure in bench.owner.failures] == [Exit.DISK_FAILED]

    run(work())


def test_other_groups_are_not_held_up() -> None:
    async def work() -> None:
        bench = Bench()
        bench.store(write(1), write(1, group=6))

        bench.disk.end(error=DiskFull("no room"))
        bench.disk.end(Written(segments=()))

        assert bench.owner.told == [("stored", write(1, group=6), Written(segments=()))]
        assert bench.owner.is_storage_full
        bench.persistence.close()

    run(work())


def test_a_removed_group_needs_no_room_any_more() -> None:
    async def work() -> None:
        bench = Bench()
        bench.store(write(1), RemoveGroup(group=GROUP), write(1, group=6))

        bench.disk.end(error=DiskFull("no room"))
        bench.disk.end()
        assert not bench.owner.is_storage_full
        bench.disk.end(error=DiskFull("no room"))
        await until(lambda: len(bench.disk.given) == 1, "the other group's next try")

        assert bench.disk.waiting() == [6]
        bench.persistence.close()

    run(work())


# Reads


def test_a_read_s_result_goes_to_who_asked(bench: Bench) -> None:
    got: list[object] = []

    bench.persistence.take(Turn(reads=[(READ, got.append)]))
    bench.disk.end([b"batch"])

    assert got == [[b"batch"]]
    assert bench.owner.turns == 1


def test_who_reads_what_is_damaged_gets_nothing_and_the_group_is_refilled(bench: Bench) -> None:
    got: list[object] = []

    bench.persistence.take(Turn(reads=[(READ, got.append)]))
    bench.disk.end(error=Damaged("a bit flipped"))

    assert got == [None]
    assert bench.owner.told == [("damaged", GROUP)]


@pytest.mark.parametrize(
    ("job", "error", "code"),
    [
        (READ, OSError("no"), Exit.DISK_FAILED),
        (READ, IndexError("no"), Exit.FAILED),
        (Compute(function=len, arguments=(b"",)), ValueError("no"), Exit.FAILED),
    ],
)
def test_a_read_that_fails_ends_the_broker_and_tells_nobody_a_result(
    bench: Bench, job: ReadJob, error: Exception, code: Exit
) -> None:
    got: list[object] = []

    bench.persistence.take(Turn(reads=[(job, got.append)]))
    bench.disk.end(error=error)

    assert [failure[0] for failure in bench.owner.failures] == [code]
    assert got == []


# Standing still, and the end


def test_outcomes_wait_while_the_broker_stands_still_and_are_told_in_order(bench: Bench) -> None:
    bench.persistence.take(Turn(flush=flush(1), storage_jobs=[write(1)]))
    bench.persistence.pause()
    bench.disk.end(PLACE)
    bench.disk.end(Written(segments=()))
    assert bench.owner.told == []

    bench.persistence.resume()

    assert [told[0] for told in bench.owner.told] == ["flushed", "stored"]


def test_nothing_is_told_after_the_end_and_nothing_tried_again() -> None:
    async def work() -> None:
        bench = Bench()
        bench.persistence.take(Turn(flush=flush(1), storage_jobs=[write(1)]))
        bench.disk.end(error=WalFull("no room"))

        bench.persistence.close()
        bench.disk.end(Written(segments=()))

        assert bench.owner.told == []
        assert bench.persistence._retries == set()

    run(work())
