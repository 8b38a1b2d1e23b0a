"""Placement: which brokers hold which partition, and who of them should lead it.

The one rule: the same brokers and the same load give the same placement, wherever and whenever it is worked
out. The first replica of a partition is its preferred leader.
It must not know which brokers are alive: the caller names the candidates.
Tests: tests/broker/test_placement.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A broker that may be given replicas; None is a rack of its own kind, shared by all brokers that name
    none."""

    broker_id: int
    rack: str | None


class Load:
    """How many replicas each broker holds, and of how many it is the preferred leader."""

    def __init__(self, placements: Iterable[Sequence[int]] = ()) -> None:
        self.leader_count: dict[int, int] = {}
        self.replica_count: dict[int, int] = {}
        for replicas in placements:
            self.add(replicas)

    def add(self, replicas: Sequence[int]) -> None:
        if replicas:
            self.leader_count[replicas[0]] = self.leader_count.get(replicas[0], 0) + 1
        for broker_id in replicas:
            self.replica_count[broker_id] = self.replica_count.get(broker_id, 0) + 1


def place(
    candidates: Sequence[Candidate], load: Load, partition_count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Replicas for each of `partition_count` new partitions, leader first; `load` is brought up to date on
    the way."""
    assert 0 < replication_factor <= len(candidates), (replication_factor, len(candidates))
    ordered = sorted(candidates, key=lambda candidate: candidate.broker_id)
    placements = []
    for _ in range(partition_count):
        replicas = _place_one(ordered, load, replication_factor)
        load.add(replicas)
        placements.append(replicas)
    return placements


def _place_one(ordered: Sequence[Candidate], load: Load, replication_factor: int) -> tuple[int, ...]:
    """The leader where fewest leaders are, then each further replica on a new rack if there is one, where
    fewest replicas are. Ties go round the circle of brokers from the leader on, so that its followers
    differ."""
    leaders, replicas = load.leader_count, load.replica_count
    leader = min(
        range(len(ordered)),
        key=lambda place: (
            leaders.get(ordered[place].broker_id, 0),
            replicas.get(ordered[place].broker_id, 0),
            place,
        ),
    )
    chosen = [ordered[leader]]
    racks = {ordered[leader].rack}
    # The turn of the circle by which a leader's followers change from one of its partitions to the next.
    turn = leader + 1 + leaders.get(ordered[leader].broker_id, 0) % max(1, len(ordered) - 1)
    circle = [ordered[(turn + step) % len(ordered)] for step in range(len(ordered))]
    while len(chosen) < replication_factor:
        free = [candidate for candidate in circle if candidate not in chosen]
        best = min(
            free, key=lambda candidate: (candidate.rack in racks, replicas.get(candidate.broker_id, 0))
        )
        chosen.append(best)
        racks.add(best.rack)
    return tuple(candidate.broker_id for candidate in chosen)
