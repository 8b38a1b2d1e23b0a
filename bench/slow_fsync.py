"""Slow fsync: a preloaded library that makes every fsync and fdatasync of a process take longer.

The one rule: the delay comes after the real call, so the data is as safe as ever. Must not know: whose disk
it slows. Tests: tests/bench/test_slow_fsync.py.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.processes import StartError

SOURCE: Final = Path(__file__).with_name("slow_fsync.c")
BUILD_S_MAX: Final = 60.0


def environment(*, cache: Path, delay_ms: int) -> dict[str, str]:
    """What to add to a process's environment; builds the library on first use."""
    return {"LD_PRELOAD": str(_library(cache)), "SLOW_FSYNC_MS": str(delay_ms)}


def _library(cache: Path) -> Path:
    library = cache / "slow_fsync.so"
    if library.exists() and library.stat().st_mtime >= SOURCE.stat().st_mtime:
        return library
    if shutil.which("cc") is None:
        raise StartError("the row with a slow disk needs a C compiler, `cc`")
    cache.mkdir(parents=True, exist_ok=True)
    argv = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(argv, check=True, timeout=BUILD_S_MAX)
    return library
