"""The state of one replica of a group, and the few moves that all parts of the algorithm share.

The one rule: `term` and `vote` change together with the hard state that is put into the outbox, and no
message of the group leaves before that is durable (`send`); one that promises entries waits for those too
(`promise`). It must not know when anything happens: that is decided by the modules named in group.py. Tests:
tests/raft/test_outbox.py

Times are milliseconds of the host's clock; 0 as a member or a leader means none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from random import Random

from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.leaders import LeaderTable
from tidings.raft.log import GroupLog
from tidings.raft.membership import MembershipHistory
from tidings.raft.messages import Message
from tidings.raft.outbox import Outbox
from tidings.raft.peers import Peers
from tidings.raft.progress import Progress
from tidings.raft.schedule import Schedule


class Role(IntEnum):
    FOLLOWER = 0
    PRE_CANDIDATE = 1
    CANDIDATE = 2
    LEADER = 3


# From each role the roles that may follow it; anything else is a mistake of ours.
TRANSITIONS = {
    Role.FOLLOWER: (Role.FOLLOWER, Role.PRE_CANDIDATE, Role.CANDIDATE),
    Role.PRE_CANDIDATE: (Role.FOLLOWER, Role.PRE_CANDIDATE, Role.CANDIDATE),
    Role.CANDIDATE: (Role.FOLLOWER, Role.PRE_CANDIDATE, Role.CANDIDATE, Role.LEADER),
    Role.LEADER: (Role.FOLLOWER,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all groups of a host share."""

    member: int
    config: RaftConfig
    random: Random
    outbox: Outbox
    peers: Peers
    leaders: LeaderTable
    schedule: Schedule


class ReadQueue:
    """Linearizable reads that wait for a majority to confirm the leader (reads.py)."""

    __slots__ = ("is_collecting", "round_number", "waiting", "without_round")

    def __init__(self) -> None:
        self.round_number = 0
        self.is_collecting = False  # the round is not sent yet: more reads may join it
        self.waiting: list[WaitingRead] = []  # by round
        self.without_round: list[int] = []  # contexts that wait for an entry of the own term to be committed


@dataclass(frozen=True, slots=True)
class WaitingRead:
    round_number: int
    context: int
    index: int


class IncomingStart:
    """A start state of which not all pieces have come yet."""

    __slots__ = ("received", "sender", "session", "start_index", "start_term", "term", "total_bytes")

    def __init__(
        self, sender: int, term: int, session: int, start_index: int, start_term: int, total_bytes: int
    ) -> None:
        self.sender = sender
        self.term = term
        self.session = session
        self.start_index = start_index
        self.start_term = start_term
        self.total_bytes = total_bytes
        self.received = bytearray()


class Doubt:
    """What a replica asks that may have forgotten promises (doubt.py)."""

    __slots__ = (
        "answers",
        "electorates",
        "electorates_index",
        "floor",
        "forgot",
        "is_open",
        "phase",
        "round_number",
        "term",
        "without_replica",
    )

    def __init__(self, round_number: int) -> None:
        self.round_number = round_number
        self.phase = 1
        # Members that answered the first phase; and the second one, since all had answered the first.
        self.forgot: dict[int, None] = {}
        self.answers: dict[int, None] = {}
        self.without_replica: dict[int, None] = {}  # members that said that they hold nothing of the group
        # Who may have counted a promise: the voters as of the newest commit index heard of, and of all
        # memberships behind it, by the index of each.
        self.electorates_index = -1
        self.electorates: dict[int, tuple[int, ...]] = {}
        self.term = 0  # the newest term heard of
        self.floor = (0, 0)  # (term, index) of the newest entry that another voter holds
        self.is_open = True  # not all voters have answered: no vote, no candidacy


class GroupState:
    """All there is to know about one replica. Its owner reads; only this room writes."""

    __slots__ = (
        "around",
        "campaign_at_ms",
        "commit_index",
        "commit_offset",
        "commit_rank",
        "config",
        "counts",
        "damaged",
        "deadline_ms",
        "doubt",
        "durable_index",
        "durable_offset",
        "group",
        "hard_flush",
        "hurry_ms",
        "incoming",
        "installing",
        "last_contact_ms",
        "leader",
        "log",
        "log_flush",
        "member",
        "members",
        "membership",
        "outbox",
        "peers",
        "progress",
        "reads",
        "replaced_flush",
        "replaced_index",
        "role",
        "term",
        "term_start_committed",
        "term_start_index",
        "timeout_ms",
        "transfer_ends_ms",
        "transferee",
        "vote",
        "voters",
        "votes",
    )

    def __init__(
        self, around: Surroundings, group: int, start: StartState, hard: HardState, tail: list[Entry]
    ) -> None:
        self.around = around
        self.config = around.config
        self.outbox = around.outbox
        self.peers = around.peers
        self.group = group
        self.member = around.member
        # What Raft makes durable: term, vote, log.
        self.term = hard.term
        self.vote = hard.vote
        self.log = GroupLog(start, tail)
        self.durable_index = self.log.last_index
        self.durable_offset = self.log.next_offset
        self.commit_index = start.index
        self.commit_offset = start.offset
        self.members = MembershipHistory(start.index, start.membership, tail)
        # The flush that makes durable: the hard state; the newest entry; the entries that replaced others,
        # from `replaced_index` on (flushes before it wrote what is no longer the log).
        self.hard_flush = 0
        self.log_flush = 0
        self.replaced_flush = 0
        self.replaced_index = 0
        # Role and election.
        self.role = Role.FOLLOWER
        self.leader = 0
        self.votes: dict[int, bool] = {}
        self.last_contact_ms = 0
        self.timeout_ms = self.config.election_timeout_ms_max
        self.deadline_ms = 0
        self.campaign_at_ms: int | None = None  # stand for election then, without waiting for a timeout
        self.hurry_ms = 0  # pause before the next such attempt; 0: the timeout
        # Leader only.
        self.progress: dict[int, Progress] = {}
        self.voters: list[Progress] = []  # those of `progress` that vote
        self.term_start_index = 0
        self.term_start_committed = False
        self.transferee = 0
        self.transfer_ends_ms = 0
        self.reads = ReadQueue()
        # A replica that is not what it was.
        self.doubt: Doubt | None = None
        self.damaged = False  # the log is not to be used: wants a start state
        self.installing = False  # a start state was taken and is not yet durable
        self.incoming: IncomingStart | None = None
        self.counts = True  # acknowledgements may be counted: not in doubt, not damaged
        self.membership = self.members.newest
        self.commit_rank = 0

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def is_voter(self) -> bool:
        return self.member in self.membership.voters

    @property
    def last_index(self) -> int:
        return self.log.last_index

    @property
    def next_offset(self) -> int:
        """The offset behind the last entry of the log."""
        return self.log.next_offset

    @property
    def doubtful(self) -> bool:
        """Promises may be forgotten, and not all voters have said yet what they know: no vote, no
        candidacy."""
        return self.doubt is not None and self.doubt.is_open

    def membership_at(self, index: int) -> Membership:
        return self.members.at(index)

    def send(self, message: Message) -> None:
        """Send as soon as the term that the message reveals, and the vote given in it, are durable."""
        self.outbox.send_after(self.hard_flush, message)

    def promise(self, message: Message) -> None:
        """Send as soon as the whole log is durable too."""
        self.outbox.send_after(max(self.hard_flush, self.log_flush), message)

    def save_hard_state(self, term: int, vote: int) -> None:
        assert term >= self.term, (self.group, term, self.term)
        self.term = term
        self.vote = vote
        self.outbox.hard_states[self.group] = HardState(term=term, vote=vote)
        self.hard_flush = self.outbox.collecting_flush

    def append(self, entry: Entry) -> None:
        """Put an entry behind the log's last, and into the next flush."""
        self.log.append(entry)
        outbox = self.outbox
        outbox.entries.append((self.group, entry))
        self.log_flush = outbox.collecting_flush
        if entry.kind == EntryKind.MEMBERSHIP:
            self.members.add(entry.index, Membership.decode(entry.payload))

    def commit_to(self, index: int) -> None:
        assert self.commit_index < index <= self.log.last_index, (
            self.commit_index,
            index,
            self.log.last_index,
        )
        self.commit_index = index
        self.commit_offset = self.log.entry_at(index).next_offset
        self.outbox.advanced[self.group] = None

    def replaces_from(self, index: int) -> None:
        """What flushes so far wrote at `index` and behind it will be replaced by the one being collected."""
        self.replaced_index = min(index, self.replaced_index) if self.is_replacing() else index
        self.replaced_flush = self.outbox.collecting_flush
        if self.durable_index >= index:
            self.durable_index = index - 1
            self.durable_offset = self.log.next_offset

    def is_replacing(self) -> bool:
        """Whether the newest flush that replaced entries of the log is not durable yet."""
        return self.replaced_flush > self.outbox.durable_flush

    def arm(self, at_ms: int) -> None:
        """Have the host tick this group at `at_ms` at the latest."""
        self.deadline_ms = at_ms
        self.around.schedule.wake(self.group, at_ms)

    def other_voters(self) -> list[int]:
        return [voter for voter in self.membership.voters if voter != self.member]

    def contact_ms(self) -> int:
        """When the leader was last heard, be it about this group or about all that it leads."""
        return max(self.last_contact_ms, self.peers.heard_ms.get(self.leader, 0))

    def change_role(self, role: Role) -> None:
        assert role in TRANSITIONS[self.role], (self.group, self.role, role)
        self.role = role
        self.outbox.changed[self.group] = None
