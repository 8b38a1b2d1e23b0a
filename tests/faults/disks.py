"""Disks: ones that get full, and ones whose syncs fail, under the folders of running brokers.

The one rule: a fault is made by the system (a small tmpfs) where that may be mounted, else by a library that
stands between a broker and libc. Must not know: what brokers write. Builds tests/faults/faulty_disk.c.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).with_name("faulty_disk.c")
TOOL_S_MAX: Final = 30.0
_BALLAST: Final = "ballast"
_CHUNK_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """A library that is told by files in a folder; `environment` is for the brokers that are to have it."""

    library: Path
    told: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self.library), "FAULTY_DISK": str(self.told)}

    def begin(self, fault: str) -> None:
        """`full` or `sync`."""
        (self.told / fault).touch()

    def end(self, fault: str) -> None:
        (self.told / fault).unlink()


def faulty_disk(folder: Path) -> FaultyDisk:
    """Build the library; the test is skipped where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, `cc`")
    library, told = folder / "faulty_disk.so", folder / "told"
    told.mkdir()
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=TOOL_S_MAX)
    return FaultyDisk(library, told)


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A disk that can be filled and freed. Brokers' folders go below `folder`, with `environment`."""

    folder: Path
    library: FaultyDisk | None  # None: it is a file system of its own

    @property
    def environment(self) -> Mapping[str, str]:
        return self.library.environment if self.library is not None else {}

    def fill(self) -> None:
        """Take all the room that is left."""
        if self.library is not None:
            self.library.begin("full")
            return
        with (self.folder / _BALLAST).open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(_CHUNK_BYTES))
            except OSError:
                return

    def free(self) -> None:
        if self.library is not None:
            self.library.end("full")
        else:
            (self.folder / _BALLAST).unlink()


@contextmanager
def small_disk(folder: Path, *, size_mib: int, may_mount: bool) -> Iterator[SmallDisk]:
    """A file system in memory where this process can mount one, else a library that plays one."""
    mounted = folder / "small"
    mounted.mkdir()
    if not (may_mount and _mount(mounted, size_mib)):
        yield SmallDisk(mounted, faulty_disk(folder))
        return
    try:
        yield SmallDisk(mounted, None)
    finally:
        subprocess.run(["umount", "--lazy", str(mounted)], check=True, timeout=TOOL_S_MAX)


def _mount(folder: Path, size_mib: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tidings-test", str(folder)]
    try:
        subprocess.run(command, check=True, timeout=TOOL_S_MAX, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
