"""`tidings sim raft` runs seeds, and replays one."""

from tests.cli.conftest import Command
from tidings.config.exits import Exit


def test_a_few_seeds_are_run_and_summed_up(tidings: Command) -> None:
    ended = tidings("sim", "raft", "--schedules", "2", "--from-seed", "3", "--virtual-ms", "300")

    assert ended.code == 0
    assert "2 schedules from seed 3: 2 held, 0 failed" in ended.out


def test_one_seed_is_replayed_with_a_trace(tidings: Command) -> None:
    ended = tidings("sim", "raft", "--seed", "3", "--trace", "--virtual-ms", "300")

    assert ended.code == 0
    assert "VoteRequest" in ended.out
    assert "seed 3: all held" in ended.out


def test_a_negative_seed_is_refused(tidings: Command) -> None:
    ended = tidings("sim", "raft", "--seed", "-1")

    assert ended.code == Exit.USAGE
