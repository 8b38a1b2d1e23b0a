"""Errors say what the owner is to do."""

from __future__ import annotations

import errno

import pytest

from tidings.storage.errors import Damaged, DiskFailed, DiskFull, FolderLocked, FormatTooNew, disk_error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_can_be_tried_again(number: int) -> None:
    assert isinstance(disk_error(OSError(number, "full"), "writing"), DiskFull)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EBADF])
def test_any_other_failure_is_the_end(number: int) -> None:
    assert isinstance(disk_error(OSError(number, "broken"), "writing"), DiskFailed)


def test_damage_names_its_facts() -> None:
    assert str(Damaged("a payload is damaged", index=7, path="x.log")) == (
        "a payload is damaged (index=7, path=x.log)"
    )
    assert str(Damaged("a payload is damaged")) == "a payload is damaged"


def test_a_newer_format_names_the_file_and_both_versions() -> None:
    assert str(FormatTooNew("data/identity", 3, 1)) == (
        "data/identity has format version 3; this program knows versions up to 1"
    )


def test_a_locked_folder_names_the_process() -> None:
    assert str(FolderLocked("data", 42)) == "data is in use by process 42"
    assert str(FolderLocked("data", None)) == "data is in use by process (unknown)"
