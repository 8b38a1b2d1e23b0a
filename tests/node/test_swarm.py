"""Whole brokers under swarms of faults: nothing acknowledged is lost or doubled, and all recover by
themselves."""

from __future__ import annotations

import pytest

from tests.node.swarm import Swarm

STEP_COUNT = 40
SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_is_kept_once_and_in_order_through_a_swarm_of_faults(seed: int) -> None:
    Swarm(seed).run(STEP_COUNT)
