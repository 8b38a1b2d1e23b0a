"""Damaged files of one replica: it is refilled by the others, nothing is lost and nothing wrong is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import damage
from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.damage import Files
from tests.faults.replicas import damage_in, disagreements
from tests.faults.traffic import running_traffic

SETTINGS = {
    "checkpoint_interval_ms": "300",
    "leader_balance_interval_ms": "1000",  # a leader that came back leads again soon
    "segment_bytes": "16384",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests: each has a topic of its own. In the end, all files are read."""
    with running_cluster(tmp_path_factory.mktemp("damage"), settings=SETTINGS) as cluster:
        yield cluster
        for number in cluster.brokers:
            cluster.terminate(number)
        folders = {number: broker.data for number, broker in cluster.brokers.items()}
        assert disagreements(folders) == []
        assert [finding for folder in folders.values() for finding in damage_in(folder)] == []


def damaged_and_refilled(cluster: Cluster, do_damage: Callable[[Files], None], seen: str) -> None:
    """Damage a leader's files while it is away, under load, and have it lead again and read all."""
    topic = do_damage.__name__.replace("_", "-")
    cluster.create_topic(topic, partitions=1)
    with running_traffic(cluster.bootstrap, topic, 1) as traffic:
        victim = cluster.leader(topic)
        folder = cluster.brokers[victim].data
        wait_until(lambda: has_segments(folder, f"{topic}-0"), "two segments in a checkpoint")
        events = {name: len(cluster.brokers[victim].events(name)) for name in (seen, "replica_settled")}
        cluster.kill(victim)
        do_damage(Files.of(folder, f"{topic}-0"))
        traffic.wait_for_progress()

        cluster.start(victim)

        traffic.wait_for_progress()
        wait_until(lambda: victim in cluster.leaders(topic, asked=victim), "the damaged broker leading again")
        traffic.settle()
        for name, count in events.items():
            cluster.wait_for_event(victim, name, count + 1)
        cluster.wait_for_leaders(topic, asked=victim)


def has_segments(data: Path, title: str) -> bool:
    try:
        return len(Files.of(data, title).checkpoint.segments) > 1
    except AssertionError:
        return False


@pytest.mark.parametrize("do_damage", damage.PARTITIONS_FILES, ids=lambda each: each.__name__)
def test_a_partitions_damaged_files_are_refilled(
    cluster: Cluster, do_damage: Callable[[Files], None]
) -> None:
    damaged_and_refilled(cluster, do_damage, "replica_damaged")


def test_a_damaged_write_ahead_log_costs_nothing_but_a_refill(cluster: Cluster) -> None:
    damaged_and_refilled(cluster, damage.log_with_a_flipped_bit_in_the_middle, "log_damaged")


def test_a_damaged_last_flush_is_made_up_for_by_the_others(cluster: Cluster) -> None:
    damaged_and_refilled(cluster, damage.last_flush_with_a_flipped_bit, "log_tail_cut")
