"""Changes of membership: one voter at a time, effective at append, never two at once, gone when truncated."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.entries import Entry, EntryKind, Membership
from tidings.raft.errors import MembershipRefused, NotLeader
from tidings.raft.membership import MembershipHistory, check_step, majority
from tidings.raft.messages import VoteRequest

THREE = Membership(voters=(1, 2, 3))


def propose(network: Network, membership: Membership) -> Entry:
    return network.leader().propose_membership(membership, network.now_ms)


# -- the rules of one step


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(voters: int, needed: int) -> None:
    assert majority(voters) == needed


@pytest.mark.parametrize(
    "then",
    [
        Membership(voters=(1, 2, 3), learners=(4, 5, 6)),
        Membership(voters=(1, 2, 3, 4)),
        Membership(voters=(1, 2)),
        Membership(voters=(3, 2, 1)),
        Membership(voters=(1, 2), learners=(3,)),
    ],
    ids=["learners freely", "one more", "one less", "another order", "a voter becomes a learner"],
)
def test_steps_whose_majorities_overlap_are_allowed(then: Membership) -> None:
    check_step(THREE, then)


@pytest.mark.parametrize(
    "then",
    [
        Membership(voters=(1, 2, 4)),
        Membership(voters=(1, 2, 3, 4, 5)),
        Membership(voters=(1,)),
        Membership(voters=()),
        Membership(voters=(1, 2, 3, 3)),
        Membership(voters=(1, 2, 3), learners=(4, 4)),
        Membership(voters=(1, 2, 3), learners=(3,)),
        Membership(voters=(1, 2, 3, 0)),
    ],
    ids=["one for another", "two more", "two less", "nobody", "voter twice", "learner twice", "both", "zero"],
)
def test_other_steps_are_refused(then: Membership) -> None:
    with pytest.raises(MembershipRefused):
        check_step(THREE, then)


def test_the_history_follows_the_log_and_is_cut_with_it() -> None:
    two = Membership(voters=(1, 2))
    history = MembershipHistory(0, THREE, [Entry(4, 1, EntryKind.MEMBERSHIP, 0, 0, two.encode())])
    assert (history.newest, history.at(3), history.at(4)) == (two, THREE, two)

    assert history.truncate(4)

    assert (history.newest, history.newest_index) == (THREE, 0)
    assert not history.truncate(4)


# -- changes in a running group


def test_a_learner_is_added_catches_up_and_becomes_a_voter() -> None:
    network = Network([1, 2, 3, 4])
    network.create([1, 2, 3])
    network.until(lambda: bool(network.leaders()))
    network.propose(b"a")
    network.settle()

    propose(network, Membership(voters=(1, 2, 3), learners=(4,)))
    network.create_replica(4, THREE)
    network.pass_time(100)
    assert network.committed(4) == [b"a"]
    propose(network, Membership(voters=(1, 2, 3, 4)))
    network.pass_time(100)

    assert [network.group(member).membership.voters for member in (1, 2, 3, 4)] == [(1, 2, 3, 4)] * 4


def test_a_change_counts_from_the_moment_it_is_appended() -> None:
    network = running()
    network.isolate(3)
    entry = propose(network, Membership(voters=(1, 2)))
    assert network.leader().membership.voters == (1, 2)
    assert network.leader().commit_index < entry.index

    network.crash(2)
    network.propose(b"a")
    network.settle()

    assert network.committed(1) == [], "a majority of the new membership, which is both, is needed"


def test_only_one_change_is_under_way_at_a_time() -> None:
    network = running()
    network.slow_disks |= {2, 3}
    propose(network, Membership(voters=(1, 2)))

    with pytest.raises(MembershipRefused):
        propose(network, Membership(voters=(1, 2), learners=(4,)))

    network.slow_disks.clear()
    network.settle()
    propose(network, Membership(voters=(1, 2), learners=(4,)))


def test_no_change_before_an_entry_of_the_own_term_is_committed() -> None:
    """The bug of single-server changes: two leaders change the same membership differently, and both find
    majorities that share nobody."""
    network = Network([1, 2, 3, 4])
    network.create([1, 2, 3, 4])
    network.until(lambda: bool(network.leaders()))
    network.pass_time(100)
    network.slow_disks |= {3, 4}
    network.crash_noticed(1)
    while not network.leaders():
        network.now_ms += 10
        network.tick()
        network.settle()
        for member in (3, 4):
            network.write(member)
    network.collect()
    network.drop()

    with pytest.raises(MembershipRefused):
        propose(network, Membership(voters=(2, 3, 4)))


def test_a_follower_changes_no_membership() -> None:
    network = running()

    with pytest.raises(NotLeader):
        network.group(2).propose_membership(Membership(voters=(1, 2)), network.now_ms)


def test_a_change_that_is_replaced_by_another_leader_is_undone() -> None:
    network = running()
    network.isolate(1)
    propose(network, Membership(voters=(1, 2)))
    network.settle()
    assert network.group(1).membership.voters == (1, 2)

    network.until(lambda: any(member != 1 for member in network.leaders()))
    network.propose_at(network.leaders()[-1], b"a")
    network.heal()
    network.pass_time(1_000)

    assert network.group(1).membership == THREE
    assert network.committed(1) == [b"a"]


def test_a_leader_that_is_removed_commits_that_and_lets_another_lead() -> None:
    network = running()

    propose(network, Membership(voters=(2, 3)))
    took_ms = network.until(lambda: any(member != 1 for member in network.leaders()))

    assert took_ms <= 50
    assert network.leader().membership.voters == (2, 3)


def test_a_removed_leader_is_not_counted_while_it_still_leads() -> None:
    network = running()
    network.crash(3)

    entry = propose(network, Membership(voters=(2, 3)))
    network.settle()

    assert network.group(1).durable_index >= entry.index
    assert network.group(1).commit_index < entry.index


def test_a_removed_voter_stands_while_its_removal_is_not_committed() -> None:
    """It may hold the only log that can win (Raft dissertation 4.2.2)."""
    network = Network([1, 2])
    network.create([1, 2])
    network.until(lambda: bool(network.leaders()))
    network.pass_time(100)
    network.cut |= {(1, 2)}
    propose(network, Membership(voters=(2,)))
    network.settle()
    network.crash(1)
    network.cut.clear()
    network.restart(1)
    assert network.group(1).membership.voters == (2,)
    assert network.group(2).membership.voters == (1, 2)

    network.until(lambda: network.leaders() == [2])
    network.pass_time(100)

    assert network.group(2).membership.voters == (2,)


def test_a_removed_member_that_hears_nothing_does_not_disturb_the_others() -> None:
    network = running()
    network.isolate(3)
    propose(network, Membership(voters=(1, 2)))
    network.settle()
    term = network.leader().term
    network.heal()

    network.pass_time(10_000)

    assert (network.leaders(), network.leader().term) == ([1], term)
    assert all(request.pre for request in network.sent_by(3, VoteRequest) if isinstance(request, VoteRequest))


def test_every_replica_knows_the_membership_as_of_any_entry() -> None:
    network = running()
    entry = propose(network, Membership(voters=(1, 2), learners=(3,)))
    network.pass_time(100)

    for member in (1, 2, 3):
        group = network.group(member, GROUP)
        assert group.membership_at(entry.index - 1) == THREE
        assert group.membership_at(entry.index).learners == (3,)
