"""The simulator finds known bugs: those that show quickly in every run, all of them in the long one."""

import pytest

from tests.sim.mutants import MUTANTS, Mutant
from tidings.sim.schedule import run_schedule

QUICK_SCHEDULES_MAX = 300  # most are found within fifty
QUICK = [mutant for mutant in MUTANTS if mutant.schedules_max <= QUICK_SCHEDULES_MAX]


def schedules_until_found(mutant: Mutant) -> int | None:
    for seed in range(mutant.schedules_max):
        if run_schedule(seed, parts=mutant.parts).failure is not None:
            return seed + 1
    return None


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_a_bug_that_shows_quickly_is_found(mutant: Mutant) -> None:
    assert schedules_until_found(mutant) is not None


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_known_bug_is_found(mutant: Mutant) -> None:
    assert schedules_until_found(mutant) is not None
