"""The one seam to the file system: what storage needs of it, and the operating system's own.

The one rule: nothing else in this room imports os. A name is durable once its folder was synced, bytes once
the file was; `replace` is both. Paths are strings with forward slashes.
It must not know what is in a file. Tests: tests/storage/test_files.py; the fake with crashes:
tests/fakes/files.py
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Sequence
from typing import Protocol

_BUFFERS_MAX = 1024  # IOV_MAX of Linux and macOS: one system call takes no more
# Linux writes and syncs in one system call: half the hand-overs of the interpreter per flush.
_WRITE_THROUGH: int = getattr(os, "RWF_DSYNC", 0)


class File(Protocol):
    """An open file. Reads and writes name their position, so threads share nothing but the descriptor."""

    def read_at(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def write_at(self, buffers: Sequence[bytes], position: int) -> None:
        """All of `buffers`, one behind the other."""

    def write_durably_at(self, buffers: Sequence[bytes], position: int) -> None:
        """write_at, then sync, of these bytes at least. For bytes that the file has room for already."""

    def sync(self) -> None:
        """Bytes and size are durable once this returns. After an error nothing is known of them, ever."""

    def reserve(self, length: int, position: int) -> bool:
        """Have room for these bytes on the disk, read as zeros until they are written. False: this file
        system cannot say so without writing them."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class Files(Protocol):
    """The folders and names of one file system."""

    def open(self, path: str, *, create: bool) -> File:
        """For reading and writing. FileNotFoundError if it is missing and not to be created."""

    def make_folder(self, path: str) -> None:
        """With its parents; durable. Nothing happens if it exists."""

    def names(self, folder: str) -> list[str]:
        """Names in it, sorted; none if the folder does not exist."""

    def replace(self, source: str, target: str) -> None:
        """Rename over whatever was there, and sync the folder: a crash leaves one or the other."""

    def remove(self, path: str) -> None:
        """A file or an empty folder. Durable when its folder is next synced."""

    def sync_folder(self, path: str) -> None: ...


def read_whole(files: Files, path: str) -> bytes:
    """All of a small file."""
    file = files.open(path, create=False)
    try:
        return file.read_at(file.size(), 0)
    finally:
        file.close()


def read_file(files: Files, path: str, length: int, position: int) -> bytes:
    """A part of a file that is not kept open."""
    file = files.open(path, create=False)
    try:
        return file.read_at(length, position)
    finally:
        file.close()


def write_whole(files: Files, path: str, content: bytes) -> None:
    """Replace a small file in one step: a crash leaves the old one or the new one."""
    file = files.open(f"{path}.new", create=True)
    try:
        file.truncate(0)
        file.write_at([content], 0)
        file.sync()
    finally:
        file.close()
    files.replace(f"{path}.new", path)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _sync_descriptor(descriptor: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync there leaves the bytes in the drive's cache
    else:
        os.fdatasync(descriptor)


class OsFile:
    """A descriptor of the operating system."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_at(self, length: int, position: int) -> bytes:
        got = os.pread(self._descriptor, length, position)
        if len(got) == length or not got:
            return got
        parts = [got]
        missing = length - len(got)
        while missing:
            position += len(got)
            got = os.pread(self._descriptor, missing, position)
            if not got:
                break
            parts.append(got)
            missing -= len(got)
        return b"".join(parts)

    def write_at(self, buffers: Sequence[bytes], position: int) -> None:
        total = sum(map(len, buffers))
        if len(buffers) <= _BUFFERS_MAX and os.pwritev(self._descriptor, buffers, position) == total:
            return
        # Too many buffers, or the system took only some of the bytes: the same bytes again are harmless.
        whole = memoryview(b"".join(buffers))
        written = 0
        while written < total:
            written += os.pwrite(self._descriptor, whole[written:], position + written)

    def write_durably_at(self, buffers: Sequence[bytes], position: int) -> None:
        if _WRITE_THROUGH and len(buffers) <= _BUFFERS_MAX:
            written = os.pwritev(self._descriptor, buffers, position, _WRITE_THROUGH)
            if written == sum(map(len, buffers)):
                return
        self.write_at(buffers, position)
        self.sync()

    def sync(self) -> None:
        _sync_descriptor(self._descriptor)

    def reserve(self, length: int, position: int) -> bool:
        if not hasattr(os, "posix_fallocate"):
            return False
        try:
            os.posix_fallocate(self._descriptor, position, length)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return False
            raise
        return True

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class OsFiles:
    """The operating system's file system."""

    def open(self, path: str, *, create: bool) -> OsFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o600))

    def make_folder(self, path: str) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            os.mkdir(folder, 0o700)
            self.sync_folder(folder_of(folder))

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)
        self.sync_folder(folder_of(target))

    def remove(self, path: str) -> None:
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            os.unlink(path)

    def sync_folder(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class OsLocks:
    """Advisory locks on files: held by one process, gone with it."""

    def take(self, path: str) -> OsLock | None:
        """The lock, or None if another holder has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return OsLock(descriptor)


class OsLock:
    """A lock that is held. Its file says by whom."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        os.close(self._descriptor)
