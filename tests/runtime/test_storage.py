"""A broker's files behind its threads: log, segments, checkpoints, reads; in order, also without room."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.fakes.files import FakeFiles
from tests.runtime.loops import run
from tests.storage.broker_disk import FOLDER, BrokerDisk, batch, indexes, records, recovered_from, start_at
from tidings.node.jobs import (
    BeginGroup,
    Compute,
    DropBelow,
    FindTime,
    ReadEntries,
    ReadJob,
    ReadOffsets,
    RemoveGroup,
    ResetLog,
    SaveCheckpoint,
    SegmentLimits,
    StorageJob,
    WriteEntries,
)
from tidings.raft.entries import Entry, HardState
from tidings.raft.outbox import Flush
from tidings.runtime.storage import LateOutcome, StorageThreads
from tidings.storage.errors import DiskFull, WalFailed
from tidings.storage.recovery import group_folder
from tidings.storage.state_store import StateStore
from tidings.storage.wal import WalPosition

LIMITS = SegmentLimits(segment_bytes=1 << 30, segment_ms=1 << 40)
SMALL = SegmentLimits(segment_bytes=100, segment_ms=1 << 40)
GROUP = 1


class Broker:
    """The threads of one broker, asked one thing after the other."""

    def __init__(self, files: FakeFiles | None = None) -> None:
        self.disk = BrokerDisk(files)
        self.files = self.disk.fake
        self.threads = StorageThreads(
            asyncio.get_running_loop(),
            name="broker-1",
            folder=FOLDER,
            files=self.disk.shared,
            wal=self.disk.wal,
            stores=self.disk.stores,
            metadata=StateStore(self.files, group_folder(FOLDER, 0), group=0, checkpoint=None),
        )

    def store(self, job: StorageJob) -> asyncio.Future[Any]:  # any: the job's result
        outcome = Outcome()
        self.threads.store(job, outcome.tell)
        return outcome.future

    def read(self, job: ReadJob) -> asyncio.Future[Any]:  # any: as above
        outcome = Outcome()
        self.threads.read(job, outcome.tell)
        return outcome.future

    def make_way(self) -> asyncio.Future[list[LateOutcome]]:
        outcome = Outcome()
        self.threads.make_way(GROUP, outcome.tell)
        return outcome.future

    def flush(self, *entries: Entry) -> asyncio.Future[WalPosition]:
        outcome = Outcome()
        made = Flush(
            number=1,
            entries=[(GROUP, entry) for entry in entries],
            hard_states={GROUP: HardState(term=1, vote=11)},
            last={},
        )
        self.threads.write(made, outcome.tell)
        return outcome.future

    async def begin(self, *entries: Entry) -> None:
        """A group with these entries in its segments."""
        await self.store(BeginGroup(group=GROUP, start=start_at(0), title="t-0"))
        await self.store(write(*entries))


class Outcome:
    """What a job came to, to be waited for."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()  # any: as above

    def tell(self, result: object, error: Exception | None) -> None:
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


def write(*entries: Entry, limits: SegmentLimits = LIMITS) -> WriteEntries:
    return WriteEntries(group=GROUP, entries=entries, limits=limits)


def with_broker(work: Any, files: FakeFiles | None = None) -> None:  # any: a coroutine function of a Broker
    async def whole() -> None:
        broker = Broker(files)
        try:
            await work(broker)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, broker.threads.close)

    run(whole())


# The log


def test_what_was_flushed_is_found_by_the_next_start() -> None:
    files = FakeFiles()

    async def work(broker: Broker) -> None:
        first = await broker.flush(records(1))
        second = await broker.flush(records(2), records(3))
        assert second.sequence == first.sequence + 1

    with_broker(work, files)

    group = recovered_from(files).groups[GROUP]
    assert indexes(group.tail) == [1, 2, 3]
    assert group.hard == HardState(term=1, vote=11)


def test_a_log_that_cannot_be_synced_is_told_as_such_and_never_written_again() -> None:
    async def work(broker: Broker) -> None:
        (wal_file,) = (path for path in broker.files.paths() if "/wal/" in path)
        broker.files.failing_syncs.add(wal_file)

        for _ in range(2):
            with pytest.raises(WalFailed):
                await broker.flush(records(1))

    with_broker(work)


def test_a_quick_disk_is_written_to_without_the_thread_and_the_outcome_still_comes_later() -> None:
    async def work(broker: Broker) -> None:
        for number in range(1, 30):
            await broker.flush(records(number))
        outcome = broker.flush(records(30))

        assert not outcome.done()
        await outcome

    with_broker(work)


# Segments


def test_a_new_group_costs_no_file_before_its_first_entry() -> None:
    async def work(broker: Broker) -> None:
        before = broker.files.paths()
        await broker.store(BeginGroup(group=GROUP, start=start_at(0), title="t-0"))
        assert broker.files.paths() == before

        written = await broker.store(write(records(1), records(2)))

        assert [(facts.base_offset, facts.next_offset) for facts in written.segments] == [(0, 2)]
        assert any(path.startswith(group_folder(FOLDER, GROUP)) for path in broker.files.paths())

    with_broker(work)


def test_what_was_written_is_read_by_offset_by_index_and_by_time() -> None:
    async def work(broker: Broker) -> None:
        entries = [records(number, timestamp=100 * number) for number in (1, 2, 3)]
        await broker.begin(*entries)

        by_offset = ReadOffsets(group=GROUP, offset=1, bytes_max=1 << 20, offset_max=3)
        by_index = ReadEntries(group=GROUP, first_index=2, bytes_max=1 << 20)
        assert await broker.read(by_offset) == [entries[1].payload, entries[2].payload]
        assert indexes(await broker.read(by_index)) == [2, 3]
        for timestamp, found in ((150, entries[1]), (None, entries[2])):
            job = FindTime(group=GROUP, timestamp=timestamp, offset_min=0)
            assert await broker.read(job) == [found.payload]
        late = FindTime(group=GROUP, timestamp=301, offset_min=0)
        assert await broker.read(late) == []

    with_broker(work)


def test_a_group_without_files_has_nothing_to_read() -> None:
    async def work(broker: Broker) -> None:
        assert await broker.read(ReadEntries(group=9, first_index=1, bytes_max=1)) is None
        assert await broker.read(FindTime(group=9, timestamp=0, offset_min=0)) == []

    with_broker(work)


def test_a_computation_is_done_beside_the_loop() -> None:
    async def work(broker: Broker) -> None:
        assert await broker.read(Compute(function=max, arguments=(3, 5))) == 5

    with_broker(work)


def test_segments_below_the_log_start_are_dropped() -> None:
    async def work(broker: Broker) -> None:
        await broker.store(BeginGroup(group=GROUP, start=start_at(0), title="t-0"))
        await broker.store(write(*(records(number) for number in range(1, 5)), limits=SMALL))
        await broker.store(SaveCheckpoint(group=GROUP, start=start_at(4), title="t-0"))

        dropped = await broker.store(DropBelow(group=GROUP, log_start_offset=2))

        assert (dropped.index, dropped.offset) == (2, 2)
        assert [facts.base_offset for facts in dropped.segments] == [2, 3]
        gone = ReadOffsets(group=GROUP, offset=0, bytes_max=1 << 20, offset_max=4)
        assert await broker.read(gone) is None

    with_broker(work)


def test_a_checkpoint_is_what_the_next_start_begins_from() -> None:
    files = FakeFiles()

    async def work(broker: Broker) -> None:
        await broker.flush(records(1), records(2))
        await broker.begin(records(1), records(2))
        await broker.store(SaveCheckpoint(group=GROUP, start=start_at(2, state=b"producers"), title="t-0"))
        await broker.store(SaveCheckpoint(group=0, start=start_at(7, state=b"metadata"), title="metadata"))

    with_broker(work, files)

    recovered = recovered_from(files)
    assert recovered.groups[GROUP].start.state == b"producers"
    assert recovered.groups[GROUP].tail == []
    assert recovered.groups[0].start.state == b"metadata"


def test_a_log_that_was_replaced_goes_on_behind_its_new_start() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1), records(2))
        await broker.store(ResetLog(group=GROUP, start=start_at(9), title="t-0", wal_sequence=5))
        await broker.store(ResetLog(group=0, start=start_at(3), title="metadata", wal_sequence=5))

        await broker.store(write(records(10)))

        assert indexes(await broker.read(ReadEntries(group=GROUP, first_index=10, bytes_max=1))) == [10]

    with_broker(work)


def test_a_group_that_was_removed_leaves_no_file() -> None:
    async def work(broker: Broker) -> None:
        before = set(broker.files.paths())
        await broker.begin(records(1))

        await broker.store(RemoveGroup(group=GROUP))
        await broker.store(RemoveGroup(group=GROUP))

        assert set(broker.files.paths()) == before

    with_broker(work)


# Without room


def outcomes(*jobs: asyncio.Future[Any]) -> Coroutine[Any, Any, list[Any]]:  # any: as above
    async def all_of_them() -> list[Any]:  # any: as above
        return await asyncio.gather(*jobs, return_exceptions=True)

    return all_of_them()


def test_what_comes_behind_a_job_that_found_no_room_waits_too() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1))
        broker.files.free_bytes = 0

        first, second, third = (write(records(index)) for index in (2, 3, 4))
        refused = await outcomes(broker.store(first), broker.store(second))
        assert [type(error) for error in refused] == [DiskFull, DiskFull]
        broker.files.free_bytes = None
        assert isinstance((await outcomes(broker.store(third)))[0], DiskFull)
        ended = await broker.make_way()

        assert [(outcome.job, outcome.error) for outcome in ended] == [
            (first, None),
            (second, None),
            (third, None),
        ]
        assert indexes(await broker.read(ReadEntries(group=GROUP, first_index=1, bytes_max=1 << 20))) == [
            1,
            2,
            3,
            4,
        ]

    with_broker(work)


def test_a_job_refused_behind_a_retry_that_is_under_way_is_not_overtaken() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1))
        broker.files.free_bytes = 0
        await outcomes(broker.store(write(records(2))))
        broker.files.free_bytes = None

        behind = broker.store(write(records(3)))  # given before anybody tries again, refused after
        ended = await broker.make_way()
        last = broker.store(write(records(4)))

        assert isinstance((await outcomes(behind))[0], DiskFull)
        assert [outcome.error for outcome in ended] == [None, None]
        await last

    with_broker(work)


def test_a_retry_without_room_keeps_what_waits() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1))
        broker.files.free_bytes = 0
        await outcomes(broker.store(write(records(2))))

        assert await broker.make_way() == []
        broker.files.free_bytes = None
        assert len(await broker.make_way()) == 1
        assert await broker.make_way() == []

    with_broker(work)


def test_a_mistake_among_what_waited_is_told_with_its_job() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1))
        broker.files.free_bytes = 0
        await outcomes(broker.store(write(records(2))), broker.store(write(records(7))))
        broker.files.free_bytes = None

        ended = await broker.make_way()

        assert [type(outcome.error) for outcome in ended] == [type(None), AssertionError]

    with_broker(work)


def test_a_new_group_that_found_no_room_is_made_when_there_is_some() -> None:
    async def work(broker: Broker) -> None:
        broker.files.free_bytes = 0
        await broker.store(BeginGroup(group=GROUP, start=start_at(0), title="t-0"))
        assert isinstance((await outcomes(broker.store(write(records(1)))))[0], DiskFull)

        broker.files.free_bytes = None
        (ended,) = await broker.make_way()

        assert ended.error is None
        assert indexes(await broker.read(ReadEntries(group=GROUP, first_index=1, bytes_max=1))) == [1]

    with_broker(work)


def test_what_makes_room_does_not_wait_for_it() -> None:
    async def work(broker: Broker) -> None:
        await broker.begin(records(1))
        broker.files.free_bytes = 0
        await outcomes(broker.store(write(records(2))))

        await broker.store(DropBelow(group=GROUP, log_start_offset=1))
        await broker.store(RemoveGroup(group=GROUP))

        assert await broker.read(ReadEntries(group=GROUP, first_index=1, bytes_max=1)) is None

    with_broker(work)


# The end


def test_the_end_does_not_wait_for_what_has_not_begun() -> None:
    files = FakeFiles()

    async def work(broker: Broker) -> None:
        await broker.begin(records(1, size=len(batch(0))))
        for number in range(2, 2_000):
            broker.threads.store(write(records(number)), lambda result, error: None)

    with_broker(work, files)

    assert recovered_from(files).groups[GROUP].damaged is None
