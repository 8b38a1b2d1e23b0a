"""Room for the write-ahead log: files of zeros made ahead of need, and files that were cut taken again.

The one rule: no room is found out here, before a flush is written, never in the middle of one. A sync that
changes no metadata takes two thirds of the time, which is why there are zeros to write over.
prepare_next() is called from a background thread, everything else from the disk thread; they share one deque.
It must not know what is written. Tests: tests/storage/test_wal_space.py
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from tidings.storage.errors import DiskFull, WalFailed, WalFull, disk_error
from tidings.storage.files import File, Files
from tidings.storage.wal_format import SPARE_PREFIX, WAL_SUFFIX

_GROWTH = 4
_ZEROS = bytes(1 << 20)
# A file up to this is written with zeros: a fresh broker's first flushes are its small ones, and the
# quickest.
_WRITTEN_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Spare:
    """A file that is to become one of the log."""

    name: str
    size: int
    file: File


class WalSpace:
    """Makes, keeps, hands out and takes back the log's files. The first is small, so that a fresh broker
    starts in milliseconds; each next one is larger until `file_bytes_max`."""

    def __init__(self, files: Files, folder: str, *, first_file_bytes: int, file_bytes_max: int) -> None:
        self._files = files
        self._folder = folder
        self._file_bytes = first_file_bytes
        self._file_bytes_max = file_bytes_max
        self._spares: deque[tuple[str, int]] = deque()  # name and size
        self._numbers = itertools.count(1)

    @property
    def has_spare(self) -> bool:
        return bool(self._spares)

    def open(self) -> None:
        """Make the folder, and remove what an earlier process prepared or began."""
        self._files.make_folder(self._folder)
        for name in self._files.names(self._folder):
            if name.startswith(SPARE_PREFIX):
                self._files.remove(self._path(name))

    def prepare_next(self) -> None:
        """Have the next file ready. Raises WalFull when there is no room."""
        if self._spares:
            return
        name, size = self._new_spare_name(), self._file_bytes
        self._create(name, size)
        self._spares.append((name, size))

    def take(self, bytes_needed: int) -> Spare:
        """A file with that much room on disk, open, under a name that no log file has."""
        try:
            name, size = self._spares.popleft()
        except IndexError:
            name, size = self._new_spare_name(), max(self._file_bytes, bytes_needed)
            self._create(name, size)
        if size < bytes_needed:
            try:
                self._grow(name, size, bytes_needed)
            except WalFull:
                self._spares.appendleft((name, size))
                raise
            size = bytes_needed
        self._file_bytes = min(self._file_bytes_max, self._file_bytes * _GROWTH)
        return Spare(name=name, size=size, file=self._files.open(self._path(name), create=False))

    def enlist(self, spare: Spare, name: str) -> None:
        """What was written to the spare is durable: give it its name in the log. Durable when this
        returns."""
        self._files.replace(self._path(spare.name), self._path(name))

    def give_back(self, name: str, size: int) -> None:
        """The file was cut: keep it as the spare, or remove it. Durable when this returns."""
        if size == self._file_bytes and not self._spares:
            spare = self._new_spare_name()
            self._files.replace(self._path(name), self._path(spare))
            self._spares.append((spare, size))
        else:
            self._files.remove(self._path(name))
            self._files.sync_folder(self._folder)

    def _create(self, name: str, size: int) -> None:
        """A file of zeros, durable."""
        path = self._path(name)
        try:
            self._files.open(path, create=True).close()
            self._files.sync_folder(self._folder)
            self._grow(name, 0, size)
        except WalFull:
            self._files.remove(path)
            raise
        except OSError as error:
            raise _verdict(error, path) from error

    def _grow(self, name: str, size: int, bytes_needed: int) -> None:
        """Zeros up to `bytes_needed`: reserved where the file is large and the file system can, because
        writing them would take the disk from the flushes of the moment; else written, and synced in steps."""
        path = self._path(name)
        file = self._files.open(path, create=False)
        try:
            if bytes_needed - size > _WRITTEN_BYTES_MAX and file.reserve(bytes_needed - size, size):
                file.sync()
                return
            for position in range(size, bytes_needed, len(_ZEROS)):
                file.write_at([_ZEROS[: bytes_needed - position]], position)
                file.sync()
        except OSError as error:
            raise _verdict(error, path) from error
        finally:
            file.close()

    def _new_spare_name(self) -> str:
        return f"{SPARE_PREFIX}{next(self._numbers)}{WAL_SUFFIX}"

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _verdict(error: OSError, path: str) -> WalFull | WalFailed:
    """No room is an answer, anything else the end."""
    verdict = disk_error(error, f"preparing {path}")
    return WalFull(str(verdict)) if isinstance(verdict, DiskFull) else WalFailed(str(verdict))
