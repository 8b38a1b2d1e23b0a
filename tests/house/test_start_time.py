"""`tidings --help` answers at once, because nothing heavy is imported before it is needed."""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest

PROGRAM = Path(sys.executable).parent / "tidings"
HELP_MS_MAX = 150
RUNS = 5
HEAVY = {"aiokafka", "asyncio", "confluent_kafka", "cramjam", "lz4", "rich", "ssl", "uvloop", "zstandard"}


@pytest.mark.serial
def test_help_takes_no_longer_than_a_blink() -> None:
    times_ms = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run([str(PROGRAM), "--help"], check=True, capture_output=True)
        times_ms.append((time.perf_counter() - begin) * 1000)

    assert median(times_ms) < HELP_MS_MAX, times_ms


def test_help_imports_nothing_heavy() -> None:
    start = "import sys; sys.argv = ['tidings', '--help']; from tidings.cli.main import main; main()"

    finished = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", start], check=True, capture_output=True, text=True
    )

    imported = {line.rpartition("|")[2].strip() for line in finished.stderr.splitlines()}
    assert "tidings.cli.main" in imported
    assert imported & HEAVY == set()
