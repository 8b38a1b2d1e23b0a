"""Files of zeros ahead of need."""

from __future__ import annotations

import pytest

from tests.fakes.files import FakeFiles
from tidings.storage.errors import WalFull
from tidings.storage.wal_space import Spare, WalSpace


def space_in(files: FakeFiles, *, first: int = 1000, largest: int = 4000) -> WalSpace:
    space = WalSpace(files, "wal", first_file_bytes=first, file_bytes_max=largest)
    space.open()
    return space


def take(space: WalSpace, name: str, bytes_needed: int = 10) -> Spare:
    spare = space.take(bytes_needed)
    space.enlist(spare, name)
    return spare


def test_files_are_zeros_of_growing_size() -> None:
    files = FakeFiles()
    space = space_in(files)

    sizes = [take(space, f"{number}.wal").size for number in range(3)]

    assert sizes == [1000, 4000, 4000]
    assert files.content("wal/1.wal") == bytes(4000)


def test_a_prepared_file_is_renamed_not_made() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()
    space.prepare_next()
    assert files.paths() == ["wal/spare-1.wal"]

    spare = take(space, "1.wal")

    assert spare.size == spare.file.size() == 1000
    assert files.paths() == ["wal/1.wal"]


def test_a_spare_that_is_too_small_grows() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()

    spare = take(space, "1.wal", 2500)

    assert spare.size == len(files.content("wal/1.wal")) == 2500


def test_a_spare_that_cannot_grow_stays_the_spare() -> None:
    files = FakeFiles()
    space = space_in(files)
    space.prepare_next()
    files.free_bytes = 100

    with pytest.raises(WalFull):
        space.take(2500)

    assert space.has_spare
    assert space.take(900).size == 1000


def test_a_file_given_back_is_the_spare_if_it_has_the_size_of_the_next() -> None:
    files = FakeFiles()
    space = space_in(files)
    for number in (1, 2, 3):
        take(space, f"{number}.wal")

    space.give_back("1.wal", 1000)
    space.give_back("2.wal", 4000)
    space.give_back("3.wal", 4000)

    assert files.paths() == ["wal/spare-4.wal"]
    assert len(files.content("wal/spare-4.wal")) == 4000


def test_a_start_removes_what_an_earlier_process_left() -> None:
    files = FakeFiles()
    space_in(files).prepare_next()
    files.open("wal/spare-7.wal", create=True).write_at([b"a beginning"], 0)
    files.open("wal/1.wal", create=True).close()

    space_in(files)

    assert files.paths() == ["wal/1.wal"]
