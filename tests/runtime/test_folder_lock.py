"""At most one process works in a data folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from tidings.runtime.folder_lock import FILE_NAME, FolderLock, FolderLocked, holder_of

HOLD = """
import sys
from pathlib import Path
from tidings.runtime.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_folder_is_made_where_it_is_missing(tmp_path: Path) -> None:
    FolderLock(tmp_path / "a" / "b").release()

    assert (tmp_path / "a" / "b" / FILE_NAME).exists()


def test_who_comes_second_learns_whose_it_is(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        with pytest.raises(FolderLocked, match=f"in use by process {holder.pid}") as caught:
            FolderLock(tmp_path)

        assert caught.value.pid == holder_of(tmp_path) == holder.pid


def test_the_lock_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        holder.wait()

    FolderLock(tmp_path).release()


def test_a_released_folder_can_be_locked_again(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.release()

    assert holder_of(tmp_path) == 0
    FolderLock(tmp_path).release()


def test_one_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)

    with pytest.raises(FolderLocked):
        FolderLock(tmp_path)

    lock.release()


@pytest.mark.parametrize("text", ["", "no number", "-3", "\xff"])
def test_a_lock_file_that_names_nobody_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="latin-1")

    assert holder_of(tmp_path) == 0


def test_a_folder_without_lock_has_no_holder(tmp_path: Path) -> None:
    assert holder_of(tmp_path) == 0
