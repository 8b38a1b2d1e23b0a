"""Open files of one thread."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.files import FakeFiles, Keep
from tidings.storage.open_files import OpenFiles


def test_files_beyond_the_limit_are_synced_and_closed() -> None:
    files = FakeFiles()
    open_files = OpenFiles(files, count_max=2)

    for name in ("a", "b", "c"):
        open_files.write(f"x/{name}", [b"content"], 0)
    files.sync_folder("x")

    survivor = files.after_crash(Random(1), Keep.NOTHING)
    assert [survivor.content(f"x/{name}") for name in ("a", "b", "c")] == [b"content", b"", b""]
    assert open_files.read("x/a", 7, 0) == b"content"


def test_a_failed_sync_of_a_file_that_must_make_room_is_told() -> None:
    files = FakeFiles()
    open_files = OpenFiles(files, count_max=1)
    open_files.write("x/a", [b"content"], 0)
    files.failing_syncs.add("x/a")

    with pytest.raises(OSError, match="input/output error"):
        open_files.write("x/b", [b"content"], 0)


def test_only_what_was_written_is_synced() -> None:
    files = FakeFiles()
    open_files = OpenFiles(files, count_max=2)
    open_files.write("x/a", [b"content"], 0)

    open_files.sync("x/a")
    steps = files.steps
    open_files.sync("x/a")

    assert files.steps == steps


def test_a_discarded_file_is_closed_and_its_name_opened_anew() -> None:
    files = FakeFiles()
    open_files = OpenFiles(files, count_max=2)
    open_files.write("x/a", [b"old"], 0)
    files.remove("x/a")
    OpenFiles(files, count_max=1).write("x/a", [b"new"], 0)
    assert open_files.read("x/a", 3, 0) == b"old"

    open_files.discard("x/a")

    assert open_files.read("x/a", 3, 0) == b"new"


def test_reading_makes_no_file() -> None:
    with pytest.raises(FileNotFoundError):
        OpenFiles(FakeFiles(), count_max=1).read("x/a", 1, 0)


def test_sizes_follow_cuts() -> None:
    open_files = OpenFiles(FakeFiles(), count_max=1)
    open_files.write("x/a", [b"content"], 0)

    open_files.truncate("x/a", 3)

    assert open_files.size("x/a") == 3
    open_files.close()
