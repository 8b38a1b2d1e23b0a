"""A file system in memory that can lose its power: what was not synced survives in part, in full, or not at
all.

Each file has its durable bytes and the writes since its last sync; each name likewise, by folder. A crash
can be planned at any step that changes something; afterwards `after_crash` is the disk that the next start
finds.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from enum import Enum
from random import Random

PAGE_BYTES = 4096


class PowerLost(Exception):
    """The planned crash: from here on, nothing reaches this disk."""


class Keep(Enum):
    """What survives of the unsynced writes."""

    NOTHING = "nothing"
    EVERYTHING = "everything"  # only the process was killed: all is there, and still unsynced
    PREFIX = "prefix"
    PAGES = "pages"  # any subset of the 4 KiB pages
    TORN = "torn"  # a prefix whose last write is cut anywhere


class FakeFiles:
    """Fills the port Files."""

    def __init__(self) -> None:
        self.steps = 0  # that changed something
        self.crash_at_step: int | None = None
        self.free_bytes: int | None = None  # None: any number
        self.failing_syncs: set[str] = set()  # paths whose next sync fails, once
        self.unreadable: set[str] = set()
        self._names: dict[str, _Node] = {}
        self._durable_names: dict[str, _Node] = {}
        self._unsynced_names: list[_NameChange] = []  # in order
        self._folders: set[str] = {"."}

    def open(self, path: str, *, create: bool) -> FakeFile:
        node = self._names.get(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.step()
            node = _Node()
            self._change_names({path: node})
        return FakeFile(self, path, node)

    def make_folder(self, path: str) -> None:
        self.step()
        self._folders.add(path)

    def names(self, folder: str) -> list[str]:
        names = {
            path[len(folder) + 1 :].split("/")[0] for path in self._names if path.startswith(f"{folder}/")
        }
        return sorted(names)

    def replace(self, source: str, target: str) -> None:
        self.step()
        self._change_names({target: self._names[source], source: None})
        self.sync_folder(target.rpartition("/")[0])

    def remove(self, path: str) -> None:
        if path not in self._names and path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.step()
        if path in self._folders:
            assert not self.names(path), path
            self._folders.discard(path)
        else:
            self._change_names({path: None})

    def sync_folder(self, path: str) -> None:
        self.step()
        later: list[_NameChange] = []
        for change in self._unsynced_names:
            if _folder_of(change) == path:
                _apply_names(self._durable_names, change)
            else:
                later.append(change)
        self._unsynced_names = later

    # -- what tests do to the disk

    def paths(self) -> list[str]:
        return sorted(self._names)

    def content(self, path: str) -> bytes:
        return bytes(self._names[path].content)

    def flip(self, path: str, position: int, mask: int = 0x10) -> None:
        """A bit rots, in synced bytes too."""
        node = self._names[path]
        node.content[position] ^= mask
        if position < len(node.durable):
            node.durable[position] ^= mask

    def overwrite(self, path: str, content: bytes) -> None:
        """The file's content becomes this, durably."""
        node = self._names[path]
        node.content = bytearray(content)
        node.durable = bytearray(content)
        node.unsynced.clear()

    def lose(self, path: str) -> None:
        """The file is gone, durably."""
        self._names.pop(path, None)
        self._durable_names.pop(path, None)

    def copy(self) -> FakeFiles:
        """The same disk with everything on it durable."""
        disk = self.after_crash(Random(0), Keep.EVERYTHING)
        disk._durable_names = dict(disk._names)
        disk._unsynced_names.clear()
        for node in disk._names.values():
            node.sync()
        return disk

    def after_crash(self, random: Random, keep: Keep) -> FakeFiles:
        """The disk that the next start finds."""
        disk = FakeFiles()
        disk.free_bytes = self.free_bytes
        disk._folders = set(self._folders)
        survivors: dict[int, _Node] = {}

        def survivor(node: _Node) -> _Node:
            if id(node) not in survivors:
                survivors[id(node)] = node.after_crash(random, keep)
            return survivors[id(node)]

        disk._names = {path: survivor(node) for path, node in self._surviving_names(random, keep).items()}
        if keep is Keep.EVERYTHING:
            disk._durable_names = {path: survivor(node) for path, node in self._durable_names.items()}
            disk._unsynced_names = [
                {path: node and survivor(node) for path, node in change.items()}
                for change in self._unsynced_names
            ]
        else:
            disk._durable_names = dict(disk._names)
        return disk

    # -- what files and names share

    def step(self) -> None:
        if self.crash_at_step is not None and self.steps >= self.crash_at_step:
            raise PowerLost
        self.steps += 1

    def step_after(self) -> None:
        """The crash comes behind the step: it is done, but nobody hears of it."""
        self.steps += 1
        if self.crash_at_step is not None and self.steps > self.crash_at_step:
            raise PowerLost

    def is_sync_to_fail(self, node: _Node) -> bool:
        for path in self.failing_syncs:
            if self._names.get(path) is node:
                self.failing_syncs.discard(path)
                return True
        return False

    def take_room(self, count: int) -> None:
        if self.free_bytes is None:
            return
        if count > self.free_bytes:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.free_bytes -= count

    def _change_names(self, change: _NameChange) -> None:
        before = [self._names[path] for path in change if path in self._names]
        _apply_names(self._names, change)
        self._unsynced_names.append(change)
        if self.free_bytes is not None:
            self.free_bytes += sum(len(one.content) for one in before if one not in self._names.values())

    def _surviving_names(self, random: Random, keep: Keep) -> dict[str, _Node]:
        """A rename is one step. A journal keeps steps in order, but not every file system has one."""
        if keep is Keep.EVERYTHING:
            return self._names
        names = dict(self._durable_names)
        changes = self._unsynced_names
        if keep is Keep.NOTHING:
            changes = []
        elif keep is Keep.PAGES:
            changes = [change for change in changes if random.random() < 0.5]
        else:
            changes = changes[: random.randint(0, len(changes))]
        for change in changes:
            _apply_names(names, change)
        return names


class FakeFile:
    """Fills the port File."""

    def __init__(self, files: FakeFiles, path: str, node: _Node) -> None:
        self._files = files
        self._path = path
        self._node = node
        self._is_open = True

    def read_at(self, length: int, position: int) -> bytes:
        assert self._is_open, self._path
        if self._path in self._files.unreadable:
            raise OSError(errno.EIO, "input/output error", self._path)
        return bytes(self._node.content[position : position + length])

    def write_at(self, buffers: Sequence[bytes], position: int) -> None:
        assert self._is_open, self._path
        content = b"".join(buffers)
        self._files.take_room(max(position + len(content) - len(self._node.content), 0))
        self._node.write(content, position)
        self._files.step_after()

    def write_durably_at(self, buffers: Sequence[bytes], position: int) -> None:
        self.write_at(buffers, position)
        self.sync()

    def sync(self) -> None:
        assert self._is_open, self._path
        self._files.step()
        if self._files.is_sync_to_fail(self._node):
            self._node.forget()
            raise OSError(errno.EIO, "input/output error", self._path)
        self._node.sync()

    def reserve(self, length: int, position: int) -> bool:
        return False  # zeros are written, so that crashes amid them are tried

    def truncate(self, size: int) -> None:
        assert self._is_open, self._path
        self._node.truncate(size)
        self._files.step_after()

    def size(self) -> int:
        return len(self._node.content)

    def close(self) -> None:
        assert self._is_open, self._path
        self._is_open = False


class _Node:
    """One file's bytes: what is durable, what is seen, and the changes in between (a write, or a new
    size)."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.content = bytearray()
        self.unsynced: list[tuple[int, bytes | None]] = []

    def write(self, content: bytes, position: int) -> None:
        self.unsynced.append((position, content))
        _apply(self.content, position, content)

    def truncate(self, size: int) -> None:
        self.unsynced.append((size, None))
        _apply(self.content, size, None)

    def sync(self) -> None:
        for position, content in self.unsynced:
            _apply(self.durable, position, content)
        self.unsynced.clear()

    def forget(self) -> None:
        """A failed sync: the system takes the pages for clean, though the disk never got them."""
        self.unsynced.clear()

    def after_crash(self, random: Random, keep: Keep) -> _Node:
        node = _Node()
        node.durable = bytearray(self.durable)
        if keep is Keep.EVERYTHING:
            node.unsynced = list(self.unsynced)
            node.content = bytearray(self.content)
            return node
        for position, content in _surviving(self.unsynced, random, keep):
            _apply(node.durable, position, content)
        node.content = bytearray(node.durable)
        return node


def _surviving(
    changes: list[tuple[int, bytes | None]], random: Random, keep: Keep
) -> Iterator[tuple[int, bytes | None]]:
    if keep is Keep.NOTHING:
        return
    if keep is Keep.PAGES:
        for position, content in changes:
            if content is None:
                if random.random() < 0.5:
                    yield position, None
                continue
            for start, page in _pages(position, content):
                if random.random() < 0.5:
                    yield start, page
    else:
        count = random.randint(0, len(changes))
        yield from changes[:count]
        if keep is Keep.TORN and count < len(changes):
            position, content = changes[count]
            if content is not None:
                yield position, content[: random.randint(0, len(content))]


def _pages(position: int, content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        length = min(PAGE_BYTES - (position + at) % PAGE_BYTES, len(content) - at)
        yield position + at, content[at : at + length]
        at += length


def _apply(target: bytearray, position: int, content: bytes | None) -> None:
    end = position if content is None else position + len(content)
    if len(target) < end:
        target.extend(bytes(end - len(target)))
    if content is None:
        del target[position:]
    else:
        target[position:end] = content


_NameChange = dict[str, _Node | None]  # of one folder, all at once; None: removed


def _apply_names(names: dict[str, _Node], change: _NameChange) -> None:
    for path, node in change.items():
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node


def _folder_of(change: _NameChange) -> str:
    return next(iter(change)).rpartition("/")[0]
