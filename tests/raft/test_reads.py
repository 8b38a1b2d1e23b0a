"""Linearizable reads: the leader answers only what a majority confirmed after the question."""

from __future__ import annotations

from tests.raft.network import Network, running
from tidings.raft.messages import Append, AppendReply
from tidings.raft.outbox import ReadConfirmed


def answers(network: Network, member: int) -> dict[int, int | None]:
    """context -> index, or None where the read was refused; every context is answered once."""
    confirmed: list[ReadConfirmed] = network.hosts[member].outbox.reads_confirmed
    found = {read.context: read.index for read in confirmed}
    assert len(found) == len(confirmed), confirmed
    return found


def test_a_read_names_the_commit_index_of_the_moment_it_was_asked() -> None:
    network = running()
    network.propose(b"a")
    network.settle()
    asked_at = network.leader().commit_index

    network.leader().read_index(5, network.now_ms)
    network.propose(b"b")
    network.settle()

    assert answers(network, 1) == {5: asked_at}


def test_a_read_waits_for_a_majority() -> None:
    network = running()
    network.cut |= {(2, 1), (3, 1)}

    network.leader().read_index(5, network.now_ms)
    network.settle()
    assert answers(network, 1) == {}
    network.cut.discard((3, 1))
    network.pass_time(600)

    assert list(answers(network, 1)) == [5]


def test_reads_of_one_turn_share_a_round() -> None:
    network = running()
    sent = len(network.sent)

    for context in range(10):
        network.leader().read_index(context, network.now_ms)
    network.settle()

    assert list(answers(network, 1)) == list(range(10))
    assert len([message for message in network.sent[sent:] if isinstance(message, Append)]) == 2


def test_a_single_voter_answers_at_once() -> None:
    network = Network([1])
    network.create()
    network.settle()

    network.leader().read_index(5, network.now_ms)

    assert answers(network, 1) == {5: 1}


def test_a_read_before_the_first_commit_of_the_term_waits_for_it() -> None:
    """The leader may not know yet that entries of the term before are committed, and would answer too low."""
    network = running()
    network.propose(b"a")
    network.settle()
    network.slow_disks |= {1, 3}
    network.crash_noticed(1)
    while not network.leaders():
        network.now_ms += 10
        network.tick()
        network.settle()
        network.write(3)
    network.collect()
    network.drop()
    leader = network.leader()
    assert not leader.term_start_committed

    leader.read_index(5, network.now_ms)
    assert answers(network, leader.member) == {}
    network.slow_disks.clear()
    network.pass_time(1_500)

    assert answers(network, leader.member) == {5: leader.term_start_index}


def test_a_leader_that_was_replaced_unknowingly_confirms_nothing() -> None:
    network = running()
    network.isolate(1)
    network.until(lambda: 2 in network.leaders() or 3 in network.leaders())

    network.group(1).read_index(5, network.now_ms)
    network.pass_time(3_000)

    assert answers(network, 1) == {5: None}


def test_an_answer_to_an_earlier_round_confirms_no_later_read() -> None:
    network = running()
    network.leader().read_index(5, network.now_ms)
    network.settle()
    old = [m for m in network.sent if isinstance(m, AppendReply) and m.read_context]
    network.cut |= {(2, 1), (3, 1)}
    network.leader().read_index(6, network.now_ms)
    network.settle()

    for reply in old:
        network.deliver(reply)

    assert list(answers(network, 1)) == [5]


def test_who_does_not_lead_refuses() -> None:
    network = running()

    network.group(2).read_index(5, network.now_ms)

    assert answers(network, 2) == {5: None}


def test_reads_that_wait_are_refused_when_leadership_ends() -> None:
    network = running()
    network.cut |= {(2, 1), (3, 1)}
    network.leader().read_index(5, network.now_ms)
    network.settle()

    network.group(1).step_down(network.now_ms)

    assert answers(network, 1) == {5: None}


def test_a_lost_question_is_asked_again() -> None:
    network = running()
    network.leader().read_index(5, network.now_ms)
    network.collect()
    network.drop()

    network.pass_time(600)

    assert list(answers(network, 1)) == [5]
