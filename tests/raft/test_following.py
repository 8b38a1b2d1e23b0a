"""The follower's side: what is taken, what is cut off, what is believed to be committed."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.errors import LogDiverged
from tidings.raft.group import Group
from tidings.raft.messages import Append, AppendReply

FOLLOWER, LEADER = 2, 1


def entry(index: int, term: int) -> Entry:
    return Entry(index, term, EntryKind.RECORDS, index - 1, 1, b"%d in %d" % (index, term))


def entries(*terms: int) -> list[Entry]:
    return [entry(index, term) for index, term in enumerate(terms, start=1)]


class Conversation:
    """One follower with a given log, and a leader made of messages."""

    def __init__(self, *terms: int) -> None:
        self.network = Network([FOLLOWER])
        disk = self.network.disks[FOLLOWER]
        membership = Membership(voters=(1, FOLLOWER, 3))
        disk.starts[GROUP] = StartState(index=0, term=0, offset=0, membership=membership)
        disk.tails[GROUP] = entries(*terms)
        disk.hard_states[GROUP] = HardState(term=max(terms, default=0), vote=0)
        self.network.restart(FOLLOWER)

    @property
    def group(self) -> Group:
        return self.network.group(FOLLOWER)

    def terms(self) -> list[int]:
        return [held.term for held in self.group.log.entries_from(1)]

    def append(
        self,
        term: int,
        prev: tuple[int, int],
        new: list[Entry],
        commit_index: int = 0,
        read_context: int = 0,
        sender: int = LEADER,
    ) -> AppendReply:
        """Let the leader of a term say something; the answer, after the follower's disk is done."""
        prev_index, prev_term = prev
        message = Append(
            GROUP, term, sender, FOLLOWER, prev_index, prev_term, commit_index, new, read_context, 0
        )
        self.network.deliver(message)
        self.network.collect()
        self.network.write(FOLLOWER)
        self.network.collect()
        reply = self.network.sent_by(FOLLOWER, AppendReply)[-1]
        assert isinstance(reply, AppendReply)
        return reply


def test_entries_behind_the_last_one_are_taken() -> None:
    talk = Conversation(1, 1)

    reply = talk.append(1, (2, 1), [entry(3, 1), entry(4, 1)])

    assert (reply.accepted, reply.match_index) == (True, 4)
    assert talk.terms() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("terms", "prev", "hint"),
    [
        ((1, 1), (5, 1), (2, 1)),
        ((1, 1, 2, 2, 2), (5, 3), (5, 2)),
        ((1, 1, 4, 4, 4), (5, 3), (2, 1)),
        ((4, 4, 4), (3, 1), (0, 0)),
        ((), (3, 1), (0, 0)),
    ],
    ids=["too short", "older term there", "newer term there: skipped whole", "all newer", "empty"],
)
def test_an_append_that_does_not_join_on_is_refused_with_a_hint(
    terms: tuple[int, ...], prev: tuple[int, int], hint: tuple[int, int]
) -> None:
    talk = Conversation(*terms)

    reply = talk.append(9, prev, [entry(prev[0] + 1, 9)])

    assert not reply.accepted
    assert (reply.hint_index, reply.hint_term) == hint
    assert talk.terms() == list(terms), "nothing is cut off by a refusal"


def test_a_conflicting_entry_replaces_itself_and_all_behind_it() -> None:
    talk = Conversation(1, 1, 2, 2)

    reply = talk.append(3, (2, 1), [entry(3, 3)])

    assert talk.terms() == [1, 1, 3]
    assert (reply.match_index, talk.group.log.next_offset) == (3, 3)


def test_a_delayed_append_cuts_nothing_off() -> None:
    """Its entries are here already: those behind them were acknowledged since, and may be committed."""
    talk = Conversation(1, 1, 1, 1)

    reply = talk.append(1, (1, 1), [entry(2, 1)])

    assert talk.terms() == [1, 1, 1, 1]
    assert (reply.accepted, reply.match_index) == (True, 2)


def test_a_repeated_append_changes_nothing() -> None:
    talk = Conversation(1)
    first = talk.append(1, (1, 1), [entry(2, 1), entry(3, 1)])

    again = talk.append(1, (1, 1), [entry(2, 1), entry(3, 1)])

    assert again == first
    assert talk.terms() == [1, 1, 1]
    assert talk.network.disks[FOLLOWER].tails[GROUP] == entries(1, 1, 1)


def test_an_append_without_entries_cuts_nothing_off() -> None:
    talk = Conversation(1, 1, 2, 2)

    reply = talk.append(3, (2, 1), [])

    assert talk.terms() == [1, 1, 2, 2]
    assert (reply.accepted, reply.hint_index) == (True, 2)


def test_an_append_that_overlaps_takes_only_what_is_new() -> None:
    talk = Conversation(1, 1)

    reply = talk.append(1, (0, 0), entries(1, 1, 1, 1))

    assert reply.match_index == 4
    assert talk.terms() == [1, 1, 1, 1]


def test_a_committed_entry_is_never_cut_off() -> None:
    talk = Conversation(1, 1)
    talk.append(1, (2, 1), [], commit_index=2)

    with pytest.raises(LogDiverged):
        talk.append(5, (1, 1), [entry(2, 5)])

    assert talk.terms() == [1, 1]


def test_entries_behind_committed_ones_are_taken_from_an_append_that_begins_before() -> None:
    talk = Conversation(1, 1)
    talk.append(1, (2, 1), [], commit_index=2)

    reply = talk.append(1, (0, 0), entries(1, 1, 1))

    assert (reply.accepted, reply.match_index) == (True, 3)


def test_an_append_wholly_below_the_commit_index_is_answered_with_it() -> None:
    talk = Conversation(1, 1, 1)
    talk.append(1, (3, 1), [], commit_index=3)

    reply = talk.append(1, (0, 0), entries(1))

    assert (reply.accepted, reply.hint_index) == (True, 3)


# -- the commit index


def test_nothing_is_taken_for_committed_beyond_what_was_compared() -> None:
    """Entries 3 and 4 are of another leader and are about to be replaced; the leader's commit index covers
    its own 3 and 4."""
    talk = Conversation(1, 1, 2, 2)

    talk.append(3, (2, 1), [], commit_index=4)

    assert talk.group.commit_index == 2
    talk.append(3, (2, 1), [entry(3, 3), entry(4, 3)], commit_index=4)
    assert talk.group.commit_index == 4
    assert talk.terms() == [1, 1, 3, 3]


def test_the_commit_index_goes_no_further_than_the_entries_that_came() -> None:
    talk = Conversation(1)

    talk.append(1, (1, 1), [entry(2, 1)], commit_index=9)

    assert talk.group.commit_index == 2


def test_the_commit_index_never_goes_back() -> None:
    talk = Conversation(1, 1, 1)
    talk.append(1, (3, 1), [], commit_index=3)

    talk.append(1, (3, 1), [], commit_index=1)

    assert talk.group.commit_index == 3


# -- answers


def test_an_answer_tells_only_of_what_is_durable_when_it_leaves() -> None:
    talk = Conversation(1)
    talk.network.deliver(Append(GROUP, 1, LEADER, FOLLOWER, 1, 1, 0, [entry(2, 1)], 0, 0))
    talk.network.collect()

    talk.network.deliver(Append(GROUP, 1, LEADER, FOLLOWER, 2, 1, 0, [], 77, 0))
    talk.network.collect()

    (reply,) = [m for m in talk.network.sent_by(FOLLOWER, AppendReply) if isinstance(m, AppendReply)]
    assert (reply.read_context, reply.match_index, reply.hint_index) == (77, 1, 2), (
        "a read's answer need not wait"
    )


def test_an_append_of_a_newer_term_is_answered_only_when_the_term_is_durable() -> None:
    talk = Conversation(1)

    talk.network.deliver(Append(GROUP, 4, LEADER, FOLLOWER, 1, 1, 0, [], 0, 0))
    talk.network.collect()
    assert talk.network.sent_by(FOLLOWER, AppendReply) == []
    talk.network.write(FOLLOWER)
    talk.network.collect()

    (reply,) = talk.network.sent_by(FOLLOWER, AppendReply)
    assert reply.term == 4
    assert talk.network.disks[FOLLOWER].hard_states[GROUP] == HardState(term=4, vote=0)


def test_an_append_of_an_older_term_is_refused_and_changes_nothing() -> None:
    talk = Conversation(1, 3)

    reply = talk.append(2, (1, 1), [entry(2, 2)])

    assert (reply.accepted, reply.term) == (False, 3)
    assert talk.terms() == [1, 3]


def test_two_leaders_of_one_term_are_our_mistake() -> None:
    talk = Conversation(1)
    talk.append(2, (1, 1), [])

    with pytest.raises(AssertionError):
        talk.append(2, (1, 1), [], sender=3)


def test_entries_whose_offsets_do_not_follow_are_a_diverged_log() -> None:
    talk = Conversation(1, 1)
    wrong = Entry(3, 1, EntryKind.RECORDS, 7, 1, b"offset 7 after offset 1")

    with pytest.raises(LogDiverged):
        talk.group.step(Append(GROUP, 1, LEADER, FOLLOWER, 2, 1, 0, [wrong], 0, 0), talk.network.now_ms)

    assert talk.terms() == [1, 1]
