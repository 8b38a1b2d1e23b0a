"""All groups of one member: who gets a message, what happens to groups that come and go, and that nothing
is left to chance."""

from __future__ import annotations

from random import Random

from tests.raft.network import GROUP, Network, running
from tidings.raft import wire
from tidings.raft.config import RaftConfig
from tidings.raft.entries import EntryKind, HardState, Membership, StartState, TermStart
from tidings.raft.host import EARLY_MESSAGES_MAX, RaftHost
from tidings.raft.messages import Append, Message, VoteRequest

THREE = Membership(voters=(1, 2, 3))


def test_a_recovered_group_goes_on_where_it_was() -> None:
    network = running()
    for payload in (b"a", b"b"):
        network.propose(payload)
        network.settle()
    network.pass_time(50)

    for member in (1, 2, 3):
        network.crash(member)
    for member in (1, 2, 3):
        network.restart(member)
    assert [network.group(member).durable_index for member in (1, 2, 3)] == [3, 3, 3]
    network.until(lambda: bool(network.leaders()))
    network.pass_time(100)

    assert network.leader().term == 2, "a restarted leader never goes on in its old term"
    assert [network.committed(member) for member in (1, 2, 3)] == [[b"a", b"b"]] * 3


def test_a_group_recovered_from_a_checkpoint_knows_where_its_log_begins() -> None:
    host = RaftHost(member=1, config=RaftConfig(), random=Random(1))
    terms = (TermStart(term=1, index=1, offset=0), TermStart(term=3, index=40, offset=70))
    checkpoint = StartState(index=50, term=3, offset=90, membership=THREE, terms=terms)

    group = host.add(
        group=GROUP,
        start=checkpoint,
        hard=HardState(term=4, vote=2),
        tail=[],
        first_index=21,
        first_offset=33,
        doubtful=False,
        damaged=False,
        now_ms=0,
    )

    log = group.log
    assert (log.start_index, log.start_term, log.start_offset) == (20, 1, 33)
    assert (group.commit_index, group.commit_offset, log.window_first) == (50, 90, 51)
    assert (group.term, group.vote, log.term_at(45)) == (4, 2, 3)


def test_a_recovered_log_newer_than_the_hard_state_raises_the_term_and_spends_its_vote() -> None:
    network = running()
    network.propose(b"a")
    network.pass_time(50)
    network.crash(3)
    network.disks[3].hard_states[GROUP] = HardState(term=0, vote=0)

    network.restart(3)
    assert (network.group(3).term, network.group(3).vote) == (1, 3)
    network.settle()

    assert network.disks[3].hard_states[GROUP] == HardState(term=1, vote=3)


def test_a_message_for_a_group_that_comes_later_is_kept_for_it() -> None:
    network = Network([1, 2, 3])
    network.create_replica(1, THREE)
    network.pass_time(20)

    network.create_replica(2, THREE)
    network.settle()

    assert network.leaders() == [1]
    assert network.group(2).leader == 1


def test_messages_for_groups_that_never_come_are_bounded_and_hold_no_entries() -> None:
    host = RaftHost(member=1, config=RaftConfig(), random=Random(1))
    entries = running().leader().log.entries_from(1)

    for group in range(EARLY_MESSAGES_MAX + 10):
        host.step(Append(group, 1, 2, 1, 0, 0, 0, list(entries), 0, 0), 0)

    kept = list(host._early.values())
    assert len(kept) == EARLY_MESSAGES_MAX
    assert all(isinstance(message, Append) and message.entries == [] for message in kept)


def test_a_removed_group_is_gone_from_all_that_was_planned() -> None:
    network = running()
    network.propose(b"a")
    host = network.hosts[1]

    host.remove(GROUP)
    host.flush(network.now_ms)
    network.pass_time(2_000)

    assert GROUP not in host.groups
    assert host.outbox.seal() is None
    assert host.leader_table[GROUP][0] in (2, 3)


def test_a_group_that_exists_nowhere_is_forgotten() -> None:
    network = running()
    for member in (1, 2, 3):
        network.hosts[member].remove(GROUP)
        network.hosts[member].forget_group(GROUP)

    network.pass_time(500)

    assert [network.hosts[member].leader_table for member in (1, 2, 3)] == [{}, {}, {}]


def test_a_group_may_come_back_after_it_was_removed() -> None:
    network = running()
    network.leader().propose_membership(Membership(voters=(1, 2)), network.now_ms)
    network.propose(b"a")
    network.pass_time(50)
    network.hosts[3].remove(GROUP)
    network.pass_time(500)

    network.create_replica(3, THREE)
    network.leader().propose_membership(Membership(voters=(1, 2), learners=(3,)), network.now_ms)
    network.pass_time(100)

    assert network.committed(3) == [b"a"]


def test_the_appends_of_all_groups_leave_with_one_flush() -> None:
    network = Network([1, 2, 3])
    for group in range(1, 6):
        network.create([1, 2, 3], group=group)
    network.until(lambda: all(network.leaders(group) for group in range(1, 6)))
    network.pass_time(300)
    sent = len(network.sent)

    for group in range(1, 6):
        network.propose(b"a", group=group)
    network.collect()

    appends = [m for m in network.sent[sent:] if isinstance(m, Append)]
    assert [m.group for m in appends if m.receiver == 2] == [1, 2, 3, 4, 5]
    (flush,) = network.unwritten[1]
    assert list(flush.last) == [1, 2, 3, 4, 5]
    assert len(b"".join(wire.encode([m for m in appends if m.receiver == 2]))) < 1000


def test_known_dead_leaders_are_replaced_by_their_voters_in_turn() -> None:
    network = Network([1, 2, 3, 4, 5])
    network.create([1, 2, 3, 4, 5])
    network.until(lambda: bool(network.leaders()))
    network.pass_time(300)
    sent = len(network.sent)

    network.crash_noticed(1)
    network.until(lambda: bool(network.leaders()))

    asked = [m.sender for m in network.sent[sent:] if isinstance(m, VoteRequest)]
    assert set(asked) == {2}
    assert network.leaders() == [2]


def test_the_same_inputs_give_the_same_work() -> None:
    def run() -> list[Message]:
        network = running(seed=5)
        network.crash_noticed(1)
        network.until(lambda: bool(network.leaders()))
        for payload in (b"a", b"b"):
            network.propose(payload)
            network.settle()
        network.restart(1)
        network.pass_time(2_000)
        return network.sent

    assert run() == run()


def test_no_proposal_is_taken_for_a_membership() -> None:
    network = running()

    network.leader().propose(EntryKind.COMMAND, b"command", 0, network.now_ms)
    network.settle()

    assert network.leader().membership == THREE
