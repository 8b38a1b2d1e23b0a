"""Tests of broker/placement.py: even, spread over racks, and the same everywhere."""

from __future__ import annotations

from collections import Counter

import pytest

from tidings.broker.placement import Candidate, Load, place


def brokers(*racks: str | None) -> list[Candidate]:
    return [Candidate(broker_id=number, rack=rack) for number, rack in enumerate(racks, start=1)]


@pytest.mark.parametrize("broker_count", [1, 3, 5, 7])
@pytest.mark.parametrize("partition_count", [1, 6, 30, 35])
def test_leaders_and_replicas_differ_by_one_at_most(broker_count: int, partition_count: int) -> None:
    candidates = brokers(*[None] * broker_count)
    replication_factor = min(3, broker_count)

    placements = place(candidates, Load(), partition_count, replication_factor)

    leaders = Counter({candidate.broker_id: 0 for candidate in candidates})
    leaders.update(replicas[0] for replicas in placements)
    held = Counter({candidate.broker_id: 0 for candidate in candidates})
    held.update(broker_id for replicas in placements for broker_id in replicas)
    assert max(leaders.values()) - min(leaders.values()) <= 1
    assert max(held.values()) - min(held.values()) <= 1


def test_replicas_of_a_partition_are_different_brokers() -> None:
    placements = place(brokers(None, None, None), Load(), 20, 3)

    assert all(sorted(replicas) == [1, 2, 3] for replicas in placements)


def test_many_topics_of_one_partition_are_spread_too() -> None:
    load = Load()
    for _ in range(9):
        place(brokers(None, None, None), load, 1, 1)

    assert load.leader_count == {1: 3, 2: 3, 3: 3}


def test_the_followers_of_one_leader_differ() -> None:
    placements = place(brokers(*[None] * 5), Load(), 25, 2)

    followers = {replicas[1] for replicas in placements if replicas[0] == 1}
    assert len(followers) >= 3


def test_each_replica_is_on_a_rack_of_its_own_while_there_are_racks() -> None:
    racks = ("a", "a", "b", "b", "c", "c")
    rack_of = dict(enumerate(racks, start=1))

    placements = place(brokers(*racks), Load(), 30, 3)

    assert all(len({rack_of[broker_id] for broker_id in replicas}) == 3 for replicas in placements)


def test_with_fewer_racks_than_replicas_every_rack_is_used() -> None:
    rack_of = {1: "a", 2: "a", 3: "a", 4: "b"}

    placements = place(brokers("a", "a", "a", "b"), Load(), 12, 3)

    assert all({rack_of[broker_id] for broker_id in replicas} == {"a", "b"} for replicas in placements)


def test_what_is_placed_already_counts() -> None:
    load = Load([(1, 2), (1, 2), (1, 2)])

    placements = place(brokers(None, None, None), load, 3, 1)

    assert placements == [(3,), (2,), (3,)]


def test_the_order_of_the_candidates_makes_no_difference() -> None:
    candidates = brokers("a", "b", None, "a", "c")

    assert place(candidates, Load(), 11, 3) == place(candidates[::-1], Load(), 11, 3)
