"""Command: what `tidings sim raft` does: replay one seed, or run many and name those that fail.

Its one rule: a failure is told with all that is needed to see it again: seed, revision, one command.
It must not know a terminal: it writes lines where it is told to. Tests: tests/sim/test_command.py
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.sim.clock import MS
from tidings.sim.invariants import Violation
from tidings.sim.schedule import DURATION_MS, Outcome, run_schedule

Write = Callable[[str], None]


def replay(seed: int, *, duration_ms: int, is_traced: bool, revision: str, write: Write) -> bool:
    """Run one seed; whether all held."""
    outcome = run_schedule(
        seed, duration_ms=duration_ms, is_traced=is_traced, write=write if is_traced else None
    )
    if outcome.failure is None:
        write(
            f"seed {seed}: all held in {outcome.virtual_ms} virtual ms, {outcome.event_count} events, "
            f"{outcome.entry_count} entries committed"
        )
    else:
        write(describe_failure(outcome, revision))
    return outcome.failure is None


def run_many(first_seed: int, count: int, *, duration_ms: int, revision: str, write: Write) -> list[int]:
    """Run the seeds from the first one on; those that failed."""
    failed: list[int] = []
    event_count = 0
    for seed in range(first_seed, first_seed + count):
        outcome = run_schedule(seed, duration_ms=duration_ms)
        event_count += outcome.event_count
        if outcome.failure is not None:
            failed.append(seed)
            write(describe_failure(outcome, revision))
    write(
        f"{count} schedules from seed {first_seed}: {count - len(failed)} held, {len(failed)} failed; "
        f"{event_count} events"
    )
    return failed


def describe_failure(outcome: Outcome, revision: str) -> str:
    """What went wrong, when, and the one command that shows it again."""
    failure = outcome.failure
    assert failure is not None
    kind = "" if isinstance(failure, Violation) else f"{type(failure).__name__}: "
    duration = (
        "" if outcome.knobs.duration_ms == DURATION_MS else f" --virtual-ms {outcome.knobs.duration_ms}"
    )
    return (
        f"seed {outcome.seed} failed at {outcome.at_us / MS:.3f} virtual ms (revision {revision}): "
        f"{kind}{failure}\n"
        f"  replay: tidings sim raft --seed {outcome.seed}{duration} --trace"
    )
