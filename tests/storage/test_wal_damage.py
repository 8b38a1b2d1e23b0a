"""Damage of the write-ahead log: told from a torn tail, never silent, and forgotten only when it is
mended."""

from __future__ import annotations

import struct
from random import Random

import google_crc32c
import pytest

from tests.fakes.files import FakeFiles, Keep
from tests.storage.broker_disk import (
    SALT,
    WAL,
    BrokerDisk,
    Written,
    indexes,
    membership_entry,
    records,
    recovered_from,
    start_at,
    start_mark,
)
from tidings.raft.entries import HardState, Membership, StartState
from tidings.storage.errors import FormatTooNew
from tidings.storage.recovery import Recovered
from tidings.storage.wal_format import FILE_HEADER, FILE_MAGIC, HEADER_BYTES, Mark, Salt, file_name

FIRST = f"{WAL}/{file_name(1)}"
SECOND = f"{WAL}/{file_name(2)}"
VOTE = HardState(term=1, vote=11)


def written_disk(flush_count: int = 5, *, size: int = 70) -> tuple[BrokerDisk, list[int]]:
    """A disk with some flushes of one entry, and where in the first file each of them ends."""
    disk = BrokerDisk()
    ends = [disk.write(hard=VOTE).file_bytes]
    ends += [disk.write(records(index, size=size)).file_bytes for index in range(1, flush_count + 1)]
    return disk, ends


def flipped(disk: BrokerDisk, position: int, path: str = FIRST) -> Recovered:
    files = disk.fake.copy()
    files.flip(path, position)
    return recovered_from(files)


def test_a_flipped_bit_in_the_last_flush_makes_doubtful() -> None:
    disk, ends = written_disk()

    for position in range(ends[-2], ends[-1]):
        found = flipped(disk, position)
        assert found.damage is None
        assert found.torn is not None
        assert found.groups[1].doubtful
        assert found.groups[1].damaged is None
        assert indexes(found.groups[1].tail) == [1, 2, 3, 4]


def test_a_flipped_bit_in_any_flush_before_is_damage() -> None:
    disk, ends = written_disk()

    for position in range(64 + HEADER_BYTES, ends[-2]):
        found = flipped(disk, position)
        assert found.damage is not None, position
        assert found.groups[1].damaged is not None, position


def test_a_flipped_bit_in_a_file_header_is_damage_or_no_matter() -> None:
    disk, _ = written_disk()

    for position in range(40):
        assert flipped(disk, position).damage is not None, position
    for position in range(40, 64):
        assert indexes(flipped(disk, position).groups[1].tail) == [1, 2, 3, 4, 5]


def test_a_flipped_bit_in_the_end_mark_makes_doubtful_and_loses_nothing() -> None:
    disk, ends = written_disk()

    for position in range(ends[-1], ends[-1] + HEADER_BYTES):
        found = flipped(disk, position)
        assert found.groups[1].doubtful
        assert indexes(found.groups[1].tail) == [1, 2, 3, 4, 5]


def test_a_flipped_bit_behind_the_end_is_no_matter() -> None:
    disk, ends = written_disk()

    found = flipped(disk, ends[-1] + HEADER_BYTES + 5)

    assert found.torn is None
    assert not found.groups[1].doubtful


def test_a_flipped_bit_in_the_seal_of_a_file_is_no_matter() -> None:
    disk = BrokerDisk()
    for index in range(1, 15):
        if disk.write(records(index, size=500)).file_number == 1:
            end = disk.wal.total_bytes

    found = flipped(disk, end + 3)

    assert found.torn is None
    assert found.damage is None
    assert len(found.groups[1].tail) == 14


@pytest.mark.parametrize("length", [1, 31, 32, 33, 100])
def test_a_zeroed_last_flush_is_not_taken_for_the_end(length: int) -> None:
    disk, ends = written_disk()
    content = bytearray(disk.fake.content(FIRST))
    content[ends[-2] : ends[-2] + length] = bytes(length)
    disk.fake.overwrite(FIRST, bytes(content))

    assert recovered_from(disk.files).groups[1].doubtful


def test_a_zeroed_flush_in_the_middle_is_not_taken_for_the_end() -> None:
    disk, ends = written_disk()
    content = bytearray(disk.fake.content(FIRST))
    content[ends[1] : ends[2]] = bytes(ends[2] - ends[1])
    disk.fake.overwrite(FIRST, bytes(content))

    assert recovered_from(disk.files).damage is not None


def test_a_file_cut_short_in_the_middle_makes_doubtful() -> None:
    disk, ends = written_disk()
    disk.fake.overwrite(FIRST, disk.fake.content(FIRST)[: ends[-2] + 10])

    found = recovered_from(disk.files)

    assert found.groups[1].doubtful
    assert indexes(found.groups[1].tail) == [1, 2, 3, 4]


def test_a_missing_newest_file_is_damage() -> None:
    disk, _ = written_disk(15, size=500)
    disk.fake.lose(f"{WAL}/{file_name(disk.wal.current_file)}")

    found = recovered_from(disk.files)

    assert found.damage is not None
    assert found.groups[1].damaged is not None


def test_a_missing_newest_file_is_damage_after_a_crash_too() -> None:
    disk, _ = written_disk(15, size=500)
    files = disk.fake.after_crash(Random(1), Keep.NOTHING)
    files.lose(f"{WAL}/{file_name(disk.wal.current_file)}")

    assert recovered_from(files).damage is not None


def test_an_empty_newest_file_is_damage() -> None:
    disk, _ = written_disk(15, size=500)
    disk.fake.overwrite(f"{WAL}/{file_name(disk.wal.current_file)}", bytes(4096))

    assert recovered_from(disk.files).groups[1].damaged is not None


def test_a_missing_file_in_the_middle_is_damage() -> None:
    disk, _ = written_disk(80, size=500)
    assert disk.wal.current_file > 2
    disk.fake.lose(SECOND)

    assert recovered_from(disk.files).groups[1].damaged is not None


def test_a_missing_oldest_file_is_damage_of_the_groups_that_need_it() -> None:
    disk, _ = written_disk(15, size=500)
    disk.write(records(1), group=2, hard=VOTE)
    disk.fake.lose(FIRST)

    found = recovered_from(disk.files)

    assert found.groups[1].damaged is not None
    assert found.groups[2].damaged is None
    assert indexes(found.groups[2].tail) == [1]


def test_a_missing_log_is_damage_of_every_group_with_a_past() -> None:
    disk = BrokerDisk()
    disk.create(1)
    disk.create(2)
    disk.write(records(1), hard=VOTE)
    disk.apply(records(1))
    disk.stores[1].checkpoint(start_at(1), "t")
    for path in disk.fake.paths():
        if path.startswith(WAL):
            disk.fake.lose(path)

    found = recovered_from(disk.files)

    assert found.groups[1].damaged is not None
    assert found.groups[1].vote_lost
    assert found.groups[1].doubtful
    assert found.groups[2].damaged is None


def test_a_log_that_ends_before_a_flush_on_which_a_checkpoint_rests_is_damaged() -> None:
    disk = BrokerDisk()
    store = disk.create(1)
    position = disk.write(start_mark(9, term=1), hard=VOTE)
    store.reset(start_at(9), "t", wal_sequence=position.sequence)
    files = disk.fake.copy()
    files.overwrite(FIRST, files.content(FIRST)[:64])

    again = BrokerDisk(files)

    assert "ends before flush 2" in str(again.recovered.damage)
    assert again.wal.write(Written()).sequence > position.sequence


def test_damage_in_an_older_file_spares_groups_that_are_checkpointed_beyond_it() -> None:
    disk = BrokerDisk()
    for group in (1, 2):
        disk.create(group)
        disk.write(records(1), group=group, hard=VOTE)
    end = disk.wal.total_bytes
    disk.apply(records(1), group=2)
    disk.stores[2].checkpoint(start_at(1), "t")
    for index in range(2, 15):
        disk.write(records(index, size=500), group=1)

    found = flipped(disk, end - 40)

    assert found.damage is not None
    assert found.groups[1].damaged is not None
    assert not found.groups[1].vote_lost
    assert found.groups[2].damaged is None
    assert found.groups[2].hard == VOTE


def test_a_damaged_group_stays_damaged_until_it_is_refilled() -> None:
    disk, ends = written_disk()
    files = disk.fake.copy()
    files.flip(FIRST, ends[1])
    once = BrokerDisk(files)
    twice = BrokerDisk(once.fake.copy())
    assert once.recovered.groups[1].damaged is not None
    assert twice.recovered.groups[1].damaged is not None
    assert twice.recovered.damage is None  # it was judged: only its verdict remains

    store = twice.create(1)
    position = twice.write(start_mark(50, term=4), hard=HardState(term=4, vote=0))
    store.reset(start_at(50, term=4), "t", wal_sequence=position.sequence)
    twice.wal.mark(1, Mark.NONE)
    twice.write(records(51, term=4))

    group = recovered_from(twice.files).groups[1]
    assert group.damaged is None
    assert indexes(group.tail) == [51]


def test_the_log_goes_on_behind_damage() -> None:
    disk, ends = written_disk()
    files = disk.fake.copy()
    files.flip(FIRST, ends[1])
    again = BrokerDisk(files)

    for index in range(1, 20):
        again.write(records(index, size=500), group=9, hard=VOTE)

    found = recovered_from(again.files)
    assert found.damage is None
    assert indexes(found.groups[9].tail) == list(range(1, 20))
    assert found.groups[1].damaged is not None


def test_doubt_outlives_restarts() -> None:
    disk, ends = written_disk()
    files = disk.fake.copy()
    files.flip(FIRST, ends[-1] - 1)

    again = BrokerDisk(BrokerDisk(files).fake.copy())

    assert again.recovered.torn is None
    assert again.recovered.groups[1].doubtful
    again.write(records(5))
    assert indexes(recovered_from(again.files).groups[1].tail) == [1, 2, 3, 4, 5]


def test_a_newer_version_is_refused_by_name() -> None:
    disk, _ = written_disk()
    fields = FILE_HEADER.pack(FILE_MAGIC, 2, 0, 1, 1, 0)
    header = fields + struct.pack("<I", google_crc32c.extend(Salt(SALT).file, fields))
    disk.fake.overwrite(FIRST, header + disk.fake.content(FIRST)[len(header) :])

    with pytest.raises(FormatTooNew, match=r"00000001\.wal has format version 2"):
        recovered_from(disk.files)


def test_a_log_of_another_folder_is_damage() -> None:
    other = BrokerDisk(FakeFiles())
    other.write(records(1), hard=VOTE)
    disk, _ = written_disk()
    content = bytearray(disk.fake.content(FIRST))
    content[:64] = bytes(64)
    disk.fake.overwrite(FIRST, bytes(content))

    assert recovered_from(disk.files).damage is not None


def test_what_the_disk_cannot_read_is_damage() -> None:
    disk, _ = written_disk()
    disk.create(1)
    disk.fake.unreadable.add(FIRST)

    assert recovered_from(disk.files).damage is not None


def test_a_zeroed_only_file_is_damage() -> None:
    disk, _ = written_disk()
    disk.fake.overwrite(FIRST, bytes(4096))

    assert recovered_from(disk.files).damage is not None


def test_a_group_first_seen_behind_damage_is_damaged_though_its_vote_is_known() -> None:
    disk = BrokerDisk()
    disk.write(records(1), group=2, hard=VOTE)
    end = disk.write(records(1)).file_bytes
    disk.write(hard=VOTE)
    disk.write(hard=VOTE)

    assert "the end of its log is not known" in str(flipped(disk, end - 1).groups[1].damaged)


def test_a_search_behind_damage_passes_the_flushes_of_an_older_use() -> None:
    disk = BrokerDisk(first_file_bytes=4096, file_bytes_max=4096)
    for index in range(1, 30):
        disk.write(records(index), records(index + 1))
        if disk.wal.current_file == 2:
            break
    disk.wal.cut(2)
    while disk.wal.current_file < 4:
        disk.write(records(disk.recovered.wal.sequence))
    position = disk.write(records(99), group=5)
    path = f"{WAL}/{file_name(4)}"
    assert disk.fake.content(path).count(b"FLSH") > 2

    found = flipped(disk, position.file_bytes - 1, path)

    assert found.damage is None
    assert found.torn is not None


ALONE = StartState(index=0, term=0, offset=0, membership=Membership(voters=(11,)))


def test_a_log_that_never_had_another_voter_keeps_all_before_the_damage() -> None:
    disk = BrokerDisk()
    disk.create(1, ALONE)
    ends = [disk.write(records(index), hard=VOTE).file_bytes for index in range(1, 6)]

    found = flipped(disk, ends[2] + HEADER_BYTES).groups[1]  # of the fourth

    assert found.damaged is not None
    assert indexes(found.tail) == [1, 2, 3]


def test_a_log_that_never_had_another_voter_has_no_hole_where_the_lost_flush_had_nothing_of_it() -> None:
    disk = BrokerDisk()
    disk.create(1, ALONE)
    disk.create(2, ALONE)
    disk.write(records(1), hard=VOTE)
    lost = disk.write(records(1), group=2, hard=VOTE).file_bytes
    disk.write(records(2))
    disk.write(records(2), group=2)

    found = flipped(disk, lost - 1).groups

    assert [found[1].damaged is None, found[2].damaged is None] == [False, False]
    assert [indexes(found[1].tail), indexes(found[2].tail)] == [[1, 2], []]


def test_a_log_that_may_have_had_another_voter_keeps_nothing_that_may_have_been_replaced() -> None:
    disk = BrokerDisk()
    disk.create(1, ALONE)
    disk.write(records(1), membership_entry(2, term=1, offset=1), hard=VOTE)
    lost = disk.write(records(3, offset=1)).file_bytes
    disk.write(records(4, offset=2))

    found = flipped(disk, lost - 1).groups[1]

    assert found.damaged is not None
    assert found.tail == []
