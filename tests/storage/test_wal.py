"""The write-ahead log's writer: durable when it returns, never again after a failure, short files made
ahead."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.files import Keep
from tests.storage.broker_disk import WAL, BrokerDisk, Written, indexes, records, recovered_from
from tidings.raft.entries import HardState
from tidings.storage.errors import WalFailed, WalFull
from tidings.storage.wal_format import Mark, file_name

FIRST = f"{WAL}/{file_name(1)}"


def test_a_flush_is_on_disk_when_write_returns() -> None:
    disk = BrokerDisk()

    disk.write(records(1), records(2), hard=HardState(term=1, vote=11))

    group = recovered_from(disk.fake.after_crash(Random(1), Keep.NOTHING)).groups[1]
    assert group.tail == [records(1), records(2)]
    assert group.hard == HardState(term=1, vote=11)
    assert group.damaged is None
    assert not group.doubtful


def test_entries_of_many_groups_share_one_write_and_one_sync() -> None:
    disk = BrokerDisk(first_file_bytes=1 << 16)
    steps = disk.fake.steps

    disk.wal.write(Written(entries=[(group, records(1)) for group in range(1, 101)]))

    assert disk.fake.steps == steps + 2
    assert sorted(recovered_from(disk.files).groups) == list(range(1, 101))


def test_a_large_payload_arrives_whole() -> None:
    disk = BrokerDisk()
    entries = [records(1, size=100), records(2, size=20_000), records(3, size=4096), records(4, size=50)]

    disk.write(*entries)

    assert recovered_from(disk.files).groups[1].tail == entries


def test_a_flush_larger_than_a_file_gets_a_file_of_its_size() -> None:
    disk = BrokerDisk(first_file_bytes=4096, file_bytes_max=4096)

    position = disk.write(records(1, size=100_000))

    assert position.file_number == 2
    assert len(disk.fake.content(f"{WAL}/{file_name(2)}")) > 100_000
    assert indexes(recovered_from(disk.files).groups[1].tail) == [1]


def test_a_full_file_is_followed_by_the_next() -> None:
    disk = BrokerDisk()

    positions = [disk.write(records(index, size=500)) for index in range(1, 31)]

    assert positions[0].file_number == 1
    assert positions[-1].file_number > 1
    assert [position.sequence for position in positions] == sorted({p.sequence for p in positions})
    assert indexes(recovered_from(disk.files).groups[1].tail) == list(range(1, 31))


def test_files_grow_until_their_largest_size() -> None:
    disk = BrokerDisk(first_file_bytes=4096, file_bytes_max=16384)

    for index in range(1, 100):
        disk.write(records(index, size=500))

    sizes = [len(disk.fake.content(path)) for path in disk.fake.paths()]
    assert sizes[:3] == [4096, 16384, 16384]


def test_hard_states_do_not_need_the_file_they_were_written_in() -> None:
    disk = BrokerDisk()
    disk.write(hard=HardState(term=7, vote=12), group=3)
    for index in range(1, 10):
        disk.write(records(index, size=500))

    disk.wal.cut(disk.wal.current_file)

    assert FIRST not in disk.fake.paths()
    assert recovered_from(disk.files).groups[3].hard == HardState(term=7, vote=12)


def test_after_a_failed_sync_nothing_is_ever_written_again() -> None:
    disk = BrokerDisk()
    disk.fake.failing_syncs.add(FIRST)

    with pytest.raises(WalFailed):
        disk.write(records(1))
    steps = disk.fake.steps
    with pytest.raises(WalFailed):
        disk.write(records(1))
    with pytest.raises(WalFailed):
        disk.wal.cut(1)

    assert disk.fake.steps == steps


def test_without_room_for_the_next_file_nothing_of_the_flush_is_written() -> None:
    disk = BrokerDisk()
    disk.write(*[records(index, size=500) for index in range(1, 7)])
    disk.fake.free_bytes = 100
    before = disk.fake.content(FIRST)

    with pytest.raises(WalFull):
        disk.write(records(7, size=900))

    assert disk.fake.content(FIRST) == before
    assert indexes(recovered_from(disk.files).groups[1].tail) == list(range(1, 7))


def test_writing_goes_on_when_there_is_room_again() -> None:
    disk = BrokerDisk()
    disk.write(*[records(index, size=500) for index in range(1, 7)])
    disk.fake.free_bytes = 100
    with pytest.raises(WalFull):
        disk.write(records(7, size=900))
    disk.fake.free_bytes = 1 << 20

    disk.write(records(7, size=900))

    assert indexes(recovered_from(disk.files).groups[1].tail) == list(range(1, 8))


def test_space_is_ready_until_half_of_the_last_file_is_used_and_again_once_prepared() -> None:
    disk = BrokerDisk()
    assert disk.wal.space_ready

    disk.write(*[records(index, size=500) for index in range(1, 5)])
    assert not disk.wal.space_ready
    disk.wal.prepare_next()

    assert disk.wal.space_ready


def test_a_prepared_file_needs_no_room_when_it_is_taken() -> None:
    disk = BrokerDisk()
    disk.wal.prepare_next()
    disk.fake.free_bytes = 0

    for index in range(1, 13):
        disk.write(records(index, size=500))

    assert disk.wal.current_file == 2
    assert indexes(recovered_from(disk.files).groups[1].tail) == list(range(1, 13))


def test_preparing_without_room_is_refused_and_leaves_nothing_behind() -> None:
    disk = BrokerDisk()
    paths = disk.fake.paths()
    disk.fake.free_bytes = 5000

    with pytest.raises(WalFull):
        disk.wal.prepare_next()

    assert disk.fake.paths() == paths
    assert disk.fake.free_bytes == 5000
    disk.write(records(1))


def test_a_failed_sync_while_preparing_ends_the_log() -> None:
    disk = BrokerDisk()
    disk.fake.failing_syncs.add(f"{WAL}/spare-2.wal")

    with pytest.raises(WalFailed):
        disk.wal.prepare_next()

    with pytest.raises(WalFailed):
        disk.write(records(1))


def test_a_file_is_needed_while_a_group_has_entries_beyond_its_checkpoint() -> None:
    disk = BrokerDisk()
    disk.write(records(1), records(2), group=1)
    disk.write(records(1), group=2)
    for index in range(2, 12):
        disk.write(records(index, size=500), group=2)
    assert disk.wal.current_file == 2

    assert disk.wal.oldest_file_needed({1: 1, 2: 11}) == 1
    assert disk.wal.oldest_file_needed({1: 2, 2: 11}) == 2
    assert disk.wal.groups_holding(2, {1: 1, 2: 11}) == {1: 2}
    assert set(disk.wal.groups_holding(2, {})) == {1, 2}


def test_a_tail_written_again_frees_the_older_files() -> None:
    disk = BrokerDisk()
    disk.write(records(1), records(2), records(3), group=1)
    for index in range(1, 12):
        disk.write(records(index, size=500), group=2)

    disk.write(records(2), records(3), group=1)

    assert disk.wal.oldest_file_needed({1: 1, 2: 11}) == disk.wal.current_file
    disk.wal.cut(disk.wal.current_file)
    assert disk.wal.oldest_file_needed({}) == disk.wal.current_file


def test_a_removed_group_holds_no_file() -> None:
    disk = BrokerDisk()
    disk.write(records(1), group=1, hard=HardState(term=1, vote=0))
    for index in range(1, 12):
        disk.write(records(index, size=500), group=2)

    disk.wal.forget(1)
    disk.wal.write(Written())

    assert disk.wal.oldest_file_needed({2: 11}) == disk.wal.current_file
    assert 1 not in recovered_from(disk.files).groups


def test_a_group_that_comes_back_has_nothing_of_its_first_life() -> None:
    disk = BrokerDisk()
    disk.write(records(1), records(2), records(3), hard=HardState(term=4, vote=11))

    disk.wal.forget(1)
    disk.write(records(1, term=5))

    assert recovered_from(disk.files).groups[1].tail == [records(1, term=5)]


def test_a_cut_file_is_used_again() -> None:
    disk = BrokerDisk(first_file_bytes=4096, file_bytes_max=4096)
    for index in range(1, 9):
        disk.write(records(index, size=500))
    disk.wal.cut(disk.wal.current_file)
    assert f"{WAL}/spare-3.wal" in disk.fake.paths()

    for index in range(9, 17):
        disk.write(records(index, size=500))

    assert f"{WAL}/spare-3.wal" not in disk.fake.paths()
    assert disk.wal.current_file == 3
    assert recovered_from(disk.files).torn is None


def test_each_process_begins_a_file_of_its_own() -> None:
    disk = BrokerDisk()
    disk.write(records(1))
    before = disk.fake.content(FIRST)

    again = BrokerDisk(disk.fake.copy())
    again.write(records(2))

    assert again.wal.current_file == 2
    changed = [
        at for at, (old, new) in enumerate(zip(before, again.fake.content(FIRST), strict=True)) if old != new
    ]
    assert max(changed) - min(changed) < 32  # the mark that seals it, nothing else
    assert indexes(recovered_from(again.files).groups[1].tail) == [1, 2]


def test_marks_survive_restarts_until_they_are_taken_off() -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=HardState(term=1, vote=0))
    disk.wal.mark(1, Mark.DOUBTFUL)
    disk.write(records(2))

    second = BrokerDisk(disk.fake.copy())
    third = BrokerDisk(second.fake.copy())
    assert third.recovered.groups[1].doubtful
    third.wal.mark(1, Mark.NONE)
    third.write(records(3))

    assert not recovered_from(third.files).groups[1].doubtful


def test_an_empty_flush_writes_the_marks() -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=HardState(term=1, vote=0))
    disk.wal.mark(1, Mark.DAMAGED)

    disk.wal.write(Written())

    assert recovered_from(disk.files).groups[1].damaged is not None


def test_a_log_that_cannot_be_opened_says_so() -> None:
    disk = BrokerDisk()
    files = disk.fake.copy()
    files.failing_syncs.add(f"{WAL}/spare-1.wal")

    with pytest.raises(WalFailed):
        BrokerDisk(files)
