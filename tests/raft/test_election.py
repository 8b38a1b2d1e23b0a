"""Elections: who gets a vote, who wins, and that a cure for disruption never leaves a majority without a
leader."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.entries import EntryKind
from tidings.raft.errors import NotLeader
from tidings.raft.messages import AppendReply, Led, TimeoutNow, VoteReply, VoteRequest
from tidings.raft.state import Role


def last_vote_reply(network: Network, member: int) -> VoteReply:
    network.collect()
    network.write(member)
    network.collect()
    reply = network.sent_by(member, VoteReply)[-1]
    assert isinstance(reply, VoteReply)
    return reply


def ask(
    network: Network, member: int, asker: int, term: int, last_term: int, last_index: int, **how: bool
) -> VoteReply:
    """What a member answers to a request made up by the test."""
    pre, is_transfer = how.get("pre", False), how.get("is_transfer", False)
    network.deliver(VoteRequest(GROUP, term, asker, member, pre, last_index, last_term, is_transfer))
    return last_vote_reply(network, member)


def silent(network: Network) -> Network:
    """All followers have lost sight of their leader, long enough to vote."""
    network.crash(network.leaders()[0])
    network.now_ms += 1000
    return network


# -- the usual course


def test_the_first_voter_of_a_new_group_leads_at_once() -> None:
    network = Network([1, 2, 3])
    network.create([2, 3, 1])

    took_ms = network.until(lambda: bool(network.leaders()))

    assert network.leaders() == [2]
    assert took_ms <= 50


def test_a_group_of_one_voter_leads_and_commits_by_itself() -> None:
    network = Network([1])
    network.create()
    network.settle()

    network.propose(b"a")
    network.settle()

    assert network.committed(1) == [b"a"]
    assert network.group(1).term_start_committed


def test_a_silent_leader_is_replaced_within_the_longest_timeout() -> None:
    network = running()
    network.crash(1)

    took_ms = network.until(lambda: bool(network.leaders()))

    assert 1000 - 160 <= took_ms <= 2200


def test_a_leader_known_to_be_down_is_replaced_at_once() -> None:
    network = running()

    network.crash_noticed(1)
    took_ms = network.until(lambda: bool(network.leaders()))

    assert took_ms <= 50


def test_a_candidate_in_haste_asks_again_soon_when_others_notice_later() -> None:
    network = running()
    network.crash(1)
    network.hosts[2].member_down(1, network.now_ms)
    network.pass_time(50)
    assert network.leaders() == []

    network.hosts[3].member_down(1, network.now_ms)
    took_ms = network.until(lambda: bool(network.leaders()))

    assert took_ms <= 200


def test_a_thousand_rounds_of_timeouts_elect_nobody_while_the_leader_lives() -> None:
    network = running()
    term = network.leader().term

    network.pass_time(20_000)

    assert network.leaders() == [1]
    assert network.leader().term == term


# -- who gets a vote


def test_one_vote_per_term() -> None:
    network = silent(running())

    first = ask(network, 2, asker=3, term=5, last_term=1, last_index=9)
    second = ask(network, 2, asker=1, term=5, last_term=1, last_index=9)
    again = ask(network, 2, asker=3, term=5, last_term=1, last_index=9)

    assert (network.group(2).term, network.group(2).vote) == (5, 3)
    assert [first.granted, second.granted, again.granted] == [True, False, True]


def test_the_vote_survives_a_restart() -> None:
    network = silent(running())
    ask(network, 2, asker=3, term=5, last_term=1, last_index=9)
    network.settle()

    network.crash(2)
    network.restart(2)
    reply = ask(network, 2, asker=1, term=5, last_term=1, last_index=9)

    assert (network.group(2).term, network.group(2).vote) == (5, 3)
    assert not reply.granted


@pytest.mark.parametrize(
    ("last_term", "last_index", "granted"),
    [(1, 1, False), (1, 3, True), (1, 4, True), (2, 1, True), (0, 99, False)],
    ids=["shorter", "as long", "longer", "newer term though shorter", "older term though longer"],
)
def test_a_vote_goes_only_to_a_log_at_least_as_new(last_term: int, last_index: int, granted: bool) -> None:
    network = running()
    for payload in (b"a", b"b"):
        network.propose(payload)
        network.settle()
    assert (network.group(2).log.last_index, network.group(2).log.last_term) == (3, 1)
    silent(network)

    ask(network, 2, asker=3, term=7, last_term=last_term, last_index=last_index)
    network.settle()

    assert last_vote_reply(network, 2).granted is granted
    assert network.group(2).term == 7, "the term is taken over, vote or not"


def test_a_candidate_that_lacks_a_committed_entry_cannot_win() -> None:
    network = running()
    network.isolate(3)
    network.propose(b"a")
    network.settle()
    network.heal()
    network.isolate(1)

    network.group(3).campaign(network.now_ms)
    network.until(lambda: 2 in network.leaders())

    assert network.committed(2) == [b"a"]
    assert 3 not in network.leaders()


def test_only_voters_are_counted() -> None:
    network = Network([1, 2, 3, 8, 9])
    network.create([1, 2, 3], learners=(8, 9))
    network.until(lambda: bool(network.leaders()))
    network.pass_time(100)
    network.crash(2)
    network.crash(3)

    network.pass_time(5_000)

    assert network.leaders() == []
    assert network.group(1).role is not Role.LEADER


def test_a_learner_never_stands() -> None:
    network = Network([1, 9])
    network.create([1], learners=(9,))
    network.pass_time(100)
    network.crash_noticed(1)

    network.group(9).campaign(network.now_ms)
    network.pass_time(5_000)

    assert network.sent_by(9, VoteRequest) == []


# -- pre-vote, stickiness, and the liveness they must not cost


def test_a_pre_vote_raises_no_term() -> None:
    network = silent(running())

    reply = ask(network, 2, asker=3, term=40, last_term=1, last_index=9, pre=True)

    assert reply.granted
    assert (network.group(2).term, network.group(2).vote) == (1, 1)


def test_a_member_that_was_cut_off_comes_back_without_unseating_the_leader() -> None:
    network = running()
    network.isolate(3)
    network.pass_time(10_000)
    assert network.group(3).term == 1, "without a majority's pre-votes it never left its term"

    network.heal()
    network.pass_time(3_000)

    assert network.leaders() == [1]
    assert network.leader().term == 1
    assert network.group(3).leader == 1


def test_a_vote_is_not_given_while_the_leader_is_heard() -> None:
    network = running()

    network.deliver(VoteRequest(GROUP, 9, 3, 2, False, 99, 99, False))
    network.settle()

    assert network.group(2).term == 1
    assert network.leaders() == [1]


def test_a_member_stuck_in_a_newer_term_gets_the_group_going_again() -> None:
    """The pair to stickiness: without it the majority's leader and this member would refuse each other for
    ever."""
    network = running()
    network.isolate(3)
    network.deliver(VoteRequest(GROUP, 9, 2, 3, False, 99, 99, True))
    network.settle()
    assert network.group(3).term == 9

    network.heal()
    network.until(lambda: bool(network.leaders()) and network.group(3).leader == network.leaders()[0])

    assert network.leader().term >= 9


def test_pre_vote_leaves_no_majority_without_a_leader() -> None:
    """One follower still hears the old leader, the other does not; then the leader dies."""
    network = running()
    network.cut |= {(1, 3), (3, 1)}
    network.pass_time(3_000)
    network.crash(1)

    took_ms = network.until(lambda: bool(network.leaders()))

    assert took_ms <= 6_000


def test_a_leader_that_asks_for_votes_itself_is_no_longer_taken_for_alive() -> None:
    network = running()
    network.crash(1)
    network.restart(1)

    network.group(1).campaign(network.now_ms)
    network.settle()

    assert network.leaders() == [1]
    assert network.leader().term == 2


def test_two_that_ask_at_the_same_moment_do_not_split_the_vote() -> None:
    network = running()
    network.crash_noticed(1)

    network.group(2).campaign(network.now_ms)
    network.group(3).campaign(network.now_ms)
    network.settle()

    assert network.leaders() == [2]
    assert network.leader().term == 2


def test_a_late_answer_of_an_earlier_election_counts_for_nothing() -> None:
    network = silent(running())
    network.slow_disks |= {2, 3}
    network.group(2).campaign(network.now_ms)
    network.settle()
    assert network.group(2).role is Role.CANDIDATE

    for old_term in (0, 1):
        network.deliver(VoteReply(GROUP, 1, 3, 2, False, True, old_term))
        network.deliver(VoteReply(GROUP, 1, 3, 2, True, True, old_term))

    assert network.group(2).role is Role.CANDIDATE


# -- stepping down


def test_a_leader_cut_off_from_the_majority_stops_leading_within_a_timeout() -> None:
    network = running()
    network.isolate(1)

    took_ms = network.until(lambda: 1 not in network.leaders())

    assert took_ms <= 1600
    with pytest.raises(NotLeader):
        network.group(1).propose(EntryKind.RECORDS, b"a", 1, network.now_ms)


def test_a_host_that_stood_still_blames_nobody_before_it_has_read_what_they_said() -> None:
    """An event loop that stalls sees all others silent at once."""
    network = running()
    sent = len(network.sent)

    network.now_ms += 5_000
    network.pass_time(5_000)

    assert (network.leaders(), network.leader().term) == ([1], 1)
    assert not [message for message in network.sent[sent:] if isinstance(message, VoteRequest)]


def test_a_host_that_keeps_standing_still_gives_up_leading_all_the_same() -> None:
    network = running()
    network.isolate(1)

    for _ in range(8):
        network.now_ms += 500
        network.tick()
        network.settle()

    assert 1 not in network.leaders()


def test_a_leader_of_an_older_term_steps_down_when_it_hears_of_a_newer_one() -> None:
    network = running()

    network.deliver(AppendReply(GROUP, 5, 2, 1, False, 0, 0, 0, 0, 0, False, False, 0, 0))

    assert network.leaders() == []
    assert network.group(1).term == 5


def test_an_append_of_an_older_term_is_answered_with_the_newer_one() -> None:
    network = running()
    network.isolate(1)
    network.until(lambda: any(member != 1 for member in network.leaders()))
    network.heal()

    network.pass_time(1_000)

    assert len(network.leaders()) == 1
    assert network.group(1).term == network.leader().term


# -- hand-over


def test_leadership_is_handed_over_without_waiting_for_a_timeout() -> None:
    network = running()
    network.propose(b"a")
    network.settle()

    network.leader().transfer(3, network.now_ms)
    network.settle()

    assert network.leaders() == [3]
    assert network.committed(3) == [b"a"]


def test_a_leader_takes_no_proposals_while_it_hands_over() -> None:
    network = running()
    network.leader().transfer(3, network.now_ms)

    with pytest.raises(NotLeader):
        network.propose(b"a")


def test_leadership_is_handed_over_only_once_the_other_has_everything() -> None:
    network = running()
    network.slow_disks.add(3)
    network.propose(b"a")
    network.settle()

    network.leader().transfer(3, network.now_ms)
    network.settle()
    assert network.sent_by(1, TimeoutNow) == []
    network.slow_disks.clear()
    network.settle()

    assert network.leaders() == [3]


def test_a_hand_over_that_leads_nowhere_is_given_up() -> None:
    network = running()
    network.crash(3)
    network.propose(b"a")

    network.leader().transfer(3, network.now_ms)
    network.pass_time(1_100)
    network.propose(b"b")
    network.settle()

    assert network.committed(1) == [b"a", b"b"]


def test_a_late_call_to_stand_of_an_older_term_is_ignored() -> None:
    network = running()
    network.elect(2)
    term = network.leader().term

    network.deliver(TimeoutNow(GROUP, 1, 1, 3))
    network.settle()

    assert network.leader().term == term


def test_every_host_hears_of_a_new_leader_member_of_the_group_or_not() -> None:
    network = Network([1, 2, 3, 4])
    network.hosts[1].meet(4)
    network.create([1, 2, 3])
    network.until(lambda: bool(network.leaders()))

    assert network.hosts[4].leader_table[GROUP] == (1, 1)
    assert network.sent_by(1, Led)
