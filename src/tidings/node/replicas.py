"""Replicas: the partitions that this broker holds, from the metadata's word to open and close them to their
files.

Its one rule: a replica is removed only by a committed command, never because something about it is missing.
It must not know what a batch means, nor files. Tests: tests/node/test_replicas.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.broker.cluster import METADATA_GROUP, PartitionRow
from tidings.broker.dispatch import Broker
from tidings.config.options import Config
from tidings.node.formation import Founding
from tidings.node.jobs import (
    BeginGroup,
    DropBelow,
    Dropped,
    ReadJob,
    ResetLog,
    SaveCheckpoint,
    SegmentLimits,
    StorageJob,
    WriteEntries,
    Written,
)
from tidings.node.living import Living
from tidings.node.policies import Policies
from tidings.node.recovered import RecoveredGroup, begin_group
from tidings.node.removals import Removals
from tidings.node.replica import Replica
from tidings.raft.entries import HardState, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.log import GroupLog

# Committed entries are handed to the storage thread at every tick, and before it when so many have gathered.
_UNWRITTEN_BYTES_MAX = 1024 * 1024


class ReplicasOwner(Protocol):
    """What the replicas ask of their node."""

    config: Config
    host: RaftHost
    broker: Broker
    removals: Removals
    founding: Founding
    living: Living

    @property
    def has_no_room(self) -> bool: ...
    def broker_of(self, member: int) -> int: ...
    def member_of(self, broker_id: int) -> int | None: ...
    def store(self, job: StorageJob) -> None: ...
    def read(self, job: ReadJob, then: Callable[[Any], None]) -> None: ...  # any: the job's result
    def confirm(self, group: Group, then: Callable[[bool], None], now_ms: int) -> None: ...
    def living_members(self) -> list[int]: ...
    def staying_members(self) -> list[int]: ...
    def tell(self, name: str, **facts: str | int) -> None: ...
    def tell_stopping(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Recent:
    """Entries of a group's log as it is, or was before it was replaced."""

    group: Group
    log: GroupLog
    up_to_index: int
    size_bytes: int


class Replicas:
    """All replicas by group."""

    def __init__(self, owner: ReplicasOwner, recovered: Mapping[int, RecoveredGroup]) -> None:
        self.by_group: dict[int, Replica] = {}
        self._owner = owner
        self._recovered = dict(recovered)  # until the metadata names them
        self._unwritten: dict[int, Replica] = {}
        self._unwritten_bytes = 0
        # What segments hold and memory too, oldest first.
        self._recent: deque[_Recent] = deque()
        self._recent_bytes = 0
        self._is_stopping = False
        self._policies = Policies(owner, self)

    # -- from the metadata

    def open_all(self, now_ms: int) -> None:
        """Hold what the metadata places here; give up what it has removed."""
        cluster = self._owner.broker.cluster
        for row in cluster.groups_of(self._owner.config.broker_id):
            self._open(row, now_ms)
        self._close([group for group in self.by_group if group not in cluster.partitions], now_ms)
        known = [group for group in self._owner.host.leader_table if 0 < group < cluster.next_group]
        for group in known:
            if group not in cluster.partitions:
                self._owner.host.forget_group(group)
        for group in [group for group in self._recovered if cluster.was_removed(group)]:
            self._remove(group)
        self._tell_if_all_open()

    def placed(self, groups: Iterable[int], now_ms: int) -> None:
        """A command has made, changed or removed the placement of these groups."""
        cluster = self._owner.broker.cluster
        removed: set[int] = set()
        for group in groups:
            row = cluster.partitions.get(group)
            if row is None:
                removed.add(group)
            elif self._owner.config.broker_id in row.replicas:
                self._open(row, now_ms)
        self._close(sorted(removed), now_ms)
        self._tell_if_all_open()

    def _tell_if_all_open(self) -> None:
        """Every group that this broker's files speak of is open: of any other it has promised nothing."""
        if not any(group != METADATA_GROUP for group in self._recovered):
            self._owner.host.holds_no_others()

    def _open(self, row: PartitionRow, now_ms: int) -> None:
        if row.group in self.by_group:
            return
        owner = self._owner
        topic = owner.broker.cluster.topic_of_group(row.group)
        assert topic is not None, row
        recovered = self._recovered.pop(row.group, None)
        begin = begin_group(recovered, row.group, row.founders, member=owner.host.member)
        title = f"{topic.name}-{row.index}"
        if not begin.has_files:
            owner.store(BeginGroup(group=row.group, start=begin.start, title=title))
        group = begin.add_to(owner.host, now_ms)
        replica = Replica(
            owner=self,
            group=group,
            start=begin.start,
            title=title,
            segments=begin.segments,
            is_read_only=begin.is_read_only,
        )
        self.by_group[row.group] = replica
        if begin.is_read_only:
            owner.tell("replica_read_only", log=title)
        replica.start(owner.broker.open_partition(row.group, replica), begin.start)

    def _close(self, groups: Collection[int], now_ms: int) -> None:
        held = {group for group in groups if self.by_group.pop(group, None) is not None}
        for group in groups:
            if group in held:
                self._owner.broker.close_partition(group, now_ms)
                self._unwritten.pop(group, None)
        if held:
            self._owner.host.remove_all(held)
        for group in groups:
            self._owner.host.forget_group(group)
            if group in held or group in self._recovered:
                self._remove(group)

    def _remove(self, group: int) -> None:
        self._recovered.pop(group, None)
        self._owner.removals.add(group)

    # -- from Raft

    def advanced(self, group: int, now_ms: int) -> None:
        replica = self.by_group.get(group)
        if replica is not None:
            replica.advance(now_ms)
            if self._unwritten_bytes >= _UNWRITTEN_BYTES_MAX:
                self._write_out()

    def role_changed(self, group: int, now_ms: int) -> None:
        replica = self.by_group.get(group)
        if replica is not None:
            replica.role_changed(now_ms)

    def installed(self, group: int, start: StartState) -> ResetLog | None:
        replica = self.by_group.get(group)
        if replica is None:
            return None
        self._unwritten.pop(group, None)
        return replica.installed(start)

    def awaits(self, job: ResetLog) -> bool:
        """Whether the job still has a sense: its group is here, and not damaged anew."""
        replica = self.by_group.get(job.group)
        return replica is not None and replica.awaits(job)

    def refill(self, group: int, now_ms: int) -> None:
        """The replica's files cannot be trusted: it forgets its log, not its votes, and asks its leader for
        all. Where nobody else has the log, it is kept for reading."""
        replica = self.by_group.get(group)
        if replica is None or replica.group.damaged:
            return
        old = replica.group
        if old.membership.voters == (old.member,):
            if replica.seal():
                self._owner.tell("replica_read_only", log=replica.title)
            return
        hard = HardState(term=old.term, vote=old.vote)
        start = StartState(index=0, term=0, offset=0, membership=old.membership)
        self._owner.host.remove(group)
        self._unwritten.pop(group, None)
        begin = RecoveredGroup(group=group, start=start, first=start, hard=hard, is_damaged=True)
        damaged = begin.add_to(self._owner.host, now_ms)
        # The old term and vote may have been on their way to the disk: nothing rests on them before they are
        # there.
        damaged.save_hard_state(hard.term, hard.vote)
        replica.refilled(damaged, now_ms)

    def start_for(self, group: int) -> StartState | None:
        replica = self.by_group.get(group)
        return replica.state_to_send() if replica is not None else None

    # -- from storage

    def stored(self, job: StorageJob, result: object, now_ms: int) -> None:
        replica = self.by_group.get(job.group)
        if replica is None or replica.has_no_files:
            return
        if isinstance(job, WriteEntries):
            assert isinstance(result, Written), result
            replica.written(job.entries[-1].index, result.segments)
            self._keep_recent(replica, job)
        elif isinstance(job, DropBelow):
            assert isinstance(result, Dropped), result
            replica.dropped(result)
        elif isinstance(job, SaveCheckpoint):
            replica.drop_old_segments()

    def is_frozen(self, group: int) -> bool:
        replica = self.by_group.get(group)
        return replica is not None and replica.is_frozen

    def may_return(self, group: int) -> bool:
        """Whether the group is here, or in files that the metadata has not spoken of yet."""
        return group in self.by_group or group in self._recovered

    def carry_unopened(self, group: int) -> int | None:
        """Have what recovery found of a group written to the log again that the metadata has not named yet,
        and perhaps never will; the flush."""
        recovered = self._recovered.get(group)
        if recovered is None or not recovered.tail:
            return None
        outbox = self._owner.host.outbox
        outbox.entries += [(group, entry) for entry in recovered.tail]
        return outbox.collecting_flush

    def save_checkpoint(self, group: int) -> int | None:
        """Give out the jobs that make the group's files hold all that is applied; None where it has no files
        that may be changed, just now or at all."""
        replica = self.by_group.get(group)
        if replica is None or replica.has_no_files or replica.is_frozen:
            return None
        job = replica.write_job(self._limits(replica))
        if job is not None:
            self._owner.store(job)
        start = replica.state_to_save()
        self._owner.store(SaveCheckpoint(group=group, start=start, title=replica.title))
        return start.index

    def tick(self, now_ms: int) -> None:
        self._write_out()
        self._policies.tick(now_ms)

    def hand_over(self, now_ms: int) -> int:
        """Before a stop: see Policies.hand_over. The others are told, so that they give nothing back."""
        if not self._is_stopping:
            self._is_stopping = True
            self._owner.tell_stopping()
        return self._policies.hand_over(now_ms)

    def _write_out(self) -> None:
        unwritten, self._unwritten = self._unwritten, {}
        self._unwritten_bytes = 0
        for replica in unwritten.values():
            job = replica.write_job(self._limits(replica))
            if job is not None:
                self._owner.store(job)

    def _limits(self, replica: Replica) -> SegmentLimits:
        assert replica.partition is not None
        settings = replica.partition.settings
        return SegmentLimits(segment_bytes=settings.segment_bytes, segment_ms=settings.segment_ms)

    def _keep_recent(self, replica: Replica, job: WriteEntries) -> None:
        """What was written stays in memory for readers at the end of the log, within the broker's budget."""
        size_bytes = sum(len(entry.payload) for entry in job.entries)
        group = replica.group
        self._recent.append(_Recent(group, group.log, job.entries[-1].index, size_bytes))
        self._recent_bytes += size_bytes
        while self._recent and self._recent_bytes > self._owner.config.recent_bytes_max:
            oldest = self._recent.popleft()
            self._recent_bytes -= oldest.size_bytes
            if oldest.group.log is oldest.log:
                oldest.group.release(oldest.up_to_index)

    # -- what a replica asks

    @property
    def has_unwritten_entries(self) -> bool:
        """Whether the next tick has entries for the storage thread."""
        return bool(self._unwritten)

    @property
    def is_storage_full(self) -> bool:
        return self._owner.has_no_room

    def broker_of(self, member: int) -> int:
        return self._owner.broker_of(member)

    def store(self, job: StorageJob) -> None:
        self._owner.store(job)

    def read(self, job: ReadJob, then: Callable[[Any], None]) -> None:  # any: the job's result
        self._owner.read(job, then)

    def confirm(self, group: Group, then: Callable[[bool], None], now_ms: int) -> None:
        self._owner.confirm(group, then, now_ms)

    def has_unwritten(self, replica: Replica, size_bytes: int) -> None:
        self._unwritten[replica.group.group] = replica
        self._unwritten_bytes += size_bytes
