"""Open files of one thread, so that a thousand groups need no thousands of descriptors.

The one rule: only the thread that owns this closes its files, so a descriptor is never closed under a read;
others announce a removed name by discard(). A file with unsynced bytes is synced before it is closed: an
error of the disk that nobody had the file open for would never be told.
It must not know what is in the files. Tests: tests/storage/test_open_files.py
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from tidings.storage.files import File, Files


class OpenFiles:
    """The files used last, at most `count_max`."""

    def __init__(self, files: Files, *, count_max: int) -> None:
        self._files = files
        self._count_max = count_max
        self._open: OrderedDict[str, File] = OrderedDict()
        self._unsynced: set[str] = set()
        self._discarded: deque[str] = deque()  # appended by other threads

    def read(self, path: str, length: int, position: int) -> bytes:
        return self._get(path, create=False).read_at(length, position)

    def write(self, path: str, buffers: Sequence[bytes], position: int) -> None:
        """Creates the file if it is missing."""
        file = self._get(path, create=True)
        self._unsynced.add(path)
        file.write_at(buffers, position)

    def truncate(self, path: str, size: int) -> None:
        file = self._get(path, create=True)
        self._unsynced.add(path)
        file.truncate(size)

    def size(self, path: str) -> int:
        return self._get(path, create=False).size()

    def sync(self, path: str) -> None:
        """Nothing to do where no byte was written since the last time."""
        if path in self._unsynced:
            self._get(path, create=False).sync()
            self._unsynced.discard(path)

    def discard(self, path: str) -> None:
        """The name was removed or is about to be. May be called by any thread."""
        self._discarded.append(path)

    def trim(self) -> None:
        """Close what was discarded, so that the disk gets its room back."""
        while self._discarded:
            path = self._discarded.popleft()
            self._unsynced.discard(path)
            file = self._open.pop(path, None)
            if file is not None:
                file.close()

    def close(self) -> None:
        self.trim()
        while self._open:
            self._close_oldest()

    def abandon(self) -> None:
        """Close all without a sync, as a crash would: for an owner that recovers what was not synced."""
        self._unsynced.clear()
        self.close()

    def _get(self, path: str, *, create: bool) -> File:
        if self._discarded:
            self.trim()
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        file = self._files.open(path, create=create)
        self._open[path] = file
        if len(self._open) > self._count_max:
            self._close_oldest()
        return file

    def _close_oldest(self) -> None:
        path, file = self._open.popitem(last=False)
        try:
            if path in self._unsynced:
                file.sync()
                self._unsynced.discard(path)
        finally:
            file.close()
