"""Known bugs of Raft implementations, planted one at a time: the simulator must find each, or it needs
mending.

Rule: a mutant changes the parts that machines are made of (`Parts`) in one way, and says in one line what
it forgets.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidings.raft import reads
from tidings.raft.entries import Entry, HardState, Membership, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.messages import Append, AppendReply, Message, VoteRequest
from tidings.raft.outbox import Flush
from tidings.sim.disk import Disk, Job
from tidings.sim.flush_log import RecoveredGroup
from tidings.sim.machine import Parts
from tidings.sim.replica import ProducerState, Replica

NEWEST = (1 << 40, 1 << 40)  # a position (term, index) that is newer than any log's
OLDEST = (0, 0)


class VoteForgotten(Disk):
    """The vote is not saved: a restart forgets it."""

    def recover(self) -> dict[int, RecoveredGroup]:
        return {
            group: replace(found, hard=HardState(term=found.hard.term, vote=0))
            for group, found in super().recover().items()
        }


class TermForgotten(Disk):
    """Neither term nor vote is saved: after a restart the term is that of the last entry."""

    def recover(self) -> dict[int, RecoveredGroup]:
        return {
            group: replace(found, hard=HardState(term=_last_term(found), vote=0))
            for group, found in super().recover().items()
        }


class DoubtIgnored(Disk):
    """A replica whose last flush was torn votes at once, although it may have forgotten what it promised."""

    def recover(self) -> dict[int, RecoveredGroup]:
        return {group: replace(found, is_in_doubt=False) for group, found in super().recover().items()}


class FsyncNotAwaited(Disk):
    """What was written is taken for durable: promises leave before the fsync."""

    def write(self, flush: Flush, done: Callable[[Flush], None]) -> None:
        super().write(flush, _nothing_flushed)
        self._agenda.after(0, self._told, (self._life, flush, done))

    def _told(self, told: tuple[int, Flush, Callable[[Flush], None]]) -> None:
        life, flush, done = told
        if life == self._life:
            done(flush)


class InstallNotAwaited(Disk):
    """A start state is taken for durable as soon as it has arrived."""

    def reset(self, group: int, start: StartState, marker: Entry | None, then: Job) -> None:
        super().reset(group, start, marker, _nothing_done)
        then()


class FollowerAcksBeforeFsync(RaftHost):
    """A follower acknowledges entries that it has in memory only."""

    def flush(self, now_ms: int) -> None:
        super().flush(now_ms)
        for messages in self.outbox._waiting.values():
            acks = [message for message in messages if isinstance(message, AppendReply)]
            messages[:] = [message for message in messages if not isinstance(message, AppendReply)]
            self.outbox.messages.extend(acks)


class MemberVotesTwice(RaftHost):
    """A vote in a term is given to everybody who asks for it."""

    def step(self, message: Message, now_ms: int) -> None:
        group = self.groups.get(message.group)
        if isinstance(message, VoteRequest) and not message.pre and group is not None and not group.is_leader:
            group.vote = 0
            if group.leader != self.member:
                group.leader = 0
        super().step(message, now_ms)


class VotesForAnyLog(RaftHost):
    """A vote is given without looking at the candidate's log."""

    def step(self, message: Message, now_ms: int) -> None:
        if isinstance(message, VoteRequest):
            message = _claiming(message, NEWEST)
        super().step(message, now_ms)


class ComparesIndexBeforeTerm(RaftHost):
    """The longer log is taken for the newer one, whatever its last term."""

    def step(self, message: Message, now_ms: int) -> None:
        group = self.groups.get(message.group)
        if isinstance(message, VoteRequest) and group is not None:
            own = (group.log.last_index, group.log.last_term)
            is_new_enough = (message.last_index, message.last_term) >= own
            message = _claiming(message, NEWEST if is_new_enough else OLDEST)
        super().step(message, now_ms)


class TruncatesOnStaleAppend(RaftHost):
    """A follower cuts off all that lies behind an append, also when the append is an old one that agrees."""

    def step(self, message: Message, now_ms: int) -> None:
        super().step(message, now_ms)
        group = self.groups.get(message.group)
        if not isinstance(message, Append) or group is None or message.sender != group.leader:
            return
        end = message.prev_index + len(message.entries)
        log = group.log
        if (
            message.entries
            and end < log.last_index
            and max(group.commit_index + 1, log.window_first) <= end + 1
        ):
            log.truncate(end + 1)
            group.replaces_from(end + 1)


class CommitsBeyondVerified(RaftHost):
    """A follower takes the leader's commit index for its own whole log, also for what was not compared."""

    def step(self, message: Message, now_ms: int) -> None:
        super().step(message, now_ms)
        group = self.groups.get(message.group)
        if isinstance(message, Append) and group is not None and message.sender == group.leader:
            commit_index = min(message.commit_index, group.last_index)
            if commit_index > group.commit_index:
                group.commit_to(commit_index)


class OldPromisesCounted(RaftHost):
    """A leader counts what a follower acknowledged before it lost its promises."""

    def step(self, message: Message, now_ms: int) -> None:
        group = self.groups.get(message.group)
        if isinstance(message, AppendReply) and group is not None and message.sender in group.progress:
            message.session = group.progress[message.sender].session
        super().step(message, now_ms)


class _TamperedLeader(RaftHost):
    """A host whose leaders are changed after every input, before they send."""

    def flush(self, now_ms: int) -> None:
        for group in self.groups.values():
            if group.is_leader:
                self.tamper(group)
        super().flush(now_ms)

    def tamper(self, group: Group) -> None:
        raise NotImplementedError


class LeaderCountsItself(_TamperedLeader):
    """A leader counts its own log before its own fsync."""

    def tamper(self, group: Group) -> None:
        group.durable_index = group.last_index


class PriorTermCommitted(_TamperedLeader):
    """Entries of earlier terms are committed by counting replicas."""

    def tamper(self, group: Group) -> None:
        group.term_start_index = 0


class ReadWithoutMajority(_TamperedLeader):
    """A leader answers reads without asking whether it still leads."""

    def tamper(self, group: Group) -> None:
        waiting, group.reads.waiting = group.reads.waiting, []
        for read in waiting:
            reads.confirm(group, read.context, read.index)


class ReadBeforeOwnTerm(_TamperedLeader):
    """A new leader answers reads before it knows what is committed."""

    def tamper(self, group: Group) -> None:
        contexts, group.reads.without_round = group.reads.without_round, []
        for context in contexts:
            reads.join_round(group, context)


class StartWithoutProducers(Replica):
    """A start state tells where the log begins, and forgets who wrote what is no longer in it."""

    def state_to_send(self) -> StartState:
        forgetful = ProducerState()
        forgetful.log_start_offset = self.state.log_start_offset
        return replace(super().state_to_send(), state=forgetful.encode())


class MembershipBeforeOwnTerm(Replica):
    """A leader changes the membership before an entry of its own term is committed."""

    def change_membership(self, membership: Membership, now_ms: int) -> None:
        group = self.group
        was_committed, group.term_start_committed = group.term_start_committed, True
        try:
            super().change_membership(membership, now_ms)
        finally:
            if group.is_leader and group.commit_index < group.term_start_index:
                group.term_start_committed = was_committed


class TailForgotten(Replica):
    """A new leader recognises retries of what is committed only, not of what is uncommitted in its log."""

    def role_changed(self) -> None:
        super().role_changed()
        if self.group.is_leader:
            self._appended = dict(self.state.last_sequences)
            self._index_by_batch = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A planted bug, and how many schedules may pass before it is found."""

    name: str
    parts: Parts
    schedules_max: int


def _mutant(part: type[Disk] | type[RaftHost] | type[Replica], schedules_max: int) -> Mutant:
    if issubclass(part, Disk):
        parts = Parts(disk=part)
    elif issubclass(part, RaftHost):
        parts = Parts(host=part)
    else:
        parts = Parts(replica=part)
    return Mutant(name=part.__name__, parts=parts, schedules_max=schedules_max)


MUTANTS = (
    _mutant(TermForgotten, 300),
    _mutant(DoubtIgnored, 300),
    _mutant(FsyncNotAwaited, 300),
    _mutant(InstallNotAwaited, 300),
    _mutant(FollowerAcksBeforeFsync, 300),
    _mutant(MemberVotesTwice, 300),
    _mutant(VotesForAnyLog, 300),
    _mutant(ComparesIndexBeforeTerm, 300),
    _mutant(TruncatesOnStaleAppend, 300),
    _mutant(CommitsBeyondVerified, 300),
    _mutant(LeaderCountsItself, 300),
    _mutant(ReadBeforeOwnTerm, 300),
    _mutant(StartWithoutProducers, 300),
    _mutant(TailForgotten, 300),
    _mutant(VoteForgotten, 3_000),
    _mutant(PriorTermCommitted, 3_000),
    _mutant(ReadWithoutMajority, 3_000),
    _mutant(MembershipBeforeOwnTerm, 10_000),
    _mutant(OldPromisesCounted, 10_000),
)


def _last_term(found: RecoveredGroup) -> int:
    return found.tail[-1].term if found.tail else found.start.term


def _claiming(request: VoteRequest, position: tuple[int, int]) -> VoteRequest:
    last_term, last_index = position
    return VoteRequest(
        request.group,
        request.term,
        request.sender,
        request.receiver,
        request.pre,
        last_index,
        last_term,
        request.is_transfer,
    )


def _nothing_flushed(flush: Flush) -> None:
    """The other call tells it."""


def _nothing_done() -> None:
    """It was told already."""
