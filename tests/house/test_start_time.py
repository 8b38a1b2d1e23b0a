"""`tidings --help` answers at once, because nothing heavy is imported before it is needed."""

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

PROGRAM = Path(sys.executable).parent / "tidings"
HELP_MS_MAX = 150
RUNS = 5
HEAVY = {"aiokafka", "asyncio", "confluent_kafka", "cramjam", "lz4", "rich", "ssl", "uvloop", "zstandard"}


def processor_ms() -> float:
    """Of all children that have ended: what else the machine does counts for nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


@pytest.mark.serial
def test_help_takes_no_longer_than_a_blink() -> None:
    times_ms = []
    for _ in range(RUNS):
        before_ms = processor_ms()
        subprocess.run([str(PROGRAM), "--help"], check=True, capture_output=True)
        times_ms.append(processor_ms() - before_ms)

    assert median(times_ms) < HELP_MS_MAX, times_ms


def test_help_imports_nothing_heavy() -> None:
    start = "import sys; sys.argv = ['tidings', '--help']; from tidings.cli.main import main; main()"

    finished = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", start], check=True, capture_output=True, text=True
    )

    imported = {line.rpartition("|")[2].strip() for line in finished.stderr.splitlines()}
    assert "tidings.cli.main" in imported
    assert imported & HEAVY == set()
