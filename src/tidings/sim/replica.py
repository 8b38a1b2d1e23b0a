"""A replica's owner: what stands between a Raft group and its storage, with producers that retry as its
state machine.

Its one rule: what is committed is applied once, in order, then written to segments; what leaves memory is
in segments. A batch is (producer, sequence); one that the state already counts changes nothing, so a start
state may be newer than the place where its log begins. It must not know time, network or other machines.
Tests: tests/sim/test_replica.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tidings.raft.entries import Entry, EntryKind, Membership, StartState
from tidings.raft.errors import LogFull, NotLeader
from tidings.raft.group import Group
from tidings.raft.outbox import StartInstalled
from tidings.sim.disk import Disk
from tidings.sim.swarm import ReplicaKnobs

_BATCH = struct.Struct("<QQ")
_STATE_HEAD = struct.Struct("<qI")
_OFFSET = struct.Struct("<q")


@dataclass(frozen=True, slots=True, order=True)
class BatchId:
    """Who sent a batch and as which of its batches."""

    producer: int
    sequence: int


def encode_batch(batch: BatchId, padding_bytes: int) -> bytes:
    return _BATCH.pack(batch.producer, batch.sequence) + bytes(padding_bytes)


def batch_of(payload: bytes) -> BatchId:
    return BatchId(*_BATCH.unpack_from(payload))


class Answer(Enum):
    """What a producer is told."""

    ACKED = "acked"
    NOT_LEADER = "not leader"
    OUT_OF_ORDER = "out of order"
    FULL = "full"


class ProducerState:
    """Folds committed entries: per producer the last sequence, and where the log begins for readers."""

    __slots__ = ("last_sequences", "log_start_offset")

    def __init__(self) -> None:
        self.last_sequences: dict[int, int] = {}
        self.log_start_offset = 0

    def fold(self, entry: Entry) -> None:
        if entry.kind == EntryKind.RECORDS:
            batch = batch_of(entry.payload)
            if batch.sequence > self.last_sequences.get(batch.producer, -1):
                self.last_sequences[batch.producer] = batch.sequence
        elif entry.kind == EntryKind.LOG_START:
            (offset,) = _OFFSET.unpack(entry.payload)
            self.log_start_offset = max(self.log_start_offset, offset)

    def encode(self) -> bytes:
        head = _STATE_HEAD.pack(self.log_start_offset, len(self.last_sequences))
        return head + b"".join(_BATCH.pack(*row) for row in sorted(self.last_sequences.items()))

    @staticmethod
    def decode(encoded: bytes) -> ProducerState:
        state = ProducerState()
        if encoded:
            state.log_start_offset, count = _STATE_HEAD.unpack_from(encoded)
            rows = _BATCH.iter_unpack(encoded[_STATE_HEAD.size :])
            state.last_sequences = dict(rows)
            assert len(state.last_sequences) == count, (count, encoded)
        return state


Then = Callable[[Answer], None]


class Replica:
    """One group's owner on one machine."""

    def __init__(self, *, group: Group, start: StartState, disk: Disk, knobs: ReplicaKnobs) -> None:
        self.group = group
        self.applied_index = start.index
        self.state = ProducerState.decode(start.state)
        self.is_installing = False
        self._disk = disk
        self._knobs = knobs
        self._written_index = start.index  # the segments hold everything up to here
        self._handed_index = start.index  # ... or will, by jobs given out
        self._is_saving = False
        self._was_leader = False
        # On the leader: what it has appended, committed or not, and who waits for it.
        self._appended: dict[int, int] = {}
        self._index_by_batch: dict[BatchId, int] = {}
        self._waiting: dict[int, list[Then]] = {}

    # -- what producers and operators ask

    def append(self, batch: BatchId, padding_bytes: int, record_count: int, now_ms: int, then: Then) -> None:
        """Append a batch if it is the next of its producer; answer a retry when the original is committed."""
        if not self.group.is_leader:
            then(Answer.NOT_LEADER)
            return
        last = self._appended.get(batch.producer, -1)
        if batch.sequence > last + 1:
            then(Answer.OUT_OF_ORDER)
        elif batch.sequence <= last:
            index = self._index_by_batch.get(batch, 0)
            if index > self.applied_index:
                self._waiting.setdefault(index, []).append(then)
            else:
                then(Answer.ACKED)
        else:
            try:
                payload = encode_batch(batch, padding_bytes)
                entry = self.group.propose(EntryKind.RECORDS, payload, record_count, now_ms)
            except NotLeader:
                then(Answer.NOT_LEADER)
            except LogFull:
                then(Answer.FULL)
            else:
                self._appended[batch.producer] = batch.sequence
                self._index_by_batch[batch] = entry.index
                self._waiting.setdefault(entry.index, []).append(then)

    def change_membership(self, membership: Membership, now_ms: int) -> None:
        """On the leader: propose a step. Raises RaftError where it is refused."""
        self.group.propose_membership(membership, now_ms)

    def move_log_start(self, now_ms: int) -> None:
        """On the leader: let the log begin at a later offset, as retention does."""
        offset = self.group.commit_offset - self._knobs.log_start_entries_kept
        if not self.group.is_leader or offset <= self.state.log_start_offset:
            return
        try:
            self.group.propose(EntryKind.LOG_START, _OFFSET.pack(offset), 0, now_ms)
        except (NotLeader, LogFull):
            return

    # -- what the host tells

    def newly_committed(self) -> list[Entry]:
        group = self.group
        if group.commit_index <= self.applied_index:
            return []
        return group.log.entries_between(self.applied_index + 1, group.commit_index)

    def apply(self, entries: list[Entry]) -> None:
        """Fold what is newly committed, and answer those who wait for it."""
        for entry in entries:
            self.state.fold(entry)
            self.applied_index = entry.index
            if entry.kind == EntryKind.RECORDS:
                self._index_by_batch.pop(batch_of(entry.payload), None)
            for then in self._waiting.pop(entry.index, ()):
                then(Answer.ACKED)

    def role_changed(self) -> None:
        if self.group.is_leader == self._was_leader:
            return
        self._was_leader = self.group.is_leader
        waiting, self._waiting = self._waiting, {}
        self._index_by_batch = {}
        for thens in waiting.values():
            for then in thens:
                then(Answer.NOT_LEADER)
        if self._was_leader:
            self._appended = dict(self.state.last_sequences)
            for entry in self.group.log.entries_from(self.applied_index + 1):
                if entry.kind == EntryKind.RECORDS:
                    batch = batch_of(entry.payload)
                    self._appended[batch.producer] = batch.sequence
                    self._index_by_batch[batch] = entry.index

    def state_to_send(self) -> StartState:
        """What a replica begins with that cannot be given entries from where it is."""
        if self._knobs.gives_start_at_applied:
            return self._state_at(self.applied_index, self.group.commit_offset)
        log = self.group.log
        return self._state_at(log.start_index, log.start_offset)

    def install(self, installed: StartInstalled, marker: Entry | None, then: Callable[[], None]) -> None:
        """The group's log was replaced: so is all that was derived from it, here and on disk."""
        start = installed.start
        self.state = ProducerState.decode(start.state)
        self.applied_index = self._written_index = self._handed_index = start.index
        self.is_installing = True

        def reset_done() -> None:
            self.is_installing = False
            self._is_saving = False
            then()

        self._disk.reset(self.group.group, start, marker, reset_done)

    # -- storage in the background

    def write(self) -> None:
        """Hand what is applied to the segments."""
        last = self.applied_index
        if self.is_installing or self._handed_index >= last:
            return
        entries = self.group.log.entries_between(self._handed_index + 1, last)
        self._handed_index = last
        self._disk.write_segments(self.group.group, entries, lambda: self._written(last))

    def _written(self, last_index: int) -> None:
        if self.is_installing:
            return
        self._written_index = max(self._written_index, last_index)
        self.group.release(self._written_index - self._knobs.released_entries_kept)

    def save_checkpoint(self) -> None:
        """Only of what the write-ahead log has made durable: else a crash could leave a checkpoint whose
        log goes on with other entries behind it."""
        is_behind = self._handed_index < self.applied_index or self.group.durable_index < self.applied_index
        if self.is_installing or self._is_saving or is_behind or self.group.damaged:
            return
        self._is_saving = True
        start = self._state_at(self.applied_index, self.group.commit_offset)
        self._disk.save_checkpoint(self.group.group, start, self._saved)

    def _saved(self) -> None:
        self._is_saving = False
        if self.is_installing:
            return
        begin = self._disk.images[self.group.group].log_start
        if begin.index > self.group.log.start_index:
            self.group.log.move_start(begin.index, begin.term, begin.offset)

    def _state_at(self, index: int, offset: int) -> StartState:
        group = self.group
        return StartState(
            index=index,
            term=group.log.term_at(index),
            offset=offset,
            membership=group.membership_at(index),
            log_start_offset=self.state.log_start_offset,
            terms=tuple(row for row in group.log.terms if row.index <= index),
            state=self.state.encode(),
        )
