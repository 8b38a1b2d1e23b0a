"""Segments: written in order, rolled by size and age, dropped as wholes, replaced in one step."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from tests.fakes.files import Keep, PowerLost
from tests.storage.broker_disk import (
    FOLDER,
    NEVER_FULL,
    BrokerDisk,
    indexes,
    membership_entry,
    records,
    recovered_from,
    start_at,
    start_mark,
    term_start,
)
from tidings.raft.entries import HardState
from tidings.storage.checkpoint import LogStart
from tidings.storage.errors import Damaged, DiskFailed, DiskFull, Gone
from tidings.storage.recovery import group_folder
from tidings.storage.segments import SegmentStore

GROUP = group_folder(FOLDER, 1)


@pytest.fixture
def disk() -> BrokerDisk:
    disk = BrokerDisk()
    disk.create(1)
    disk.write(hard=HardState(term=1, vote=0))
    return disk


@pytest.fixture
def store(disk: BrokerDisk) -> SegmentStore:
    return disk.stores[1]


def base_offsets(store: SegmentStore) -> list[int]:
    return [segment.base_offset for segment in store.segments()]


def test_the_log_file_holds_exactly_the_batches_clients_see(disk: BrokerDisk, store: SegmentStore) -> None:
    entries = [
        term_start(1, term=1, offset=0),
        records(2, offset=0, count=3),
        membership_entry(3, term=1, offset=3),
        records(4, offset=3),
    ]

    disk.apply(*entries)

    assert disk.fake.content(f"{GROUP}/{0:020d}-1.log") == entries[1].payload + entries[3].payload
    assert disk.fake.content(f"{GROUP}/{0:020d}-1.control") == entries[2].payload
    assert len(disk.fake.content(f"{GROUP}/{0:020d}-1.index")) == 4 * 64
    assert (store.last_index, store.next_offset) == (4, 4)


def test_several_entries_are_one_write_per_file(disk: BrokerDisk) -> None:
    disk.apply(records(1))
    steps = disk.fake.steps

    disk.apply(*[records(index) for index in range(2, 100)])

    assert disk.fake.steps == steps + 2


def test_a_segment_is_full_by_size(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(*[records(index) for index in range(1, 6)], segment_bytes=150)
    disk.apply(records(6), segment_bytes=150)

    assert base_offsets(store) == [0, 2, 4]
    assert [segment.size_bytes for segment in store.segments()] == [140, 140, 140]


def test_a_batch_larger_than_a_segment_has_one_of_its_own(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1), records(2, size=500), records(3), segment_bytes=150)

    assert base_offsets(store) == [0, 1, 2]


def test_a_segment_is_full_by_the_age_of_its_first_batch(store: SegmentStore) -> None:
    times = [100, 150, 200, 201, 210]
    entries = [records(index, timestamp=time) for index, time in enumerate(times, start=1)]

    store.append(entries, segment_bytes=NEVER_FULL, segment_ms=100)

    assert base_offsets(store) == [0, 3]
    assert [segment.max_timestamp for segment in store.segments()] == [200, 210]


def test_entries_without_records_fill_no_segment(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(*[term_start(index, term=index, offset=0) for index in range(1, 50)], segment_bytes=1)
    disk.apply(records(50, term=50, offset=0), segment_bytes=1)

    assert len(store.segments()) == 1


def test_without_room_nothing_changed_and_the_same_call_succeeds_later(
    disk: BrokerDisk, store: SegmentStore
) -> None:
    disk.apply(records(1))
    entries = [records(index, size=100) for index in range(2, 8)]
    disk.fake.free_bytes = 300

    with pytest.raises(DiskFull):
        disk.apply(*entries, segment_bytes=250)
    assert store.last_index == 1
    disk.fake.free_bytes = 10_000
    disk.apply(*entries, segment_bytes=250)

    assert store.last_index == 7
    assert store.read_entries(1, NEVER_FULL) == [records(1), *entries[:1]]
    assert store.read_entries(7, NEVER_FULL) == entries[-1:]


def test_a_failed_sync_is_the_end(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1))
    disk.fake.failing_syncs.add(f"{GROUP}/{0:020d}-1.log")

    with pytest.raises(DiskFailed):
        store.checkpoint(start_at(1), "t")


def test_a_checkpoint_must_stand_at_the_last_entry(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1), records(2))

    with pytest.raises(AssertionError):
        store.checkpoint(start_at(1), "t")


def test_entries_must_follow_the_last_one(disk: BrokerDisk) -> None:
    disk.apply(records(1))

    with pytest.raises(AssertionError):
        disk.apply(records(3))


def test_nothing_to_append_is_nothing(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply()

    assert store.segments() == ()


def test_whole_segments_below_the_log_start_are_dropped(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(*[records(index) for index in range(1, 8)], segment_bytes=150)
    store.checkpoint(start_at(7), "t")

    start = store.drop_below(5)

    assert start == store.start == LogStart(index=4, term=1, offset=4)
    assert base_offsets(store) == [4, 6]
    assert not [path for path in disk.fake.paths() if "/00000000000000000000-" in path]
    with pytest.raises(Gone):
        store.read_offset(3, 1, NEVER_FULL)
    group = recovered_from(disk.files).groups[1]
    assert group.damaged is None
    assert group.log_start == start
    assert group.start.log_start_offset == 4


def test_a_kill_and_a_power_loss_while_segments_are_dropped_lose_none_that_is_needed() -> None:
    for step in range(20):
        disk = BrokerDisk()
        entries = [records(index, size=400) for index in range(1, 12)]
        disk.create(1)
        disk.write(*entries, hard=HardState(term=1, vote=0))
        disk.apply(*entries, segment_bytes=900)
        disk.stores[1].checkpoint(start_at(11), "t")
        disk = BrokerDisk(disk.fake.copy())
        disk.wal.cut(disk.wal.current_file)
        disk.fake.crash_at_step = disk.fake.steps + step
        with suppress(PowerLost):
            disk.stores[1].drop_below(9)
        killed = BrokerDisk(disk.fake.after_crash(Random(step), Keep.EVERYTHING))

        for seed in range(5):
            group = recovered_from(killed.fake.after_crash(Random(seed), Keep.PAGES)).groups[1]

            assert group.damaged is None, (step, seed)
            assert group.log_start.index in (0, 8)


def test_the_active_segment_is_dropped_too_and_the_log_goes_on_behind_it(
    disk: BrokerDisk, store: SegmentStore
) -> None:
    disk.apply(*[records(index) for index in range(1, 5)], segment_bytes=150)
    store.checkpoint(start_at(4), "t")

    start = store.drop_below(4)
    disk.apply(records(5))
    store.checkpoint(start_at(5), "t")

    assert start == LogStart(index=4, term=1, offset=4)
    assert base_offsets(store) == [4]
    assert indexes(store.read_entries(5, NEVER_FULL)) == [5]
    assert recovered_from(disk.files).groups[1].damaged is None


def test_a_log_of_which_everything_was_dropped_is_found_again_by_a_start(
    disk: BrokerDisk, store: SegmentStore
) -> None:
    disk.write(*[records(index) for index in range(1, 5)], hard=HardState(term=1, vote=0))
    disk.apply(*[records(index) for index in range(1, 5)], segment_bytes=150)
    store.checkpoint(start_at(4), "t")
    store.drop_below(4)

    again = BrokerDisk(disk.files)

    assert again.recovered.groups[1].damaged is None
    assert again.stores[1].start == LogStart(index=4, term=1, offset=4)
    assert again.stores[1].read_offset(4, 1, NEVER_FULL) == []


def test_an_active_segment_without_batches_is_kept(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(term_start(1, term=1, offset=0))
    store.checkpoint(start_at(1, offset=0), "t")

    store.drop_below(NEVER_FULL)

    assert base_offsets(store) == [0]


def test_a_segment_beyond_the_checkpoint_is_kept(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1), records(2), records(3), segment_bytes=150)
    store.checkpoint(start_at(3), "t")
    disk.apply(*[records(index) for index in range(4, 8)], segment_bytes=150)

    store.drop_below(7)

    assert base_offsets(store) == [2, 4, 6]


def test_a_dropped_file_gives_its_room_back_though_a_reader_had_it_open(
    disk: BrokerDisk, store: SegmentStore
) -> None:
    disk.apply(*[records(index) for index in range(1, 5)], segment_bytes=150)
    store.checkpoint(start_at(4), "t")
    store.read_offset(0, 1, NEVER_FULL)

    store.drop_below(2)

    disk.shared.read.trim()
    with pytest.raises(FileNotFoundError):
        disk.shared.read.read(f"{GROUP}/{0:020d}-1.log", 1, 0)


def test_a_replaced_log_is_empty_behind_its_start(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(*[records(index) for index in range(1, 8)], segment_bytes=150)
    store.checkpoint(start_at(7), "t")
    position = disk.write(start_mark(20, term=3), hard=HardState(term=3, vote=0))

    store.reset(start_at(20, term=3, offset=50, state=b"s"), "t", wal_sequence=position.sequence)

    assert store.segments() == ()
    assert [path for path in disk.fake.paths() if path.startswith(GROUP)] == [f"{GROUP}/checkpoint"]
    disk.apply(records(21, term=3, offset=50))
    assert store.read_offset(50, 1, NEVER_FULL) == [records(21, term=3, offset=50).payload]


def test_a_log_can_be_replaced_by_one_with_the_same_names(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1), records(2))
    store.checkpoint(start_at(2), "t")
    store.read_offset(0, 1, NEVER_FULL)
    position = disk.write(start_mark(0, term=0))

    store.reset(start_at(0), "t", wal_sequence=position.sequence)
    disk.apply(records(1, term=5), records(2, term=5))

    assert store.read_entries(1, NEVER_FULL) == [records(1, term=5), records(2, term=5)]


def test_a_damaged_store_takes_nothing_until_it_is_replaced(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1), records(2))
    store.checkpoint(start_at(2), "t")
    files = disk.fake.copy()
    files.lose(f"{GROUP}/{0:020d}-1.index")
    again = BrokerDisk(files)
    damaged = again.stores[1]

    with pytest.raises(Damaged):
        again.apply(records(3))
    with pytest.raises(Damaged):
        damaged.checkpoint(start_at(2), "t")
    with pytest.raises(Damaged):
        damaged.drop_below(1)
    damaged.reset(start_at(9), "t", wal_sequence=again.write(start_mark(9, term=1)).sequence)

    again.apply(records(10))
    assert damaged.last_index == 10


def test_a_damaged_store_keeps_its_files(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(*[records(index) for index in range(1, 8)], segment_bytes=150)
    store.checkpoint(start_at(7), "t")
    disk.apply(records(8))
    files = disk.fake.copy()
    files.lose(f"{GROUP}/{0:020d}-1.index")
    paths = files.paths()

    BrokerDisk(files)

    assert [path for path in files.paths() if path.startswith(GROUP)] == [
        path for path in paths if path.startswith(GROUP)
    ]


def test_a_removed_group_leaves_nothing(disk: BrokerDisk, store: SegmentStore) -> None:
    disk.apply(records(1))
    store.checkpoint(start_at(1), "t")

    store.remove()

    assert not [path for path in disk.fake.paths() if path.startswith(GROUP)]
    with pytest.raises(Gone):
        store.read_offset(0, 1, NEVER_FULL)
    with pytest.raises(Damaged):
        disk.apply(records(2))


def test_bytes_behind_the_checkpoint_are_cut_at_start_and_written_again(
    disk: BrokerDisk, store: SegmentStore
) -> None:
    entries = [records(index) for index in range(1, 8)]
    disk.write(*entries)
    disk.apply(*entries[:3], segment_bytes=150)
    store.checkpoint(start_at(3), "t")
    disk.apply(*entries[3:], segment_bytes=150)

    again = BrokerDisk(disk.fake.copy())

    assert again.stores[1].last_index == 3
    assert again.recovered.groups[1].tail == entries[3:]
    assert not [path for path in again.fake.paths() if "-7." in path]
    assert len(again.fake.content(f"{GROUP}/{2:020d}-3.log")) == 70
    assert len(again.fake.content(f"{GROUP}/{2:020d}-3.index")) == 64
    again.apply(*entries[3:], segment_bytes=150)
    assert again.stores[1].read_entries(7, 1) == entries[6:]
