"""Files of zeros ahead of need."""

from __future__ import annotations

import pytest

from tests.fakes.files import FakeFiles
from tidings.storage.errors import WalFull
from tidings.storage.wal_space import WalSpace


def space_in(files: FakeFiles, *, first: int = 1000, largest: int = 4000) -> WalSpace:
    space = WalSpace(files, "wal", first_file_bytes=first, file_bytes_max=largest)
    space.open()
    return space


def test_files_are_zeros_of_growing_size() -> None:
    files = FakeFiles()
    space = space_in(files)

    sizes = [space.take(f"{number}.wal", 10)[1] for number in range(3)]

    assert sizes == [1000, 4000, 4000]
    assert files.content("wal/1.wal") == bytes(4000)


def test_a_prepared_file_is_renamed_not_made() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()
    space.prepare_next()
    assert files.paths() == ["wal/spare-1.wal"]

    file, size = space.take("1.wal", 10)

    assert size == file.size() == 1000
    assert files.paths() == ["wal/1.wal"]


def test_a_spare_that_is_too_small_grows() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()

    _, size = space.take("1.wal", 2500)

    assert size == len(files.content("wal/1.wal")) == 2500


def test_a_spare_that_cannot_grow_stays_the_spare() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()
    files.free_bytes = 100

    with pytest.raises(WalFull):
        space.take("1.wal", 2500)

    assert space.has_spare
    assert space.take("1.wal", 900)[1] == 1000


def test_a_file_given_back_is_the_spare_if_it_has_the_size_of_the_next() -> None:
    files = FakeFiles()
    space = space_in(files)
    for number in (1, 2, 3):
        space.take(f"{number}.wal", 10)

    space.give_back("1.wal", 1000)
    space.give_back("2.wal", 4000)
    space.give_back("3.wal", 4000)

    assert files.paths() == ["wal/spare-1.wal"]
    assert len(files.content("wal/spare-1.wal")) == 4000


def test_a_start_takes_over_one_whole_spare_and_removes_the_rest() -> None:
    files = FakeFiles()
    space_in(files).prepare_next()
    for name, size in (("spare-7.wal", 10), ("spare-9.wal", 5000)):
        files.open(f"wal/{name}", create=True).write_at([bytes(size)], 0)

    space = space_in(files)

    assert files.paths() == ["wal/spare-1.wal"]
    space.take("1.wal", 10)
    space.prepare_next()
    assert files.paths() == ["wal/1.wal", "wal/spare-10.wal"]
