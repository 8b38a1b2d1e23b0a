"""The seam to the file system: the system's own and the fake keep the same contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.files import FakeFiles
from tidings.storage.files import Files, OsFiles, folder_of, read_file, read_whole, write_whole


@pytest.fixture(params=["system", "fake"])
def files(request: pytest.FixtureRequest) -> Files:
    return OsFiles() if request.param == "system" else FakeFiles()


@pytest.fixture
def folder(files: Files, tmp_path: Path) -> str:
    path = f"{tmp_path}/some/folder"
    files.make_folder(path)
    return path


def test_bytes_are_read_where_they_were_written(files: Files, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)

    file.write_at([b"one", b"two", b"three"], 5)
    file.sync()

    assert file.size() == 16
    assert file.read_at(6, 5) == b"onetwo"
    assert file.read_at(3, 0) == b"\0\0\0"
    file.close()


def test_a_read_behind_the_end_is_short(files: Files, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    file.write_at([b"abc"], 0)

    assert file.read_at(10, 1) == b"bc"
    assert file.read_at(10, 3) == b""
    file.close()


def test_more_buffers_than_one_system_call_takes_are_written_whole(files: Files, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    buffers = [bytes([number % 256]) * 3 for number in range(3000)]

    file.write_at(buffers, 1)

    assert file.read_at(9000, 1) == b"".join(buffers)
    file.close()


def test_a_file_can_be_cut_and_opened_again(files: Files, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    file.write_at([b"abcdef"], 0)
    file.truncate(2)
    file.close()

    assert read_whole(files, f"{folder}/a") == b"ab"
    assert read_file(files, f"{folder}/a", 1, 1) == b"b"


def test_a_missing_file_is_not_made_by_opening(files: Files, folder: str) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(f"{folder}/a", create=False)
    with pytest.raises(FileNotFoundError):
        files.remove(f"{folder}/a")


def test_names_are_sorted_and_none_in_a_missing_folder(files: Files, folder: str) -> None:
    for name in ("b", "a", "c"):
        files.open(f"{folder}/{name}", create=True).close()
    files.remove(f"{folder}/c")

    assert files.names(folder) == ["a", "b"]
    assert files.names(f"{folder}/missing") == []


def test_a_whole_file_is_replaced_by_another(files: Files, folder: str) -> None:
    write_whole(files, f"{folder}/a", b"a long first content")
    write_whole(files, f"{folder}/a", b"second")

    assert read_whole(files, f"{folder}/a") == b"second"
    assert files.names(folder) == ["a"]


def test_a_left_over_of_a_replacement_is_no_trouble(files: Files, folder: str) -> None:
    file = files.open(f"{folder}/a.new", create=True)
    file.write_at([b"a very long left over"], 0)
    file.close()

    write_whole(files, f"{folder}/a", b"new")

    assert read_whole(files, f"{folder}/a") == b"new"


def test_a_folder_is_made_with_its_parents_and_removed_when_empty(files: Files, folder: str) -> None:
    files.make_folder(f"{folder}/x/y")
    files.make_folder(f"{folder}/x/y")

    files.remove(f"{folder}/x/y")
    files.sync_folder(f"{folder}/x")

    assert files.names(f"{folder}/x") == []


def test_a_path_without_a_folder_is_in_the_current_one() -> None:
    assert folder_of("name") == "."
    assert folder_of("a/b/c") == "a/b"


def test_reserved_room_reads_as_zeros_until_it_is_written(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "log"), create=True)

    is_reserved = file.reserve(1 << 20, 4096)
    file.write_durably_at([b"entry"], 4096)

    if is_reserved:
        assert file.size() == 4096 + (1 << 20)
    assert file.read_at(8, 4096) == (b"entry\0\0\0" if is_reserved else b"entry")
    file.close()
