"""The lock of a data folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidings.storage.errors import FolderLocked
from tidings.storage.lock import LOCK_NAME, lock_folder


def test_a_second_start_is_told_which_process_works_in_the_folder(tmp_path: Path) -> None:
    lock = lock_folder(str(tmp_path))

    with pytest.raises(FolderLocked) as refused:
        lock_folder(str(tmp_path))

    assert refused.value.pid == os.getpid()
    lock.release()


def test_a_released_folder_can_be_taken_again(tmp_path: Path) -> None:
    lock_folder(str(tmp_path)).release()

    lock_folder(str(tmp_path)).release()


def test_a_lock_file_that_a_killed_process_left_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("123456789\n")

    lock = lock_folder(str(tmp_path))

    assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"
    lock.release()
