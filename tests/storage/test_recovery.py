"""Recovery: what a start finds."""

from __future__ import annotations

import pytest

from tests.storage.broker_disk import (
    FOLDER,
    WAL,
    BrokerDisk,
    indexes,
    membership_entry,
    records,
    recovered_from,
    start_at,
    start_mark,
    term_start,
)
from tidings.raft.entries import HardState, StartState
from tidings.storage.errors import DiskFailed
from tidings.storage.recovery import group_folder
from tidings.storage.wal_format import file_name

VOTE = HardState(term=1, vote=11)


def test_a_blank_folder_has_no_groups() -> None:
    disk = BrokerDisk()

    assert disk.recovered.groups == {}
    assert disk.recovered.torn is None
    assert disk.recovered.damage is None


def test_a_group_is_its_checkpoint_and_the_entries_behind_it() -> None:
    disk = BrokerDisk()
    store = disk.create(1)
    entries = [
        term_start(1, term=1, offset=0),
        records(2, offset=0, count=2),
        membership_entry(3, term=1, offset=2),
    ]
    disk.write(*entries, records(4, offset=2), hard=VOTE)
    disk.apply(*entries)
    store.checkpoint(start_at(3, offset=2, state=b"producers"), "orders-0")

    group = recovered_from(disk.files).groups[1]

    assert group.start == start_at(3, offset=2, state=b"producers")
    assert group.checkpoint is not None
    assert group.checkpoint.title == "orders-0"
    assert group.tail == [records(4, offset=2)]
    assert group.hard == VOTE
    assert group.first_index == 1
    assert (group.damaged, group.doubtful, group.vote_lost) == (None, False, False)


def test_a_young_group_without_a_checkpoint_is_all_in_the_log() -> None:
    disk = BrokerDisk()

    disk.write(records(1), records(2), hard=VOTE)

    group = recovered_from(disk.files).groups[1]
    assert group.checkpoint is None
    assert group.start.index == 0
    assert group.tail == [records(1), records(2)]
    assert group.damaged is None


def test_a_group_that_was_created_and_has_done_nothing_is_whole() -> None:
    disk = BrokerDisk()
    disk.create(1, start_at(0, state=b"state"))

    group = recovered_from(disk.files).groups[1]

    assert group.start.state == b"state"
    assert group.hard == HardState(term=0, vote=0)
    assert group.damaged is None


def test_a_folder_that_nobody_knows_is_left_alone() -> None:
    disk = BrokerDisk()
    path = f"{group_folder(FOLDER, 9)}/{0:020d}-1.log"
    disk.files.open(path, create=True).close()
    disk.files.open(f"{FOLDER}/groups/notes/x", create=True).close()

    again = BrokerDisk(disk.fake.copy())

    assert again.recovered.groups == {}
    assert path in again.fake.paths()


def test_the_oldest_file_with_entries_beyond_the_checkpoint_is_told_per_group() -> None:
    disk = BrokerDisk()
    for group in (1, 2):
        disk.create(group)
        disk.write(records(1), group=group, hard=VOTE)
    disk.apply(records(1), group=2)
    disk.stores[2].checkpoint(start_at(1), "t")
    while disk.wal.current_file == 1:
        disk.write(group=3, hard=VOTE)
    disk.write(records(2), group=1)
    disk.write(records(2), group=2)

    assert recovered_from(disk.files).oldest_files() == {1: 1, 2: 2}


def test_old_files_are_not_needed_for_what_was_checkpointed() -> None:
    disk = BrokerDisk()
    disk.create(1)
    for index in range(1, 20):
        disk.write(records(index, size=500), hard=VOTE if index == 1 else None)
    last = disk.wal.current_file
    disk.apply(*[records(index, size=500) for index in range(1, 20)])
    disk.stores[1].checkpoint(start_at(19), "t")

    disk.wal.cut(disk.wal.oldest_file_needed({1: 19}))

    again = BrokerDisk(disk.fake.copy())
    assert f"{WAL}/{file_name(last)}" in again.fake.paths()
    assert again.recovered.groups[1].damaged is None
    assert again.recovered.groups[1].hard == VOTE
    assert again.stores[1].read_entries(19, 1) == [records(19, size=500)]


def test_a_replaced_log_counts_from_its_start() -> None:
    disk = BrokerDisk()
    store = disk.create(1)
    disk.write(records(1), records(2), hard=VOTE)
    position = disk.write(start_mark(9, term=3), records(10, term=3), hard=HardState(term=3, vote=0))
    store.reset(start_at(9, term=3), "t", wal_sequence=position.sequence)

    group = recovered_from(disk.files).groups[1]

    assert group.start.index == 9
    assert group.first_index == 10
    assert group.tail == [records(10, term=3)]
    assert group.damaged is None


def test_a_log_replaced_by_one_that_starts_lower_is_whole() -> None:
    disk = BrokerDisk()
    store = disk.create(1)
    entries = [records(index) for index in range(1, 20)]
    disk.write(*entries, hard=VOTE)
    disk.apply(*entries)
    store.checkpoint(start_at(19), "t")
    disk.write(records(20))
    position = disk.write(start_mark(5, term=1))
    store.reset(start_at(5), "t", wal_sequence=position.sequence)
    disk.write(records(6))

    group = recovered_from(disk.files).groups[1]

    assert indexes(group.tail) == [6]
    assert group.damaged is None


def test_metadata_needs_no_segments() -> None:
    disk = BrokerDisk()
    disk.write(records(1, offset=0), records(2, offset=0), group=0, hard=VOTE)
    start = StartState(index=1, term=1, offset=0, membership=start_at(0).membership, state=b"cluster")
    disk.create(0, start)

    group = recovered_from(disk.files).groups[0]

    assert group.start.state == b"cluster"
    assert indexes(group.tail) == [2]
    assert group.damaged is None


def test_a_disk_that_fails_under_a_start_is_the_end() -> None:
    disk = BrokerDisk()
    disk.fake.failing_syncs.add(f"{WAL}/{file_name(1)}")

    with pytest.raises(DiskFailed):
        recovered_from(disk.files)
