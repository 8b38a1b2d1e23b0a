"""The library is built once and delays each sync of the process it is preloaded into."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import slow_fsync
from bench.processes import StartError

PROGRAM = """
import os, sys, time
with open(sys.argv[1], "wb") as file:
    begin = time.perf_counter()
    for sync in (os.fsync, os.fdatasync):
        sync(file.fileno())
    print(time.perf_counter() - begin)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_each_sync_of_a_preloaded_process_takes_longer(tmp_path: Path) -> None:
    added = slow_fsync.environment(cache=tmp_path / "cache", delay_ms=40)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "file")],
        env={**os.environ, **added},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert float(done.stdout) >= 2 * 0.040


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_library_is_built_once(tmp_path: Path) -> None:
    library = Path(slow_fsync.environment(cache=tmp_path, delay_ms=5)["LD_PRELOAD"])
    built_ns = library.stat().st_mtime_ns

    slow_fsync.environment(cache=tmp_path, delay_ms=9)

    assert library.stat().st_mtime_ns == built_ns


def test_without_a_compiler_the_row_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StartError, match="C compiler"):
        slow_fsync.environment(cache=tmp_path, delay_ms=5)
