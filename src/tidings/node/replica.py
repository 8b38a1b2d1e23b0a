"""Replica: one partition's log on this broker, where Raft's entries, Kafka's offsets and the segment files
meet.

Its one rule: what is committed is applied once, in order, then written to segments; what leaves memory is in
segments. It must not know what a batch means (broker/partition) nor how files are written (jobs). Tests:
tests/node/test_replica.py

An entry's way: append -> group (tail, write-ahead log, followers) -> committed -> partition -> WriteEntries
-> released.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tidings.broker import ports
from tidings.broker.partition import Partition
from tidings.node.jobs import (
    DropBelow,
    Dropped,
    FindTime,
    ReadJob,
    ReadOffsets,
    ResetLog,
    SegmentFacts,
    SegmentLimits,
    StorageJob,
    WriteEntries,
)
from tidings.protocol.records import read_header
from tidings.raft.entries import Entry, EntryKind, StartState
from tidings.raft.errors import LogFull, NotLeader
from tidings.raft.group import Group

_OFFSET = struct.Struct("<q")
# What a producer is told, and through it whoever can do something about it.
SEALED = "the only replica is damaged: it is read-only until `tidings log salvage` is run on its folder"


class ReplicaOwner(Protocol):
    """What a replica asks of its node."""

    @property
    def is_storage_full(self) -> bool: ...

    def broker_of(self, member: int) -> int: ...
    def store(self, job: StorageJob) -> None: ...
    def read(self, job: ReadJob, then: Callable[[Any], None]) -> None: ...  # any: the job's result
    def confirm(self, group: Group, then: Callable[[bool], None], now_ms: int) -> None: ...
    def has_unwritten(self, replica: Replica, size_bytes: int) -> None: ...


class Replica:
    """One partition's replica. Fills the broker room's port ReplicaLog."""

    def __init__(
        self,
        *,
        owner: ReplicaOwner,
        group: Group,
        start: StartState,
        title: str,
        segments: Sequence[SegmentFacts],
        is_read_only: bool,
    ) -> None:
        self.group = group
        self.title = title  # TOPIC-PARTITION, for people
        self.partition: Partition | None = None
        self.log_start_offset = 0
        # What was applied is what the start holds; the group may have learnt of more commits already.
        self.applied_index = start.index
        self._applied_offset = start.offset
        self.written_index = start.index  # the segments hold everything up to here
        self.segments = segments
        self._owner = owner
        self._handed_index = start.index  # jobs that write everything up to here were given out
        self._led_term = 0  # in which the partition was told that it leads; 0: it does not
        # Damaged, with nobody to be refilled by: nothing is appended. Where that was so at the start, storage
        # changes nothing of the files either.
        self._is_sealed = self.is_frozen = is_read_only
        self._awaited_start: StartState | None = None  # the files are being replaced by this one
        self._is_refilling = False  # they cannot be trusted, and what replaces them is not here yet

    # -- the port, as the broker room sees the log

    @property
    def is_leader(self) -> bool:
        """Not between the election and the turn's end: the partition has to hear of what is in the tail
        first, or it would take a batch for new that is there already."""
        return self.group.is_leader and self.group.term == self._led_term

    @property
    def leader_id(self) -> int:
        return self._owner.broker_of(self.group.leader)

    @property
    def leader_epoch(self) -> int:
        return self.group.term

    @property
    def term_start_committed(self) -> bool:
        return self.group.term_start_committed

    @property
    def high_watermark(self) -> int:
        return self.group.commit_offset

    @property
    def durable_offset(self) -> int:
        return self.group.durable_offset

    @property
    def end_offset(self) -> int:
        return self.group.next_offset

    def append(self, batch: bytes, record_count: int, now_ms: int) -> int:
        if self._owner.is_storage_full:
            raise ports.StorageFull
        self._refuse_if_sealed()
        return self._propose(EntryKind.RECORDS, batch, record_count, now_ms).next_offset

    def append_log_start(self, offset: int, now_ms: int) -> None:
        self._refuse_if_sealed()
        self._propose(EntryKind.LOG_START, _OFFSET.pack(offset), 0, now_ms)

    def read(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes] | None:
        if offset >= offset_max:
            return []
        log = self.group.log
        first = log.find_offset(offset)
        if first is None:
            return None
        batches: list[bytes] = []
        size = 0
        for entry in log.entries_from(first.index):
            if entry.next_offset > offset_max:
                break
            if entry.kind != EntryKind.RECORDS:
                continue
            size += len(entry.payload)
            if batches and size > bytes_max:
                break
            batches.append(entry.payload)
        return batches

    def read_later(
        self, offset: int, bytes_max: int, offset_max: int, then: Callable[[list[bytes] | None], None]
    ) -> None:
        job = ReadOffsets(group=self.group.group, offset=offset, bytes_max=bytes_max, offset_max=offset_max)
        self._owner.read(job, then)

    def find_batch_by_time(self, timestamp: int, then: Callable[[list[bytes] | None], None]) -> None:
        asked_index = self.written_index
        asked = None if timestamp == ports.TIME_OF_NEWEST else timestamp
        job = FindTime(group=self.group.group, timestamp=asked, offset_min=self.log_start_offset)

        def found_on_disk(found: list[bytes] | None) -> None:
            if found is None:
                then(None)
                return
            if self.group.log.window_first > asked_index + 1:
                self.find_batch_by_time(
                    timestamp, then
                )  # what was in memory went to disk meanwhile: ask again
                return
            then(self._find_in_memory(timestamp, found))

        self._owner.read(job, found_on_disk)

    def _find_in_memory(self, timestamp: int, on_disk: list[bytes]) -> list[bytes]:
        """The batch to begin with, given what the segments have (they lie before what is in memory alone)."""
        if on_disk and timestamp != ports.TIME_OF_NEWEST:
            return on_disk
        newest = on_disk
        for entry in self.group.log.entries_from(self.group.log.window_first):
            if entry.index > self.group.commit_index:
                break
            if entry.kind != EntryKind.RECORDS or entry.next_offset <= self.log_start_offset:
                continue
            if timestamp != ports.TIME_OF_NEWEST:
                if read_header(entry.payload).max_timestamp >= timestamp:
                    return [entry.payload]
            elif not newest or _is_newer(entry.payload, newest[0]):
                newest = [entry.payload]
        return newest

    def epoch_end(self, epoch: int) -> ports.EpochEnd:
        """The newest epoch at or below the one asked for, and where the next one begins."""
        found = ports.EpochEnd(epoch=ports.NO_EPOCH, end_offset=ports.NO_OFFSET)
        terms = self.group.log.terms
        for place, start in enumerate(terms):
            if start.term > epoch:
                break
            is_newest = place + 1 == len(terms)
            end_offset = self.group.next_offset if is_newest else terms[place + 1].offset
            found = ports.EpochEnd(epoch=start.term, end_offset=end_offset)
        return found

    def confirm_leadership(self, then: Callable[[bool], None], now_ms: int) -> None:
        self._owner.confirm(self.group, then, now_ms)

    # -- what the node calls

    def start(self, partition: Partition, start: StartState) -> None:
        """Begin with what was recovered, or installed, or is new."""
        self.partition = partition
        self._take_start(start)

    def advance(self, now_ms: int) -> None:
        """The commit index or the durable index moved: apply what is newly committed, then let waiters go on.
        Only what is on this broker's own disk too is applied: a checkpoint must never be ahead of the
        write-ahead log, or a crash could leave a log behind it that is not its continuation."""
        group = self.group
        partition = self.partition
        assert partition is not None
        last_index = min(group.commit_index, group.durable_index)
        if last_index > self.applied_index:
            size_bytes = 0
            for entry in group.log.entries_between(self.applied_index + 1, last_index):
                self._applied_offset = entry.next_offset
                if entry.kind == EntryKind.RECORDS:
                    partition.committed(entry.base_offset, entry.payload, now_ms)
                    size_bytes += len(entry.payload)
                elif entry.kind == EntryKind.LOG_START:
                    self._move_log_start(entry)
            self.applied_index = last_index
            self._owner.has_unwritten(self, size_bytes)
        partition.advanced(now_ms)

    def role_changed(self, now_ms: int) -> None:
        """Leadership was won or lost, or another leader is known."""
        partition = self.partition
        assert partition is not None
        term = self.group.term if self.group.is_leader else 0
        if term == self._led_term:
            return
        has_led, self._led_term = self._led_term, term
        if has_led:
            partition.lost_leadership(now_ms)
        if not term:
            return
        tail = self.group.log.entries_from(self.applied_index + 1)
        partition.became_leader([e.payload for e in tail if e.kind == EntryKind.RECORDS], now_ms)

    def write_job(self, limits: SegmentLimits) -> WriteEntries | None:
        """The job that brings the segments up to what is applied; None where nothing is left to write."""
        if self.has_no_files or self.is_frozen or self._handed_index >= self.applied_index:
            return None
        entries = self.group.log.entries_between(self._handed_index + 1, self.applied_index)
        self._handed_index = self.applied_index
        return WriteEntries(group=self.group.group, entries=entries, limits=limits)

    def written(self, up_to_index: int, segments: Sequence[SegmentFacts]) -> None:
        self.written_index = max(self.written_index, up_to_index)
        self.segments = segments

    def drop_old_segments(self) -> None:
        """Storage drops what is checkpointed, so there may be more to drop after each checkpoint."""
        is_any = any(
            segment.size_bytes and segment.next_offset <= self.log_start_offset for segment in self.segments
        )
        if is_any and not self.has_no_files and not self.is_frozen:
            self._owner.store(DropBelow(group=self.group.group, log_start_offset=self.log_start_offset))

    def dropped(self, dropped: Dropped) -> None:
        """Segments below the log start were removed: the log that followers can be given begins later."""
        if dropped.index > self.group.log.start_index:
            self.group.log.move_start(dropped.index, dropped.term, dropped.offset)
        self.segments = dropped.segments

    def state_to_save(self) -> StartState:
        """What a checkpoint holds: the replica as of what is applied."""
        return self._state(self.applied_index, self._applied_offset)

    def state_to_send(self) -> StartState:
        """What a replica begins with that is below this log's start, or has lost its own: the place where
        this log begins, and today's producers, who ignore the batches they have already counted."""
        log = self.group.log
        return self._state(log.start_index, log.start_offset)

    def installed(self, start: StartState) -> ResetLog:
        """The group's log was replaced by one that goes on behind `start`. Nothing is written before its
        files are."""
        self._awaited_start = start
        self._is_refilling = False
        self.applied_index = self._handed_index = self.written_index = start.index
        self._applied_offset = start.offset
        self.segments = ()
        self._take_start(start)
        return ResetLog(group=self.group.group, start=start, title=self.title)

    def refilled(self, group: Group, now_ms: int) -> None:
        """The log is forgotten; `group` waits for its leader to send all of it again."""
        assert self.partition is not None
        self.group = group
        self.applied_index = self._handed_index = self.written_index = 0
        self._applied_offset = 0
        self.segments = ()
        self._awaited_start = None
        self._is_refilling = True
        self._led_term = 0
        self.partition.lost_leadership(now_ms)

    def awaits(self, job: ResetLog) -> bool:
        """Whether the job is the newest of its kind: one before it was overtaken by new damage."""
        return self._awaited_start is job.start

    def was_reset(self) -> None:
        self._awaited_start = None
        self._owner.has_unwritten(self, 0)

    @property
    def has_no_files(self) -> bool:
        """Whether the files that go with the log are still to come: nothing is written, and what earlier jobs
        came to means nothing."""
        return self._is_refilling or self._awaited_start is not None

    def seal(self) -> bool:
        """The files are damaged, and nobody else has what is in them: they are for reading from now on. True
        where that is news."""
        is_news, self._is_sealed = not self._is_sealed, True
        return is_news

    def _state(self, index: int, offset: int) -> StartState:
        assert self.partition is not None
        group = self.group
        return StartState(
            index=index,
            term=group.log.term_at(index),
            offset=offset,
            membership=group.membership_at(index),
            log_start_offset=self.log_start_offset,
            terms=tuple(start for start in group.log.terms if start.index <= index),
            state=self.partition.state(),
        )

    def _take_start(self, start: StartState) -> None:
        assert self.partition is not None
        self.log_start_offset = max(start.log_start_offset, self.group.log.start_offset)
        if start.state:
            self.partition.restore(start.state)

    def _move_log_start(self, entry: Entry) -> None:
        offset = log_start_of(entry)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.drop_old_segments()

    def _refuse_if_sealed(self) -> None:
        if self._is_sealed:
            raise ports.StorageDamaged(SEALED)

    def _propose(self, kind: EntryKind, payload: bytes, record_count: int, now_ms: int) -> Entry:
        try:
            return self.group.propose(kind, payload, record_count, now_ms)
        except NotLeader as error:
            raise ports.NotLeader from error
        except LogFull as error:
            raise ports.LogFull from error


def log_start_of(entry: Entry) -> int:
    """Where the log starts from this entry on."""
    assert entry.kind == EntryKind.LOG_START, entry
    offset: int = _OFFSET.unpack(entry.payload)[0]
    return offset


def _is_newer(batch: bytes, other: bytes) -> bool:
    return read_header(batch).max_timestamp > read_header(other).max_timestamp
