"""One seed, one run: whether it is traced, run again, or run under another seed of Python's hashes."""

import os
import subprocess
import sys

import pytest

from tidings.sim.schedule import run_schedule

SEEDS = range(20)
PRINT_DIGESTS = """
from tidings.sim.schedule import run_schedule
print([run_schedule(seed, is_traced=True).digest for seed in range(20)])
"""


def test_a_seed_runs_the_same_twice() -> None:
    for seed in SEEDS:
        first, second = (run_schedule(seed, is_traced=True) for _ in range(2))

        assert first.digest == second.digest
        assert first.event_count == second.event_count


def test_tracing_changes_nothing() -> None:
    lines: list[str] = []

    traced = run_schedule(3, is_traced=True, write=lines.append)
    untraced = run_schedule(3)

    assert len(lines) > 100
    assert (traced.event_count, traced.at_us) == (untraced.event_count, untraced.at_us)


def test_other_seeds_run_otherwise() -> None:
    digests = {run_schedule(seed, is_traced=True).digest for seed in SEEDS}

    assert len(digests) == len(SEEDS)


@pytest.mark.timeout(120)
def test_the_order_of_pythons_sets_and_hashes_changes_nothing() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(printed) == 1
