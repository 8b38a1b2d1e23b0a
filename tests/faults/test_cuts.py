"""Links that are cut: the side with a majority serves, the other one refuses, both agree after healing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.librdkafka import Librdkafka
from tests.faults import asking
from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.replicas import disagreements
from tests.faults.traffic import Traffic, running_traffic

PARTITIONS = 3
# Cuts of a leader (first) from the other two, by name.
CUTS: dict[str, Callable[[int, list[int]], list[tuple[int, int]]]] = {
    "both ways": lambda one, others: [pair for other in others for pair in ((one, other), (other, one))],
    "its words": lambda one, others: [(one, other) for other in others],
    "the answers": lambda one, others: [(other, one) for other in others],
}


def others_of(cluster: Cluster, broker_id: int) -> list[int]:
    return [number for number in cluster.brokers if number != broker_id]


def is_in_sync(cluster: Cluster) -> bool:
    view = Librdkafka(cluster.bootstrap).describe_topic("events")
    return all(len(in_sync) == len(cluster.brokers) for in_sync in view.in_sync)


def heal_and_settle(cluster: Cluster, traffic: Traffic) -> None:
    """All links open again: every broker knows all leaders, writes flow, and the account adds up."""
    assert cluster.links is not None
    cluster.links.heal()
    for number in cluster.brokers:
        cluster.wait_for_leaders("events", asked=number, partitions=PARTITIONS)
    wait_until(
        lambda: len({tuple(cluster.leaders("events", asked=number)) for number in cluster.brokers}) == 1,
        "all brokers naming the same leaders",
    )
    traffic.wait_for_progress()
    traffic.settle()
    for number in cluster.brokers:
        assert cluster.terminate(number) == 0
    assert disagreements({number: broker.data for number, broker in cluster.brokers.items()}) == []


@pytest.mark.parametrize(
    ("cut", "hard"),
    [
        pytest.param("both ways", False),
        pytest.param("its words", False),
        pytest.param("the answers", False),
        pytest.param("both ways", True, marks=pytest.mark.long),
        pytest.param("its words", True),
        pytest.param("the answers", True, marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else "hard" if value else "silent",
)
def test_a_leader_that_is_cut_off_refuses_and_the_others_serve(tmp_path: Path, cut: str, hard: bool) -> None:
    with running_cluster(tmp_path, links=True) as cluster:
        assert cluster.links is not None
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            leader = cluster.leader("events")
            others = others_of(cluster, leader)

            cluster.links.cut(CUTS[cut](leader, others), hard=hard)

            for other in others:
                cluster.wait_for_leaders("events", asked=other, partitions=PARTITIONS, without=[leader])
            traffic.wait_for_progress()
            acknowledged_end = traffic.ledger.end_acknowledged(0)
            value = traffic.ledger.sent("late", 0, 0)
            refused = asking.produce_once(cluster.brokers[leader].kafka, "events", value)
            assert refused.error == asking.NOT_LEADER_OR_FOLLOWER
            traffic.ledger.refused(value)
            listed = asking.list_end(cluster.brokers[leader].kafka, "events")
            assert listed.error in asking.RETRIABLE, (listed, acknowledged_end)
            heal_and_settle(cluster, traffic)


def test_a_follower_that_is_cut_off_disturbs_nobody_and_catches_up(tmp_path: Path) -> None:
    with running_cluster(tmp_path, links=True) as cluster:
        assert cluster.links is not None
        cluster.create_topic("events", partitions=1)
        with running_traffic(cluster.bootstrap, "events", 1) as traffic:
            leader = cluster.leader("events")
            follower = others_of(cluster, leader)[0]
            elected_count = len(cluster.brokers[leader].events("leader_elected"))

            cluster.links.isolate(follower)

            for _ in range(5):
                traffic.wait_for_progress()
            assert cluster.leader("events", asked=leader) == leader
            assert len(cluster.brokers[leader].events("leader_elected")) == elected_count
            cluster.links.heal()
            wait_until(lambda: is_in_sync(cluster), "the follower having caught up")
            traffic.wait_for_progress()
            assert cluster.leader("events", asked=leader) == leader
            traffic.settle()


def test_a_link_between_a_leader_and_one_follower_may_be_missing(tmp_path: Path) -> None:
    with running_cluster(tmp_path, links=True) as cluster:
        assert cluster.links is not None
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            cluster.links.cut([(1, 2), (2, 1)])

            for _ in range(10):
                traffic.wait_for_progress()
            heal_and_settle(cluster, traffic)
