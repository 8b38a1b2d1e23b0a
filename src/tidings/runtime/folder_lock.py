"""Folder lock: at most one process works in a data folder, and who comes second learns whose it is.

Rule: the lock is the operating system's and ends with the process, however it ends; the file's text, a
process id, is only a hint for people and for the supervisor. Must not know: what the folder holds.
Tests: tests/runtime/test_folder_lock.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

FILE_NAME = "lock"
# Beyond the text: Windows does not let others read locked bytes.
_LOCKED_BYTE = 1 << 20


class FolderLocked(Exception):
    """Another process holds the folder; `pid` is 0 where it has not said who it is."""

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(f"{folder} is in use by process {pid}" if pid else f"{folder} is in use")
        self.folder = folder
        self.pid = pid


class FolderLock:
    """A held lock. Makes the folder where it is missing; never waits."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            _lock(self._fd)
        except OSError as error:
            os.close(self._fd)
            raise FolderLocked(folder, holder_of(folder)) from error
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Lets go. The file stays: removing it would let two processes hold two files of one name."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def holder_of(folder: Path) -> int:
    """The process id that the last holder left, 0 for none. Says nothing about whether it still lives."""
    try:
        text = (folder / FILE_NAME).read_bytes()[:20].decode("ascii", "replace")
    except OSError:
        return 0
    return int(text) if text.strip().isdecimal() else 0


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
