"""`tidings sim raft`: whole clusters on a virtual clock, network and disk, from one seed.

Rule: one seed, one run, on every machine. Must not know: what a simulation consists of. Tests:
tests/cli/test_sim.py
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from tidings import __version__
from tidings.config.exits import Exit

_GIT_SECONDS_MAX = 5
_ROOT = Path(__file__).parents[3]  # of a checkout: <root>/src/tidings/cli/sim.py


@click.group()
def sim() -> None:
    """Simulate clusters with faults, and replay what failed."""


@sim.command()
@click.option("--seed", type=click.IntRange(min=0), help="Replay this one seed.")
@click.option("--trace", is_flag=True, help="With --seed: show every message and every change of a replica.")
@click.option(
    "--schedules", type=click.IntRange(min=1), default=100, show_default=True, help="Run so many seeds."
)
@click.option(
    "--from-seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first of them."
)
@click.option("--virtual-ms", type=click.IntRange(min=100), help="How long faults go on.  [default: 8000]")
def raft(seed: int | None, trace: bool, schedules: int, from_seed: int, virtual_ms: int | None) -> int:
    """Simulate replicated logs: crashes, cuts, lost writes, lost disks, moving replicas."""
    from tidings.sim import command
    from tidings.sim.schedule import DURATION_MS

    duration_ms = virtual_ms or DURATION_MS
    if seed is not None:
        held = command.replay(
            seed, duration_ms=duration_ms, is_traced=trace, revision=_revision(), write=click.echo
        )
    else:
        held = not command.run_many(
            from_seed, schedules, duration_ms=duration_ms, revision=_revision(), write=click.echo
        )
    return Exit.OK if held else Exit.FAILED


def _revision() -> str:
    """The commit of the code that runs; of an installed package, its version."""
    if not (_ROOT / ".git").exists():
        return __version__
    asked = ["git", "describe", "--always", "--dirty"]
    try:
        told = subprocess.run(
            asked, cwd=_ROOT, capture_output=True, text=True, timeout=_GIT_SECONDS_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return __version__
    return told.stdout.strip()
