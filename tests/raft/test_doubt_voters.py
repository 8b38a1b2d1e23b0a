"""Whom a replica asks that may have lost promises: who votes now, as far as anybody who answers knows."""

from __future__ import annotations

from tests.raft.network import GROUP, Network, running
from tidings.raft.entries import HardState, Membership, StartState
from tidings.raft.messages import AppendReply, DoubtReply, DoubtRequest
from tidings.raft.progress import ProgressState

OLD = (1, 2, 3)
STILL = ((0, OLD),)


def asked(network: Network, member: int, since: int) -> set[int]:
    return {m.receiver for m in network.sent[since:] if isinstance(m, DoubtRequest) and m.sender == member}


def change(network: Network, voters: tuple[int, ...], learners: tuple[int, ...] = ()) -> None:
    network.leader().propose_membership(Membership(voters=voters, learners=learners), network.now_ms)
    network.pass_time(300)


def moved_to_3_4_5() -> Network:
    """A group whose voters were 1, 2, 3 and are 3, 4, 5 now. 3 comes back knowing the old ones only."""
    network = running([1, 2, 3, 4, 5][:3])
    for member in (4, 5):
        network.disks[member] = type(network.disks[1])()
        network.start(member)
        network.create_replica(member, Membership(voters=OLD))
        network.connect(member)
        change(network, network.leader().membership.voters, (member,))
        change(network, (*network.leader().membership.voters, member))
    network.elect(4)
    change(network, (2, 3, 4, 5))
    change(network, (3, 4, 5))
    network.crash(3)
    return network


def test_voters_that_an_answer_names_are_asked_too() -> None:
    network = moved_to_3_4_5()
    sent = len(network.sent)

    network.restart(3, damaged=True)
    network.settle()

    assert {4, 5} <= asked(network, 3, sent)
    assert not network.group(3).doubtful


def test_a_voter_that_was_replaced_and_is_gone_need_not_answer() -> None:
    network = moved_to_3_4_5()
    network.crash(1)

    network.restart(3, damaged=True)
    network.settle()

    assert not network.group(3).doubtful


def test_a_voter_of_today_that_does_not_answer_is_waited_for() -> None:
    network = moved_to_3_4_5()
    network.crash(5)

    network.restart(3, damaged=True)
    network.pass_time(1_000)

    assert network.group(3).doubtful


def test_a_voter_heard_of_in_the_second_phase_is_asked_both() -> None:
    network = running()
    network.crash(3)
    network.restart(3, doubtful=True)
    group = network.group(3)
    assert group.doubt is not None
    number = group.doubt.round_number
    for voter in (1, 2):
        network.deliver(DoubtReply(GROUP, 1, voter, 3, number, 1, 1, 1, STILL))

    network.deliver(DoubtReply(GROUP, 1, 1, 3, number, 2, 9, 1, ((8, (1, 2, 3, 4)),)))
    network.deliver(DoubtReply(GROUP, 1, 2, 3, number, 2, 9, 1, STILL))
    network.tick()
    network.collect()

    [phase] = {m.phase for m in network.under_way if isinstance(m, DoubtRequest) and m.receiver == 4}
    assert phase == 1
    assert group.doubtful


def test_a_leader_that_is_not_asked_forgets_promises_when_it_hears_that_they_may_be_lost() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(100)
    follower = network.leader().progress_of()[3]
    assert follower.counted_index == 2

    network.deliver(AppendReply(GROUP, 1, 3, 1, False, 2, 0, 0, 0, 0, True, False, 0, follower.session))

    assert follower.counted_index == follower.match_index == 0
    assert follower.state is ProgressState.START


def after_a_power_cut() -> Network:
    """Voters were 1, 2, 3 and are 3, 4, 5; nobody remembers what was committed; 1 and 2 are down."""
    network = moved_to_3_4_5()
    for member in (1, 2, 4, 5):
        network.crash(member)
    for member in (4, 5):
        network.restart(member)
    network.restart(3, doubtful=True)
    network.pass_time(100)
    assert network.group(3).doubtful
    return network


def test_a_former_voter_that_was_removed_from_the_cluster_is_not_waited_for() -> None:
    network = after_a_power_cut()

    network.hosts[3].forget_member(1)
    network.hosts[3].forget_member(2)
    network.settle()

    assert not network.group(3).doubtful


def test_a_former_voter_that_holds_nothing_of_the_group_says_so() -> None:
    network = after_a_power_cut()
    for member in (1, 2):
        network.start(member).holds_no_others()

    network.pass_time(300)

    assert not network.group(3).doubtful


def test_a_voter_of_the_newest_membership_known_that_is_gone_proves_that_there_is_a_newer_one() -> None:
    network = running()
    network.crash(3)
    network.hosts[2].holds_no_others()
    network.hosts[2].remove(GROUP)
    network.restart(3, doubtful=True)
    network.hosts[3].forget_member(2)

    network.pass_time(500)

    assert network.group(3).doubtful


def test_what_a_damaged_replica_knows_of_its_voters_is_as_new_as_its_checkpoint_was() -> None:
    """Its voters are 3, 4, 5 as of index 9; those who are still where all began do not count."""
    network = running()
    network.crash(3)
    network.hosts[3].groups.clear()
    host = network.start(3)
    host.add(
        group=GROUP,
        start=StartState(index=9, term=1, offset=0, membership=Membership(voters=(3, 4, 5))),
        hard=HardState(term=1, vote=0),
        tail=[],
        first_index=10,
        first_offset=0,
        doubtful=False,
        damaged=True,
        now_ms=network.now_ms,
    )

    network.pass_time(500)

    assert asked(network, 3, 0) == {4, 5}
    assert network.group(3).doubtful
    assert network.group(3).log.last_index == 0


def test_a_member_that_has_not_taken_up_all_its_groups_yet_says_nothing() -> None:
    network = running()
    network.crash(3)
    network.crash(2)
    network.start(2)

    network.restart(3, doubtful=True)
    network.pass_time(500)

    assert network.group(3).doubtful
