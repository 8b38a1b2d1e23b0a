"""Metadata: the cluster's own log on this broker, and the way into it from any broker.

Its one rule: a proposal is answered by what this broker itself applies: its id stands in the log before the
command, so the proposer recognises its own, whoever led when it was appended. A proposal may be appended
twice (after a lost leader); the first application is the answer, and the second changes nothing, because the
state remembers whose proposals it has seen. Who is no member of the group yet applies nothing, so the leader
tells it of a refusal. It must not know what commands mean (broker/cluster).
Tests: tests/node/test_metadata.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Protocol

from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.commands import CommandError, decode_command
from tidings.broker.dispatch import Broker
from tidings.broker.outcome import Outcome
from tidings.config.options import Config
from tidings.node.jobs import ResetLog, SaveCheckpoint
from tidings.node.messages import EVERY_PROPOSAL, PROPOSAL_ID_BYTES, Propose, Refused
from tidings.protocol.errors import ErrorCode
from tidings.raft.entries import EntryKind, StartState
from tidings.raft.errors import LogFull, NotLeader
from tidings.raft.group import Group

TITLE = "metadata"
# Entries kept in memory behind what is applied, so that a follower a little behind needs no copy of the whole
# state.
_KEPT_ENTRIES = 1_000
# A proposal that was lost with a connection to a leader that stayed; one that is merely slow ignores copies.
_SEND_AGAIN_MS = 3_000
_PROPOSAL = struct.Struct("<QQ")
_DAMAGED = Outcome(
    code=ErrorCode.KAFKA_STORAGE_ERROR,
    message="the only copy of the metadata is damaged: `tidings log salvage` says what is left of it",
)


class MetadataOwner(Protocol):
    """What the metadata asks of its node."""

    def send_to(self, member: int, frame: bytes) -> None: ...
    def groups_changed(self, groups: tuple[int, ...]) -> None: ...
    def metadata_replaced(self) -> None: ...


class _Proposal:
    """A command that this broker waits for."""

    __slots__ = ("command", "deadline_ms", "sent_at_ms", "sent_to", "then")

    def __init__(self, command: bytes, then: Callable[[Outcome | None], None], deadline_ms: int) -> None:
        self.command = command
        self.then = then
        self.deadline_ms = deadline_ms
        self.sent_to = 0  # the member, 0: not yet
        self.sent_at_ms = 0


class Metadata:
    """The metadata group's owner. Fills the broker room's port Controller."""

    def __init__(
        self, *, owner: MetadataOwner, group: Group, config: Config, randomness: Random, is_read_only: bool
    ) -> None:
        self.group = group
        self.applied_index = 0
        self.is_frozen = is_read_only  # damaged, with nobody to be refilled by: nothing is added or saved
        self._refusal = _DAMAGED if is_read_only else None  # of all proposals
        self._awaited_start: StartState | None = None  # the file is being replaced by this one
        self._owner = owner
        self._config = config
        self._proposals: dict[bytes, _Proposal] = {}
        self._appended: set[bytes] = set()  # by this broker as leader of the term, and not applied yet
        self._appended_term = 0
        # Ids must differ from those of this broker's earlier lives, whose proposals may still stand in the
        # log.
        self._next_proposal = randomness.getrandbits(63)

    def start(self, broker: Broker, start: StartState) -> None:
        """Begin with what was recovered, or nothing."""
        self._broker = broker
        broker.restore_cluster(start.state)
        self.applied_index = start.index

    def propose(self, command: bytes, then: Callable[[Outcome | None], None], now_ms: int) -> None:
        proposal = _PROPOSAL.pack(self.group.member, self._next_proposal)
        self._next_proposal += 1
        waiting = _Proposal(command, then, now_ms + self._config.controller_timeout_ms)
        self._proposals[proposal] = waiting
        self._send(proposal, waiting, now_ms)

    @property
    def is_proposing(self) -> bool:
        return bool(self._proposals)

    def proposed_by_peer(self, message: Propose, now_ms: int) -> None:
        """Another broker's proposal: append it if this broker leads, else let the proposer try again. What
        cannot be read is not appended: it would stop every broker that came to apply it, for ever."""
        if not self.group.is_leader or self.is_frozen:
            return
        try:
            decode_command(message.command)
        except CommandError as error:
            refused = Refused(message.proposal, ErrorCode.UNSUPPORTED_VERSION, str(error))
            self._owner.send_to(_proposer(message.proposal), refused.encode())
            return
        known = self._broker.cluster.recent_proposals.get(message.proposal)
        if known is not None:
            self._tell_stranger(message.proposal, known)
        else:
            self._append(message.proposal, message.command, now_ms)

    def advance(self, now_ms: int) -> None:
        """Apply what is newly committed, and on this broker's own disk (see Replica.advance); answer the
        proposals among it."""
        group = self.group
        last_index = min(group.commit_index, group.durable_index)
        if last_index <= self.applied_index:
            return
        for entry in group.log.entries_between(self.applied_index + 1, last_index):
            self.applied_index = entry.index
            if entry.kind != EntryKind.COMMAND:
                continue
            proposal, command = entry.payload[:PROPOSAL_ID_BYTES], entry.payload[PROPOSAL_ID_BYTES:]
            self._appended.discard(proposal)
            outcome = self._broker.apply(command, entry.index, now_ms, proposal=proposal)
            if outcome.groups:
                self._owner.groups_changed(outcome.groups)
            waiting = self._proposals.pop(proposal, None)
            if waiting is not None:
                waiting.then(outcome)
            elif group.is_leader:
                self._tell_stranger(proposal, outcome)

    def refused_by_peer(self, message: Refused) -> None:
        """The leader's word on a proposal that this broker will not see in its log; or anybody's on all that
        this broker may ever propose."""
        if message.proposal == EVERY_PROPOSAL:
            self._refusal = Outcome(code=message.code, message=message.message)
        waiting = self._proposals.pop(message.proposal, None)
        if waiting is not None:
            waiting.then(Outcome(code=message.code, message=message.message))

    def tick(self, now_ms: int) -> None:
        """Send again what may have been lost; give up what is overdue."""
        for proposal, waiting in list(self._proposals.items()):
            if self._refusal is not None:
                del self._proposals[proposal]
                waiting.then(self._refusal)
            elif now_ms >= waiting.deadline_ms:
                del self._proposals[proposal]
                waiting.then(None)
            elif waiting.sent_to != self.group.leader or now_ms - waiting.sent_at_ms >= _SEND_AGAIN_MS:
                self._send(proposal, waiting, now_ms)

    def checkpoint(self) -> SaveCheckpoint | None:
        """None while the file may not be changed, or is about to be another log's."""
        if self.is_frozen or self._awaited_start is not None:
            return None
        return SaveCheckpoint(group=METADATA_GROUP, start=self.state_now(), title=TITLE)

    def saved(self, index: int) -> None:
        """A checkpoint at the index is on disk: entries far enough below it leave memory, and the log begins
        later."""
        log = self.group.log
        keep_above = index - _KEPT_ENTRIES
        if keep_above > log.start_index:
            log.move_start_to(keep_above)

    def state_now(self) -> StartState:
        group = self.group
        return StartState(
            index=self.applied_index,
            term=group.log.term_at(self.applied_index),
            offset=0,
            membership=group.membership_at(self.applied_index),
            terms=tuple(start for start in group.log.terms if start.index <= self.applied_index),
            state=self._broker.cluster_state(),
        )

    def installed(self, start: StartState) -> ResetLog:
        """The log was replaced by a copy of the whole state."""
        self._broker.restore_cluster(start.state)
        self.applied_index = start.index
        self._awaited_start = start
        self._owner.metadata_replaced()
        for proposal in list(self._proposals):
            known = self._broker.cluster.recent_proposals.get(proposal)
            if known is not None:  # it will not stand in the log that follows
                self._proposals.pop(proposal).then(known)
        return ResetLog(group=METADATA_GROUP, start=start, title=TITLE)

    def awaits(self, job: ResetLog) -> bool:
        """Whether the job is the newest of its kind."""
        return self._awaited_start is job.start

    def was_reset(self) -> None:
        self._awaited_start = None

    def _send(self, proposal: bytes, waiting: _Proposal, now_ms: int) -> None:
        waiting.sent_to = self.group.leader
        waiting.sent_at_ms = now_ms
        if self._refusal is not None:
            return  # the next tick says so
        if self.group.is_leader:
            self._append(proposal, waiting.command, now_ms)
        elif self.group.leader:
            self._owner.send_to(self.group.leader, Propose(proposal, waiting.command).encode())

    def _tell_stranger(self, proposal: bytes, outcome: Outcome) -> None:
        """Who is registered becomes a member, and sees what is done in its own log."""
        member = _proposer(proposal)
        membership = self.group.membership
        if member in membership.voters or member in membership.learners:
            return
        if outcome.code != ErrorCode.NONE or self._broker.cluster.broker_of_member(member) is None:
            refused = Refused(proposal, outcome.code, outcome.message or outcome.code.name)
            self._owner.send_to(member, refused.encode())

    def _append(self, proposal: bytes, command: bytes, now_ms: int) -> None:
        if self._appended_term != self.group.term:  # what was appended before may be lost with its term
            self._appended_term = self.group.term
            self._appended.clear()
        if proposal in self._appended:
            return
        try:
            self.group.propose(EntryKind.COMMAND, proposal + command, 0, now_ms)
        except (NotLeader, LogFull):
            return  # it is sent again by tick, as long as somebody waits for it
        self._appended.add(proposal)


def _proposer(proposal: bytes) -> int:
    member, _ = _PROPOSAL.unpack(proposal)
    return int(member)
