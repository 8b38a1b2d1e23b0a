"""Damage of a group's own files: found at start or when read, and never the matter of another group."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import (
    FOLDER,
    NEVER_FULL,
    BrokerDisk,
    membership_entry,
    records,
    recovered_from,
    start_at,
)
from tidings.raft.entries import Entry, HardState
from tidings.storage.errors import Damaged, FormatTooNew
from tidings.storage.recovery import group_folder

GROUP = group_folder(FOLDER, 1)
OLD_STEM = f"{GROUP}/{0:020d}-1"
NEW_STEM = f"{GROUP}/{2:020d}-3"
ENTRIES = [*[records(index) for index in range(1, 5)], membership_entry(5, term=1, offset=4)]


@pytest.fixture
def files() -> FakeFiles:
    """Two groups, checkpointed at index 5, in two segments; entries 6 in the write-ahead log."""
    disk = BrokerDisk()
    for group in (1, 2):
        disk.create(group)
        disk.write(*ENTRIES, records(6, offset=4), group=group, hard=HardState(term=1, vote=11))
        disk.apply(*ENTRIES, group=group, segment_bytes=150)
        disk.stores[group].checkpoint(start_at(5, offset=4), "t")
    return disk.fake.copy()


def damage_at_start(files: FakeFiles) -> str | None:
    """What is wrong with group 1; group 2 must be as it was."""
    recovered = recovered_from(files)
    other = recovered.groups[2]
    assert (other.damaged, other.doubtful, other.tail) == (None, False, [records(6, offset=4)])
    assert not recovered.groups[1].doubtful
    return recovered.groups[1].damaged


def test_intact_files_are_intact(files: FakeFiles) -> None:
    assert damage_at_start(files) is None


@pytest.mark.parametrize(
    "path",
    [
        f"{OLD_STEM}.log",
        f"{OLD_STEM}.index",
        f"{NEW_STEM}.log",
        f"{NEW_STEM}.index",
        f"{NEW_STEM}.control",
    ],
)
def test_a_deleted_file_is_damage(files: FakeFiles, path: str) -> None:
    files.lose(path)

    assert "missing or cut short" in str(damage_at_start(files))


@pytest.mark.parametrize("name", ["index", "log", "control"])
def test_a_short_file_is_damage(files: FakeFiles, name: str) -> None:
    path = f"{NEW_STEM}.{name}"
    files.overwrite(path, files.content(path)[:-1])

    assert "missing or cut short" in str(damage_at_start(files))


def test_a_flipped_bit_in_the_newest_rows_is_found_at_start(files: FakeFiles) -> None:
    path = f"{NEW_STEM}.index"
    for position in range(0, len(files.content(path)), 5):
        files.flip(path, position)
        assert damage_at_start(files) is not None
        files.flip(path, position)


def test_rows_of_another_log_are_damage(files: FakeFiles) -> None:
    files.overwrite(f"{NEW_STEM}.index", files.content(f"{OLD_STEM}.index") + bytes(64))

    assert damage_at_start(files) is not None


def test_a_newest_segment_that_ends_elsewhere_is_damage(files: FakeFiles) -> None:
    other = BrokerDisk()
    other.create(1)
    other.apply(*ENTRIES[:2], records(3, term=9), segment_bytes=150)
    other.apply(records(4, term=9), records(5, term=9))
    files.overwrite(f"{NEW_STEM}.index", other.fake.content(f"{NEW_STEM}.index"))

    assert "ends elsewhere" in str(damage_at_start(files))


def test_an_index_that_cannot_be_read_is_damage(files: FakeFiles) -> None:
    files.unreadable.add(f"{NEW_STEM}.index")

    assert "cannot be read" in str(damage_at_start(files))


@pytest.mark.parametrize("position", [0, 9, 13, 40, 120, -1])
def test_a_rotten_checkpoint_is_damage(files: FakeFiles, position: int) -> None:
    path = f"{GROUP}/checkpoint"
    files.flip(path, position % len(files.content(path)))

    assert damage_at_start(files) is not None


def test_a_checkpoint_of_another_group_is_damage(files: FakeFiles) -> None:
    files.overwrite(f"{GROUP}/checkpoint", files.content(f"{group_folder(FOLDER, 2)}/checkpoint"))

    assert "of another group" in str(damage_at_start(files))


def test_a_missing_checkpoint_is_made_up_by_a_log_that_has_everything(files: FakeFiles) -> None:
    files.lose(f"{GROUP}/checkpoint")

    assert damage_at_start(files) is None
    assert recovered_from(files).groups[1].tail == [*ENTRIES, records(6, offset=4)]


def test_a_missing_checkpoint_is_damage_where_the_log_lacks_the_beginning(files: FakeFiles) -> None:
    disk = BrokerDisk(files)
    while disk.wal.current_file < 3:
        disk.write(group=3, hard=HardState(term=1, vote=0))
    for group in (1, 2):
        disk.write(records(6, offset=4), group=group)
    disk.wal.cut(disk.wal.oldest_file_needed({1: 5, 2: 5}))
    disk.fake.lose(f"{GROUP}/checkpoint")

    assert "entries before index 6 are missing" in str(damage_at_start(disk.fake))


def test_damage_stays_though_the_file_comes_back(files: FakeFiles) -> None:
    intact = files.content(f"{NEW_STEM}.index")
    files.overwrite(f"{NEW_STEM}.index", b"")
    disk = BrokerDisk(files)
    disk.fake.overwrite(f"{NEW_STEM}.index", intact)

    assert "damaged before" in str(damage_at_start(disk.fake))


def test_older_rows_and_payloads_are_checked_when_they_are_read(files: FakeFiles) -> None:
    for path in (f"{OLD_STEM}.index", f"{OLD_STEM}.log", f"{NEW_STEM}.log", f"{NEW_STEM}.control"):
        for position in range(0, len(files.content(path)), 3):
            copy = files.copy()
            copy.flip(path, position)
            found = entries_of(BrokerDisk(copy))
            assert found != ENTRIES, (path, position)
            assert all(entry in ENTRIES for entry in found)


def entries_of(disk: BrokerDisk) -> list[Entry]:
    """Everything in the segments of group 1 that can be read."""
    found: list[Entry] = []
    for index in range(1, 6):
        try:
            found += disk.stores[1].read_entries(index, 1)
        except Damaged:
            continue
    return found


def test_an_intact_prefix_of_a_damaged_group_can_still_be_read(files: FakeFiles) -> None:
    files.lose(f"{NEW_STEM}.index")
    disk = BrokerDisk(files)

    assert disk.stores[1].read_offset(0, NEVER_FULL, NEVER_FULL) == [entry.payload for entry in ENTRIES[:2]]
    with pytest.raises(Damaged):
        disk.stores[1].read_offset(2, NEVER_FULL, NEVER_FULL)


def test_a_newer_checkpoint_stops_the_start(files: FakeFiles) -> None:
    path = f"{GROUP}/checkpoint"
    body = files.content(path)[16:]
    crc = google_crc32c.extend(google_crc32c.value((9).to_bytes(4, "little")), body)
    files.overwrite(path, struct.pack("<8sII", b"TIDECKP\n", 9, crc) + body)

    with pytest.raises(FormatTooNew, match="data/groups/1/checkpoint"):
        recovered_from(files)
