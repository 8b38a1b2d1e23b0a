"""Processes that are killed, one or all: whatever was acknowledged is there, once and in order."""

from __future__ import annotations

from pathlib import Path

from tests.faults.cluster import running_cluster
from tests.faults.traffic import running_traffic

PARTITIONS = 3
KILLS = 3


def test_leaders_killed_under_load_lose_nothing(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            for turn in range(KILLS):
                leader = cluster.leader("events", turn % PARTITIONS)
                cluster.kill(leader)
                traffic.wait_for_progress()
                cluster.start(leader)
            traffic.settle()


def test_all_brokers_killed_at_once_lose_nothing(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            cluster.kill(1, 2, 3)
            cluster.start()
            traffic.wait_for_progress()
            traffic.settle()
