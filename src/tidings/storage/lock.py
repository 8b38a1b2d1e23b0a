"""The data folder's lock: one process works in a folder, a second start is told which.

The one rule: the lock is the operating system's and dies with its process; the pid in the file is only for
the message.
Tests: tests/storage/test_lock.py
"""

from __future__ import annotations

from tidings.storage.errors import FolderLocked
from tidings.storage.files import OsFiles, OsLock, OsLocks, read_whole

LOCK_NAME = "LOCK"


def lock_folder(folder: str) -> OsLock:
    """Hold the folder until `.release()`; raises FolderLocked naming the holder."""
    path = f"{folder}/{LOCK_NAME}"
    lock = OsLocks().take(path)
    if lock is None:
        content = read_whole(OsFiles(), path).strip()
        raise FolderLocked(folder, int(content) if content.isdigit() else None)
    return lock
