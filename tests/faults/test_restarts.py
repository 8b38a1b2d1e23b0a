"""Brokers that are asked to stop, one after the other: nobody who writes notices more than a pause."""

from __future__ import annotations

from pathlib import Path

from tests.faults.cluster import running_cluster
from tests.faults.traffic import running_traffic

PARTITIONS = 3
PAUSE_S_MAX = 2.0
"""A hand-over takes milliseconds, on an idle machine. This one may be busy."""


def test_a_rolling_restart_hands_leadership_over_and_fails_no_message(tmp_path: Path) -> None:
    pauses_s: list[float] = []
    with running_cluster(tmp_path) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            for number in cluster.brokers:
                other = next(each for each in cluster.brokers if each != number)
                assert cluster.terminate(number) == 0
                assert not {-1, number} & set(cluster.leaders("events", asked=other))
                pauses_s.append(traffic.wait_for_progress())
                cluster.start(number)
                cluster.wait_for_leaders("events", asked=number, partitions=PARTITIONS)
            traffic.settle()
    assert max(pauses_s) < PAUSE_S_MAX, pauses_s
