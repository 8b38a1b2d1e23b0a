"""Group: one replica of one group, as its owner uses it.

The one rule: a message, a tick or a finished write goes in; new state is read from the fields, work is taken
from the outbox. Nothing happens in between. It must not know clocks, files, sockets, other groups, or what
payloads mean. Tests: tests/raft

A message's way through the room, in reading order:
    host.py         all groups of a member: who gets the message; flushes, ticks, beats (beats.py, leaders.py)
    group.py        this file: which module answers it
    election.py     votes and candidates (roles.py: following and stopping to lead)
    leading.py      proposals, commit, giving up, handing over
    replication.py  sending entries and hearing what arrived (progress.py: what is known of a follower)
    following.py    taking entries (log.py, membership.py)
    reads.py        linearizable reads
    starts.py       giving a start state, installing.py taking one
    doubt.py        a replica that may have lost promises
    state.py        what all of them share; outbox.py: the work that comes out
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidings.raft import doubt, election, following, installing, leading, reads, replication, starts
from tidings.raft.entries import Entry, EntryKind, Membership, StartState
from tidings.raft.messages import (
    Append,
    AppendReply,
    DoubtReply,
    DoubtRequest,
    InstallReply,
    InstallStart,
    Message,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)
from tidings.raft.progress import Progress
from tidings.raft.roles import become_follower, step_down
from tidings.raft.state import GroupState, Role


class Group(GroupState):
    """The verbs. Every one of them may put work into the outbox."""

    __slots__ = ()

    def begin(self, now_ms: int) -> None:
        """Take the membership from the log and wait for a leader."""
        if self.log.last_term > self.term:
            # An entry proves its term; what was voted in it is not known, so that vote is spent.
            self.save_hard_state(self.log.last_term, self.member)
        leading.take_membership(self)
        become_follower(self, self.term, 0, now_ms)

    # -- what the owner asks

    def propose(self, kind: int, payload: bytes, record_count: int, now_ms: int) -> Entry:
        """Append an entry. Raises NotLeader, or LogFull while too much waits for a majority."""
        assert kind != EntryKind.MEMBERSHIP, "propose_membership checks that the step is safe"
        return leading.propose(self, kind, payload, record_count)

    def propose_membership(self, membership: Membership, now_ms: int) -> Entry:
        """Change who is a member, one voter at a time. Raises NotLeader or MembershipRefused."""
        return leading.propose_membership(self, membership, now_ms)

    def read_index(self, context: int, now_ms: int) -> None:
        """Answer in outbox.reads_confirmed, once it is sure that this replica led when it was asked."""
        reads.ask(self, context)

    def transfer(self, member: int, now_ms: int) -> None:
        """Let another voter lead. No proposals are taken until it does, or until it is given up."""
        leading.hand_over(self, member, now_ms)

    def campaign(self, now_ms: int) -> None:
        """Stand for election now, if this replica may."""
        if self.role is not Role.LEADER:
            election.campaign(self, now_ms)

    def step_down(self, now_ms: int) -> None:
        """Stop leading; somebody will stand after a timeout."""
        if self.role is Role.LEADER:
            step_down(self, now_ms)

    def progress_of(self) -> Mapping[int, Progress]:
        """What the leader knows of each other member; empty elsewhere."""
        return MappingProxyType(self.progress)

    def release(self, up_to_index: int) -> None:
        """Storage has all entries up to here: drop them from memory, unless they are not committed or not
        durable."""
        self.log.release(min(up_to_index, self.commit_index, self.durable_index))

    def write_again(self, first_index: int | None) -> int | None:
        """Put entries into the flush being collected once more, from the index on (None: all that memory
        holds). The flush; None where memory does not hold them."""
        log = self.log
        first_index = log.window_first if first_index is None else first_index
        if not log.window_first <= first_index <= log.last_index:
            return None
        self.outbox.entries += [(self.group, entry) for entry in log.entries_from(first_index)]
        return self.outbox.collecting_flush

    # -- what the owner answers

    def persisted(self, index: int, term: int, now_ms: int) -> None:
        """The flush that ended with this entry is durable, and so are all before it."""
        if self.is_replacing():
            # What the flush wrote from there on is no longer this log; the flush that says so is yet to come.
            index = min(index, self.replaced_index - 1)
        elif index > self.log.last_index or self.log.term_at(index) != term:
            return
        if index <= self.durable_index:
            return
        self.durable_index = index
        self.durable_offset = self.log.entry_at(index).next_offset
        if self.role is Role.LEADER:
            self.outbox.advanced[self.group] = None
            leading.advance_commit(self, now_ms)
        elif self.doubt is not None:
            doubt.settle(self)

    def entries_read(self, member: int, entries: list[Entry], now_ms: int) -> None:
        """Answer to outbox.reads; an empty list if they could not be read."""
        replication.entries_read(self, member, entries, now_ms)

    def give_start(self, member: int, start: StartState, now_ms: int) -> None:
        """Answer to outbox.starts_wanted: a state at or above the log's start, and committed."""
        starts.give(self, member, start)

    # -- what the host passes on

    def step(self, message: Message, now_ms: int) -> None:
        assert message.group == self.group, (self.group, message)
        _HANDLERS[message.__class__](self, message, now_ms)

    def tick(self, now_ms: int) -> None:
        if self.doubtful:
            doubt.ask(self, now_ms)
        if self.role is Role.LEADER:
            leading.tick(self, now_ms)
        else:
            election.tick(self, now_ms)


def _on_doubt_request(group: GroupState, message: DoubtRequest, now_ms: int) -> None:
    doubt.on_doubt_request(group, message)


_HANDLERS: dict[type[Message], Callable[..., None]] = {
    Append: following.on_append,
    AppendReply: replication.on_append_reply,
    VoteRequest: election.on_vote_request,
    VoteReply: election.on_vote_reply,
    TimeoutNow: election.on_timeout_now,
    InstallStart: installing.on_install_start,
    InstallReply: starts.on_install_reply,
    DoubtRequest: _on_doubt_request,
    DoubtReply: doubt.on_doubt_reply,
}
