"""Messages leave when what they promise is durable, not before and not out of turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.entries import Entry, EntryKind, HardState
from tidings.raft.messages import AppendReply, TimeoutNow, VoteReply, VoteRequest
from tidings.raft.outbox import Outbox


def entry(index: int) -> Entry:
    return Entry(index, 1, EntryKind.RECORDS, index, 1, b"batch")


def test_a_message_waits_for_its_flush() -> None:
    outbox = Outbox()
    outbox.entries.append((GROUP, entry(1)))
    message = TimeoutNow(GROUP, 1, 1, 2)

    outbox.send_after(1, message)
    flush = outbox.seal()
    assert flush is not None
    assert outbox.messages == []
    outbox.made_durable(flush.number)
    outbox.release()

    assert outbox.messages == [message]


def test_a_message_that_rests_on_what_is_durable_leaves_at_once() -> None:
    outbox = Outbox()

    outbox.send_after(0, TimeoutNow(GROUP, 1, 1, 2))

    assert len(outbox.messages) == 1


def test_a_flush_takes_what_was_collected_and_names_the_last_entry_of_each_group() -> None:
    outbox = Outbox()
    outbox.entries += [(GROUP, entry(1)), (8, entry(4)), (GROUP, entry(2))]
    outbox.hard_states[8] = HardState(term=1, vote=2)

    flush = outbox.seal()

    assert flush is not None
    assert (flush.number, flush.last) == (1, {GROUP: (2, 1), 8: (4, 1)})
    assert flush.hard_states == {8: HardState(term=1, vote=2)}
    assert (outbox.collecting_flush, outbox.entries, outbox.hard_states) == (2, [], {})


def test_nothing_to_save_makes_no_flush() -> None:
    outbox = Outbox()

    assert outbox.seal() is None
    assert outbox.collecting_flush == 1


def test_flushes_are_made_durable_one_after_the_other() -> None:
    outbox = Outbox()
    for index in (1, 2):
        outbox.entries.append((GROUP, entry(index)))
        outbox.seal()

    with pytest.raises(AssertionError):
        outbox.made_durable(2)


def test_a_removed_group_leaves_nothing_behind_that_another_waits_for() -> None:
    outbox = Outbox()
    outbox.entries.append((GROUP, entry(1)))
    outbox.send_after(1, TimeoutNow(GROUP, 1, 1, 2))

    outbox.drop_groups((GROUP,))

    assert outbox.seal() is None


class CountedEntries(list[tuple[int, Entry]]):
    """How often all of it was gone through."""

    pass_count = 0

    def __iter__(self) -> Iterator[tuple[int, Entry]]:
        self.pass_count += 1
        return super().__iter__()


def test_many_groups_are_dropped_in_one_pass_and_the_others_stay() -> None:
    outbox = Outbox()
    outbox.entries = counted = CountedEntries((group, entry(1)) for group in range(1_000))
    for group in range(1_000):
        outbox.send_after(1, TimeoutNow(group, 1, 1, 2))
        outbox.hard_states[group] = HardState(term=1, vote=1)

    outbox.drop_groups(range(999))
    flush = outbox.seal()
    outbox.made_durable(1)
    outbox.release()

    assert counted.pass_count == 1
    assert flush is not None
    assert (flush.entries, list(flush.hard_states)) == ([(999, entry(1))], [999])
    assert outbox.messages == [TimeoutNow(999, 1, 1, 2)]


def test_a_candidate_asks_for_votes_only_when_its_own_is_durable() -> None:
    network = Network([1, 2, 3])
    network.slow_disks.add(1)
    network.create()
    network.pass_time(100)

    assert network.group(1).term == 1
    assert all(request.pre for request in network.sent_by(1, VoteRequest) if isinstance(request, VoteRequest))
    network.write(1)
    network.settle()

    assert network.sent_by(1, VoteRequest)[-1].term == 1


def test_a_vote_leaves_only_when_it_is_durable() -> None:
    network = Network([1, 2, 3])
    network.slow_disks |= {2, 3}
    network.create()
    network.pass_time(100)

    assert network.group(2).vote == 1
    assert network.leaders() == []
    network.write(2)
    network.settle()

    assert network.leaders() == [1]


def test_a_voter_that_crashes_before_its_vote_is_durable_has_told_nobody() -> None:
    network = Network([1, 2, 3])
    network.slow_disks |= {2, 3}
    network.create()
    network.pass_time(100)

    network.crash(2)
    network.restart(2)

    assert (network.group(2).term, network.group(2).vote) == (0, 0)
    granted = [
        reply for reply in network.sent_by(2, VoteReply) if isinstance(reply, VoteReply) and not reply.pre
    ]
    assert granted == []


def test_a_follower_acknowledges_entries_only_when_they_are_durable() -> None:
    network = running()
    network.slow_disks.add(2)
    before = len(network.sent_by(2, AppendReply))

    network.propose(b"a")
    network.settle()

    assert network.payloads(2) == [b"a"]
    assert len(network.sent_by(2, AppendReply)) == before
    network.write(2)
    network.settle()
    assert len(network.sent_by(2, AppendReply)) > before


def test_two_flushes_under_way_release_each_its_own_replies() -> None:
    network = running()
    network.slow_disks.add(2)
    network.propose(b"a")
    network.settle()
    network.propose(b"b")
    network.settle()
    sent = len(network.sent_by(2, AppendReply))

    network.write(2, count=1)
    network.collect()

    (reply,) = network.sent_by(2, AppendReply)[sent:]
    assert isinstance(reply, AppendReply)
    assert reply.match_index == network.leader().last_index - 1
