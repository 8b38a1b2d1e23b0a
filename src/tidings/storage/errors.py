"""What can go wrong with files, split by what the owner does about it.

The one rule: DiskFailed ends the broker, DiskFull is tried again later, Damaged concerns one group, Gone
concerns one read, the rest stops the start with a sentence for the operator.
Tests: tests/storage/test_errors.py
"""

from __future__ import annotations

import errno

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StorageError(Exception):
    """The root of this room's errors."""


class DiskFailed(StorageError):
    """A write or a sync failed: what the disk holds is unknown. Stop voting and answering, never try
    again."""


class WalFailed(DiskFailed):
    """The same of the write-ahead log: nothing of the flush may be promised, nor of any flush after it."""


class DiskFull(StorageError):
    """There is no room. Nothing was changed; the same call may be made again when there is."""


class WalFull(DiskFull):
    """The same of the write-ahead log: nothing of the flush was written."""


class Damaged(StorageError):
    """Synced bytes of a group are not what was written. The group neither votes nor leads until it is
    refilled."""

    def __init__(self, problem: str, **facts: object) -> None:
        super().__init__(problem)
        self.problem = problem
        self.facts = facts

    def __str__(self) -> str:
        if not self.facts:
            return self.problem
        return f"{self.problem} ({', '.join(f'{name}={value}' for name, value in self.facts.items())})"


class Gone(StorageError):
    """What was asked for was dropped (retention, a replaced log) while or before it was read."""


class FormatTooNew(StorageError):
    """A file was written by a newer version than this one."""

    def __init__(self, path: str, version: int, newest_known: int) -> None:
        super().__init__(
            f"{path} has format version {version}; this program knows versions up to {newest_known}"
        )
        self.path = path


class FolderLocked(StorageError):
    """Another process works in this folder."""

    def __init__(self, folder: str, pid: int | None) -> None:
        super().__init__(f"{folder} is in use by process {pid if pid is not None else '(unknown)'}")
        self.pid = pid


class NotAFolderOfOurs(StorageError):
    """The identity file is missing where there are logs, or cannot be read."""


def disk_error(error: OSError, doing: str) -> DiskFull | DiskFailed:
    """What a failed system call means for the owner."""
    if error.errno in _FULL:
        return DiskFull(f"no room for {doing}: {error}")
    return DiskFailed(f"{doing} failed: {error}")
