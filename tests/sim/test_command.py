"""What `tidings sim raft` prints."""

import pytest

from tests.sim.mutants import FsyncNotAwaited
from tidings.sim import command
from tidings.sim.machine import Parts
from tidings.sim.schedule import DURATION_MS, run_schedule


def test_a_seed_that_holds_is_told_in_one_line() -> None:
    lines: list[str] = []

    held = command.replay(7, duration_ms=1_000, is_traced=False, revision="abc", write=lines.append)

    assert held
    [line] = lines
    assert line.startswith("seed 7: all held")


def test_a_trace_shows_messages_and_replicas() -> None:
    lines: list[str] = []

    command.replay(7, duration_ms=1_000, is_traced=True, revision="abc", write=lines.append)

    assert any("VoteRequest" in line for line in lines)
    assert any("leader term" in line for line in lines)


def test_many_seeds_are_summed_up() -> None:
    lines: list[str] = []

    failed = command.run_many(5, 3, duration_ms=500, revision="abc", write=lines.append)

    assert failed == []
    assert lines[-1].startswith("3 schedules from seed 5: 3 held, 0 failed")


@pytest.mark.parametrize(("duration_ms", "option"), [(DURATION_MS, ""), (500, " --virtual-ms 500")])
def test_a_failure_names_the_revision_and_the_one_command_that_shows_it_again(
    duration_ms: int, option: str
) -> None:
    outcome = run_schedule(0, duration_ms=duration_ms, parts=Parts(disk=FsyncNotAwaited))

    told = command.describe_failure(outcome, "abc")

    assert "revision abc" in told
    assert f"tidings sim raft --seed 0{option} --trace" in told
