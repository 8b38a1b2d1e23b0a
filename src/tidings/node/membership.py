"""Membership: bringing the voters of a group to those that the cluster's metadata names, one safe step at a
time.

Its one rule: nobody leaves before all who should vote do; a newcomer listens until it has caught up, then
votes. The leader asks for the next step again and again; the steps themselves are Raft's. Tests:
tests/node/test_membership.py
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tidings.raft.entries import Membership
from tidings.raft.group import Group

# A learner this close behind the leader's commit index is promoted: what is missing is on its way.
_CAUGHT_UP_ENTRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Who should vote and who should only listen; `leaving` are the members that may be taken out,
    `reachable` those who answer just now: nobody else is given a vote."""

    voters: Collection[int]
    learners: Collection[int]
    leaving: Collection[int]
    reachable: Collection[int]


def next_membership(group: Group, target: Target) -> Membership | None:
    """The next change for the leader to propose; None where nothing is to be done, or nothing can be yet."""
    now = group.membership
    newcomers = [
        m for m in (*target.voters, *target.learners) if m not in now.voters and m not in now.learners
    ]
    if newcomers:
        return Membership(voters=now.voters, learners=(*now.learners, *newcomers))
    for learner in now.learners:
        if learner in target.voters and learner in target.reachable and _has_caught_up(group, learner):
            rest = tuple(other for other in now.learners if other != learner)
            return Membership(voters=(*now.voters, learner), learners=rest)
    if any(voter not in now.voters for voter in target.voters):
        return None  # still catching up: nobody leaves yet
    for voter in now.voters:
        if voter in target.leaving and voter != group.member:
            return Membership(voters=tuple(v for v in now.voters if v != voter), learners=now.learners)
    stale = [learner for learner in now.learners if learner in target.leaving]
    if stale:
        return Membership(voters=now.voters, learners=tuple(m for m in now.learners if m not in stale))
    return None


def _has_caught_up(group: Group, member: int) -> bool:
    """One of whom nothing has been heard has nothing, however short the log is."""
    progress = group.progress_of().get(member)
    if progress is None or not progress.counted_index:
        return False
    return progress.counted_index + _CAUGHT_UP_ENTRIES >= group.commit_index
