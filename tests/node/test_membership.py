"""Tests of node/membership.py: one safe step at a time, and whom it is for."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from tidings.node.membership import Target, next_membership
from tidings.raft.config import RaftConfig
from tidings.raft.entries import EntryKind, HardState, Membership, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost

LEADER = 11
COMMITTED = 200  # entries; more than a newcomer may lack


def leader_of(voters: Iterable[int], learners: Iterable[int] = (), *, entry_count: int = COMMITTED) -> Group:
    """A leader alone on its host that has committed so many entries, before the others came."""
    host = RaftHost(member=LEADER, config=RaftConfig(), random=Random(1))
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(LEADER,)))
    group = host.add(
        group=1,
        start=start,
        hard=HardState(term=0, vote=0),
        tail=[],
        first_index=1,
        first_offset=0,
        doubtful=False,
        damaged=False,
        now_ms=0,
    )
    for number in range(entry_count - 1):
        group.propose(EntryKind.RECORDS, b"%d" % number, 1, 0)
    persist(host)
    others = [voter for voter in voters if voter != LEADER]
    for place, _ in enumerate(others):
        group.propose_membership(Membership(voters=(LEADER, *others[: place + 1])), 0)
        persist(host)
        acknowledge_all(group)
    if learners:
        group.propose_membership(Membership(voters=(LEADER, *others), learners=tuple(learners)), 0)
        persist(host)
        acknowledge_all(group)
    return group


def persist(host: RaftHost) -> None:
    host.flush(0)
    flush = host.outbox.seal()
    assert flush is not None
    host.persisted(flush, 0)


def acknowledge_all(group: Group) -> None:
    """All voters have all of it."""
    for progress in group.progress_of().values():
        if progress.is_voter:
            has(group, progress.member, group.last_index)
    group.commit_index = group.last_index
    group.commit_offset = group.next_offset


def has(group: Group, member: int, index: int) -> None:
    """The follower has said that it holds the log up to an index."""
    progress = group.progress_of()[member]
    progress.match_index = progress.counted_index = index


def target(
    voters: Iterable[int],
    *,
    learners: Iterable[int] = (),
    leaving: Iterable[int] = (),
    reachable: Iterable[int] | None = None,
) -> Target:
    return Target(
        voters=tuple(voters),
        learners=tuple(learners),
        leaving=tuple(leaving),
        reachable=tuple(voters if reachable is None else reachable),
    )


def test_nothing_is_done_where_all_is_as_it_should_be() -> None:
    assert next_membership(leader_of([11, 12, 13]), target([11, 12, 13])) is None


def test_newcomers_listen_first() -> None:
    step = next_membership(leader_of([11, 12]), target([11, 12, 13], learners=[14]))

    assert step == Membership(voters=(11, 12), learners=(13, 14))


def test_a_listener_that_has_caught_up_gets_its_vote() -> None:
    group = leader_of([11, 12], [13, 14])
    has(group, 13, group.commit_index - 10)

    step = next_membership(group, target([11, 12, 13], learners=[14]))

    assert step == Membership(voters=(11, 12, 13), learners=(14,))


@pytest.mark.parametrize("lacking", [65, COMMITTED // 2, COMMITTED])
def test_a_listener_that_is_far_behind_waits(lacking: int) -> None:
    group = leader_of([11, 12], [13])
    has(group, 13, max(0, group.commit_index - lacking))

    assert next_membership(group, target([11, 12, 13])) is None


def test_a_listener_that_was_never_heard_of_waits_however_short_the_log_is() -> None:
    group = leader_of([11, 12], [13], entry_count=3)

    assert next_membership(group, target([11, 12, 13])) is None


def test_a_listener_that_does_not_answer_just_now_waits() -> None:
    group = leader_of([11, 12], [13])
    has(group, 13, group.commit_index)

    assert next_membership(group, target([11, 12, 13], reachable=[11, 12])) is None


def test_a_listener_that_is_not_to_vote_stays_one() -> None:
    group = leader_of([11, 12], [14])
    has(group, 14, group.commit_index)

    assert next_membership(group, target([11, 12], learners=[14])) is None


def test_nobody_leaves_while_somebody_who_should_vote_does_not() -> None:
    group = leader_of([11, 12, 13], [14])

    assert next_membership(group, target([11, 12, 14], leaving=[13])) is None


def test_who_is_to_leave_does_so_when_all_others_vote() -> None:
    group = leader_of([11, 12, 13, 14])

    step = next_membership(group, target([11, 12, 14], leaving=[13]))

    assert step == Membership(voters=(11, 12, 14))


def test_voters_leave_one_at_a_time() -> None:
    group = leader_of([11, 12, 13, 14])

    step = next_membership(group, target([11, 12], leaving=[13, 14]))

    assert step == Membership(voters=(11, 12, 14))


def test_a_leader_does_not_take_itself_out() -> None:
    group = leader_of([11, 12, 13])

    assert next_membership(group, target([12, 13], leaving=[11])) is None


def test_a_voter_that_is_neither_wanted_nor_to_leave_stays() -> None:
    assert next_membership(leader_of([11, 12, 13]), target([11, 12])) is None


def test_listeners_that_are_to_leave_do_so_at_once() -> None:
    group = leader_of([11, 12], [13, 14])

    step = next_membership(group, target([11, 12], learners=[14], leaving=[13]))

    assert step == Membership(voters=(11, 12), learners=(14,))
