"""Verifying a folder reads everything and names what is wrong."""

from __future__ import annotations

import pytest

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import (
    FOLDER,
    SALT,
    WAL,
    BrokerDisk,
    membership_entry,
    records,
    start_at,
    term_start,
)
from tidings.raft.entries import HardState
from tidings.storage.recovery import group_folder
from tidings.storage.verify import Finding, verify
from tidings.storage.wal_format import file_name

GROUP = group_folder(FOLDER, 1)
OLD_STEM = f"{GROUP}/{0:020d}-1"
ENTRIES = [
    term_start(1, term=1, offset=0),
    records(2, offset=0, count=4),
    membership_entry(3, term=1, offset=4),
    records(4, offset=4),
    records(5, offset=5),
    records(6, offset=6),
]


@pytest.fixture
def files() -> FakeFiles:
    disk = BrokerDisk()
    disk.create(1)
    disk.write(*ENTRIES, hard=HardState(term=1, vote=11))
    disk.apply(*ENTRIES, segment_bytes=150)
    disk.stores[1].checkpoint(start_at(6, offset=7), "t")
    return disk.fake.copy()


def findings(files: FakeFiles) -> list[Finding]:
    return list(verify(files, FOLDER, salt=SALT))


def test_an_intact_folder_has_no_findings(files: FakeFiles) -> None:
    assert findings(files) == []


@pytest.mark.parametrize("name", ["log", "index", "control"])
def test_every_flipped_bit_is_found_at_its_entry(files: FakeFiles, name: str) -> None:
    path = f"{OLD_STEM}.{name}"
    for position in range(0, len(files.content(path)), 7):
        copy = files.copy()
        copy.flip(path, position)

        found = findings(copy)

        assert found
        assert all(finding.group == 1 and finding.index in (1, 2, 3, 4, 5) for finding in found)


def test_rows_that_changed_places_are_found(files: FakeFiles) -> None:
    rows = files.content(f"{OLD_STEM}.index")
    files.overwrite(f"{OLD_STEM}.index", rows[64:128] + rows[:64] + rows[128:])

    assert any("does not follow" in finding.problem for finding in findings(files))


def test_the_search_goes_on_behind_a_finding(files: FakeFiles) -> None:
    for position in (0, 70):
        files.flip(f"{OLD_STEM}.log", position)

    assert [finding.index for finding in findings(files)] == [2, 4]


def test_a_missing_file_is_found(files: FakeFiles) -> None:
    files.lose(f"{OLD_STEM}.log")

    assert {finding.index for finding in findings(files)} == {None, 2, 4}


def test_damage_of_the_write_ahead_log_is_found(files: FakeFiles) -> None:
    files.flip(f"{WAL}/{file_name(1)}", 70)

    assert None in {finding.group for finding in findings(files)}


def test_nothing_is_changed(files: FakeFiles) -> None:
    before = {path: files.content(path) for path in files.paths()}

    findings(files)

    assert {path: files.content(path) for path in files.paths()} == before
