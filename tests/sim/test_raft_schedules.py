"""Two thousand small worlds in which everything goes wrong: what was promised holds in each."""

import pytest

from tidings.sim.command import describe_failure
from tidings.sim.schedule import run_schedule

# In parts, so that they are shared out to the workers that run the tests.
PART_COUNT = 16
SCHEDULES_PER_PART = 125


@pytest.mark.timeout(180)  # five seconds of pure computing, on a machine with nothing else to do
@pytest.mark.parametrize("part", range(PART_COUNT))
def test_all_invariants_hold_whatever_goes_wrong(part: int) -> None:
    first = part * SCHEDULES_PER_PART
    for seed in range(first, first + SCHEDULES_PER_PART):
        outcome = run_schedule(seed)

        assert outcome.failure is None, describe_failure(outcome, "this one")
