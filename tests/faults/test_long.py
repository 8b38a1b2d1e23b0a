"""Hours of operation in minutes: many kills, many stops, and everything that can happen, mixed by chance."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.faults.cluster import running_cluster
from tests.faults.nemeses import Nemeses
from tests.faults.replicas import damage_in, disagreements
from tests.faults.traffic import running_traffic

pytestmark = pytest.mark.long

PARTITIONS: Final = 3
SEED: Final = "TIDINGS_TEST_SEED"
"""Environment variable: the number that decides what happens when; drawn if it is not given."""
MIX_S: Final = 300.0
FAULT_S: Final = (0.2, 1.0, 3.0, 6.0)
"""How long a fault lasts: some shorter than an election, some longer."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("brokers", [3, 5])
def test_a_random_mix_of_faults_loses_nothing(tmp_path: Path, brokers: int) -> None:
    seed = int(os.environ.get(SEED) or Random().randrange(1_000_000))
    print(f"{SEED}={seed}")  # noqa: T201 - shown where the test fails, to have it happen again
    chance = Random(seed)
    settings = {"checkpoint_interval_ms": "500", "segment_bytes": "65536"}
    with running_cluster(tmp_path, brokers=brokers, links=True, settings=settings) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            nemeses = Nemeses(cluster, "events", chance)
            ends_s = time.monotonic() + MIX_S
            while time.monotonic() < ends_s:
                with nemeses.strike() as name:
                    print(f"{time.monotonic():.1f} {name}")  # noqa: T201 - as above
                    time.sleep(chance.choice(FAULT_S))
                traffic.wait_for_progress(seconds_max=60)
            traffic.settle()
        for number in cluster.brokers:
            assert cluster.terminate(number) == 0
        # What is left of damage is found when somebody reads it.
        sound = [number for number in cluster.brokers if number != nemeses.victim]
        folders = {number: cluster.brokers[number].data for number in sound}
        assert disagreements(folders) == []
        assert [finding for folder in folders.values() for finding in damage_in(folder)] == []
