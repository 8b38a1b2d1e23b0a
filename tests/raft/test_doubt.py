"""Replicas that may have lost what they promised, or whose log is gone."""

from __future__ import annotations

from tests.raft.network import GROUP, Network, running
from tidings.raft.entries import HardState, StartState
from tidings.raft.messages import AppendReply, DoubtReply, DoubtRequest, VoteReply, VoteRequest
from tidings.raft.state import Role

STILL = ((0, (1, 2, 3)),)  # the voters that a group of three began with


def lose_last_flush(network: Network, member: int, entries: int) -> None:
    """What a cut tail takes away: the newest entries, although they were synced."""
    del network.disks[member].tails[GROUP][-entries:]


def granted_votes(network: Network, member: int, since: int) -> list[VoteReply]:
    return [m for m in network.sent[since:] if isinstance(m, VoteReply) and m.sender == member and m.granted]


def start_of(network: Network) -> StartState:
    """The beginning of all: the leader still has its whole log."""
    return StartState(index=0, term=0, offset=0, membership=network.leader().membership_at(0))


def refill(network: Network, member: int) -> None:
    """Both owners' part in giving a damaged replica a start."""
    network.hosts[network.leaders()[0]].outbox.starts_wanted.clear()
    network.leader().give_start(member, start_of(network), network.now_ms)
    network.settle()
    network.hosts[member].outbox.starts_installed.clear()
    network.hosts[member].start_installed(GROUP)
    network.settle()


def test_a_doubtful_replica_is_trusted_again_once_all_others_answered_and_it_caught_up() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(100)
    network.crash(3)
    lose_last_flush(network, 3, entries=1)
    network.restart(3, doubtful=True)
    assert network.group(3).doubtful

    network.pass_time(300)

    assert not network.group(3).doubtful
    assert network.payloads(3) == [b"a"]
    assert network.hosts[3].outbox.settled == {GROUP: None}
    assert network.leaders() == [1], "nobody was disturbed"


def test_a_doubtful_replica_gives_no_vote_and_does_not_stand() -> None:
    network = running()
    network.crash(1)
    network.crash(3)
    network.restart(3, doubtful=True)
    sent = len(network.sent)

    network.group(3).campaign(network.now_ms)
    network.pass_time(5_000)

    assert network.leaders() == []
    assert granted_votes(network, 3, sent) == []
    assert not [m for m in network.sent[sent:] if isinstance(m, VoteRequest) and m.sender == 3]


def test_what_a_doubtful_replica_acknowledges_commits_nothing() -> None:
    network = running()
    network.crash(2)
    network.crash(3)
    network.restart(3, doubtful=True)
    network.pass_time(100)

    network.propose(b"a")
    network.pass_time(300)

    assert network.payloads(3) == [b"a"]
    assert network.committed(1) == []
    network.restart(2)
    network.pass_time(500)
    assert network.committed(1) == [b"a"]


def test_an_acknowledged_entry_that_was_lost_is_not_voted_away() -> None:
    """Member 3 acknowledged `a` and lost it; 2 never had it. Without the round 2 and 3 would elect 2, and
    `a`, committed by 1 and 3, would be gone."""
    network = running()
    network.isolate(2)
    network.propose(b"a")
    network.pass_time(50)
    assert network.committed(1) == [b"a"]
    network.crash(3)
    lose_last_flush(network, 3, entries=1)
    network.heal()
    network.cut |= {(1, 2), (2, 1)}

    network.restart(3, doubtful=True)
    network.cut |= {(1, 3)}
    network.pass_time(200)
    network.crash(1)
    network.group(2).campaign(network.now_ms)
    network.pass_time(5_000)

    assert network.leaders() == []
    network.cut.clear()
    network.restart(1)
    network.until(lambda: bool(network.leaders()) and network.leader().term_start_committed)
    assert network.committed(network.leaders()[0]) == [b"a"]


def test_after_the_round_a_vote_still_asks_for_all_that_others_held() -> None:
    network = running()
    network.isolate(2)
    network.propose(b"a")
    network.pass_time(50)
    network.crash(3)
    lose_last_flush(network, 3, entries=1)
    network.crash(1)
    network.cut.clear()
    network.restart(3, doubtful=True)
    network.collect()
    (round_number,) = {m.round_number for m in network.sent if isinstance(m, DoubtRequest)}
    for phase in (1, 2):
        network.deliver(DoubtReply(GROUP, 1, 2, 3, round_number, phase, 1, 1, STILL))
        network.deliver(DoubtReply(GROUP, 1, 1, 3, round_number, phase, 2, 1, STILL))
    assert not network.group(3).doubtful

    network.group(2).campaign(network.now_ms)
    network.pass_time(3_000)
    assert network.leaders() == [], "neither 2 nor 3 has what 1 held"
    network.restart(1)
    network.until(lambda: network.leaders() == [1])


def test_a_forgotten_vote_is_not_given_twice() -> None:
    """Member 3 voted for 2 in term 5 and lost that. Whoever asks again in term 5 gets nothing; 2 itself
    tells of the term."""
    network = running()
    network.crash(1)
    network.crash(3)
    network.crash(2)
    network.disks[2].hard_states[GROUP] = HardState(term=5, vote=2)
    for member in (1, 2):
        network.restart(member)

    network.restart(3, doubtful=True)
    network.settle()
    assert (network.group(3).term, network.group(3).vote) == (5, 3)
    sent = len(network.sent)
    network.deliver(VoteRequest(GROUP, 5, 1, 3, False, 99, 99, True))
    network.settle()

    assert granted_votes(network, 3, sent) == []
    network.until(lambda: bool(network.leaders()))
    assert network.leader().term > 5


def test_an_old_acknowledgement_still_under_way_is_not_counted_after_the_round() -> None:
    network = running()
    network.isolate(2)
    network.propose(b"a")
    network.collect()
    network.deliver_all()
    network.collect()
    network.write(3)
    network.collect()
    late = network.drop(lambda message: isinstance(message, AppendReply) and message.sender == 3)
    assert late
    network.crash(3)
    lose_last_flush(network, 3, entries=1)
    network.restart(3, doubtful=True)
    network.cut |= {(3, 1)}
    network.deliver(DoubtRequest(GROUP, 1, 3, 1, 12345, 1))

    for reply in late:
        network.deliver(reply)
    network.write(1)

    assert network.committed(1) == []


def test_both_phases_are_asked_of_everybody() -> None:
    network = running()
    network.crash(3)
    network.restart(3, doubtful=True)

    network.settle()

    asked = [(m.receiver, m.phase) for m in network.sent if isinstance(m, DoubtRequest)]
    assert sorted(set(asked)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    first_of_second = asked.index(next(pair for pair in asked if pair[1] == 2))
    assert {receiver for receiver, _ in asked[:first_of_second]} == {1, 2}


def test_answers_of_another_life_or_phase_are_ignored() -> None:
    network = running()
    network.crash(3)
    network.crash(2)
    network.restart(3, doubtful=True)
    network.settle()
    round_number = max(m.round_number for m in network.sent if isinstance(m, DoubtRequest))

    network.deliver(DoubtReply(GROUP, 1, 2, 3, round_number + 1, 1, 9, 9, STILL))
    network.deliver(DoubtReply(GROUP, 1, 2, 3, round_number, 2, 9, 9, STILL))

    assert network.group(3).doubtful


def test_an_answer_leaves_when_all_that_it_tells_of_is_durable() -> None:
    network = running()
    network.slow_disks.add(2)
    network.propose(b"a")
    network.settle()

    network.deliver(DoubtRequest(GROUP, 1, 3, 2, 1, 2))
    network.collect()
    assert network.sent_by(2, DoubtReply) == []
    network.write(2)
    network.collect()

    (reply,) = network.sent_by(2, DoubtReply)
    assert isinstance(reply, DoubtReply)
    assert (reply.last_index, reply.last_term) == (2, 1)


def test_a_question_raises_nobodys_term() -> None:
    network = running()

    network.deliver(DoubtRequest(GROUP, 50, 3, 1, 1, 1))
    network.settle()

    assert network.leaders() == [1]
    assert network.leader().term == 1


def test_lost_questions_are_asked_again() -> None:
    network = running()
    network.crash(3)
    network.restart(3, doubtful=True)
    network.collect()
    network.drop()

    network.pass_time(400)

    assert not network.group(3).doubtful


def test_a_whole_group_in_doubt_goes_on_once_all_have_answered() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(100)
    for member in (1, 2, 3):
        network.crash(member)
    for member in (1, 2, 3):
        network.restart(member, doubtful=True)

    network.until(lambda: bool(network.leaders()) and network.leader().term_start_committed)
    network.pass_time(100)

    assert [network.committed(member) for member in (1, 2, 3)] == [[b"a"]] * 3
    assert not any(network.group(member).doubtful for member in (1, 2, 3))


def test_the_only_voter_of_a_group_has_nobody_to_ask() -> None:
    network = Network([1])
    network.create()
    network.settle()
    network.crash(1)

    network.restart(1, doubtful=True)
    network.settle()

    assert not network.group(1).doubtful
    assert network.leaders() == [1]


def test_the_mark_stays_until_the_replica_has_on_disk_what_others_held() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(100)
    network.crash(3)
    lose_last_flush(network, 3, entries=1)
    network.slow_disks.add(3)
    network.restart(3, doubtful=True)
    network.settle()

    assert network.payloads(3) == [b"a"]
    assert not network.group(3).doubtful
    assert network.hosts[3].outbox.settled == {}
    network.slow_disks.clear()
    network.settle()

    assert network.hosts[3].outbox.settled == {GROUP: None}


# -- damage


def test_a_damaged_replica_asks_for_a_start_and_is_refilled() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(100)
    network.crash(3)

    network.restart(3, damaged=True)
    network.settle()
    assert network.group(3).log.last_index == 0
    assert [wanted.member for wanted in network.hosts[1].outbox.starts_wanted] == [3]
    refill(network, 3)
    network.pass_time(100)

    assert not network.group(3).damaged
    assert network.committed(3) == [b"a"]
    assert network.hosts[3].outbox.settled == {GROUP: None}


def test_a_damaged_replica_elects_nobody_that_lacks_what_others_hold_and_does_not_stand() -> None:
    network = running()
    network.isolate(2)
    network.propose(b"a")
    network.pass_time(50)
    network.crash(3)
    network.cut.clear()
    network.cut |= {(1, 2), (2, 1)}
    network.restart(3, damaged=True)
    network.settle()
    network.crash(1)

    network.group(2).campaign(network.now_ms)
    network.group(3).campaign(network.now_ms)
    network.pass_time(5_000)

    assert network.leaders() == []
    assert network.group(3).role is Role.FOLLOWER


def test_a_damaged_replica_refuses_entries_until_it_has_a_start() -> None:
    network = running()
    network.crash(3)
    network.restart(3, damaged=True)
    network.settle()

    network.propose(b"a")
    network.pass_time(100)

    assert network.group(3).log.last_index == 0
    replies = [m for m in network.sent_by(3, AppendReply) if isinstance(m, AppendReply)]
    assert replies[-1].needs_start
    assert not replies[-1].counts


def test_a_replica_being_refilled_stands_only_when_it_has_all_that_others_held() -> None:
    network = running()
    for _ in range(3):
        network.propose(b"a")
        network.settle()
    network.pass_time(100)
    network.crash(3)
    network.restart(3, damaged=True)
    network.settle()
    network.hosts[1].outbox.starts_wanted.clear()
    network.leader().give_start(3, start_of(network), network.now_ms)
    network.settle()
    network.isolate(3)
    network.hosts[3].start_installed(GROUP)
    network.settle()
    sent = len(network.sent)

    network.group(3).campaign(network.now_ms)
    network.pass_time(3_000)
    assert not [m for m in network.sent[sent:] if isinstance(m, VoteRequest) and m.sender == 3]

    network.heal()
    network.pass_time(2_000)
    network.elect(3)
    assert network.committed(3) == [b"a"] * 3
