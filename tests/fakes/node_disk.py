"""A broker's disk in memory, as a node's jobs see it: the write-ahead log, checkpoints and segments.

It holds to what storage/segments.py asks of its caller (entries follow each other, a checkpoint stands at the
last entry written, only checkpointed segments are dropped), so that a node that would fail there fails here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fakes.node_log import NO_CHECKPOINT, CheckpointedAt, FakeLog, ReadTail
from tidings.broker.cluster import METADATA_GROUP
from tidings.node.jobs import (
    BeginGroup,
    Compute,
    DropBelow,
    Dropped,
    FindTime,
    ReadEntries,
    ReadJob,
    ReadOffsets,
    RemoveGroup,
    ResetLog,
    SaveCheckpoint,
    SegmentFacts,
    SegmentLimits,
    StorageJob,
    WriteEntries,
    Written,
)
from tidings.node.recovered import RecoveredGroup
from tidings.protocol.records import read_header
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState

NO_TIMESTAMP = -1
_NO_HARD_STATE = HardState(term=0, vote=0)


class FakeDamage(Exception):
    """Bytes of a group turned out to be wrong."""


@dataclass(slots=True)
class FakeSegment:
    """The entries of one segment."""

    entries: list[Entry]

    def facts(self) -> SegmentFacts:
        times = [read_header(entry.payload).max_timestamp for entry in self.entries if _has_records(entry)]
        return SegmentFacts(
            base_offset=self.entries[0].base_offset,
            next_offset=self.entries[-1].next_offset,
            size_bytes=sum(len(entry.payload) for entry in self.entries if _has_records(entry)),
            max_timestamp=max(times, default=NO_TIMESTAMP),
        )

    def is_full_before(self, entry: Entry, limits: SegmentLimits) -> bool:
        batches = [held for held in self.entries if _has_records(held)]
        if not _has_records(entry) or not batches:
            return False
        if self.facts().size_bytes + len(entry.payload) > limits.segment_bytes:
            return True
        first_timestamp = read_header(batches[0].payload).max_timestamp
        return read_header(entry.payload).max_timestamp - first_timestamp > limits.segment_ms


@dataclass(slots=True)
class FakeGroupFiles:
    """One group's folder. `log_start` is the state before the first entry that is kept."""

    checkpoint: StartState
    log_start: StartState
    title: str
    segments: list[FakeSegment] = field(default_factory=list)
    reset_sequence: int = 0
    is_damaged: bool = False

    @property
    def last_index(self) -> int:
        return self.segments[-1].entries[-1].index if self.segments else self.log_start.index

    @property
    def next_offset(self) -> int:
        return self.segments[-1].entries[-1].next_offset if self.segments else self.log_start.offset

    def entries(self) -> list[Entry]:
        return [entry for segment in self.segments for entry in segment.entries]

    def facts(self) -> tuple[SegmentFacts, ...]:
        return tuple(segment.facts() for segment in self.segments)

    def stands_at(self) -> CheckpointedAt:
        return CheckpointedAt(
            index=self.checkpoint.index, term=self.checkpoint.term, reset_sequence=self.reset_sequence
        )

    def cut_back(self) -> None:
        """A crash: what is behind the checkpoint was never synced."""
        kept: list[FakeSegment] = []
        for segment in self.segments:
            entries = [entry for entry in segment.entries if entry.index <= self.checkpoint.index]
            if entries:
                kept.append(FakeSegment(entries))
        self.segments = kept


class FakeDisk:
    """One broker's disk. It outlives the node, as files outlive a process."""

    def __init__(self, *, flushes_per_file: int = 16) -> None:
        self.log = FakeLog(flushes_per_file=flushes_per_file)
        self.groups: dict[int, FakeGroupFiles] = {}
        self.damage_marks: set[int] = set()
        self.doubt_marks: set[int] = set()
        self.bad_reads: set[int] = set()  # groups whose segments cannot be read any more
        self._begun: dict[int, BeginGroup] = {}

    # -- a start

    def start(self, *, is_torn: bool = False) -> dict[int, RecoveredGroup]:
        """A process starts after a crash. `is_torn`: the last flush was cut off."""
        self._begun.clear()
        for files in self.groups.values():
            files.cut_back()
        groups = sorted({*self.groups, *self.log.groups()})
        if is_torn:
            self.doubt_marks.update(groups)
        tails = {group: self.log.read(group, self._stands_at(group)) for group in groups}
        self.log.begin_life({group: tail.last for group, tail in tails.items()})
        return {group: self._recover(group, tail) for group, tail in tails.items()}

    def oldest_files(self) -> dict[int, int]:
        """group -> the oldest file with entries that its checkpoint does not hold."""
        oldest = {
            group: self.log.read(group, self._stands_at(group)).oldest_file for group in self.log.groups()
        }
        return {group: file for group, file in oldest.items() if file is not None}

    def problems(self) -> dict[int, str]:
        """What a start that happens now would find damaged, beside what is known to be."""
        found: dict[int, str] = {}
        for group in sorted(self.log.groups() - self.damage_marks):
            problem = self.log.read(group, self._stands_at(group)).problem
            if problem is not None:
                found[group] = problem
        return found

    # -- jobs

    def do(self, job: StorageJob) -> object:
        match job:
            case BeginGroup():
                self._begun[job.group] = job
            case WriteEntries():
                return self._write(job)
            case SaveCheckpoint():
                self._save(job)
            case DropBelow():
                return self._drop(job)
            case ResetLog():
                self._reset(job)
            case RemoveGroup():
                self._begun.pop(job.group, None)
                self.groups.pop(job.group, None)
                self.damage_marks.discard(job.group)
                self.doubt_marks.discard(job.group)
        return None

    def read(self, job: ReadJob) -> object:
        if isinstance(job, Compute):
            return job.function(*job.arguments)
        if job.group in self.bad_reads:
            raise FakeDamage(job.group)
        files = self.groups.get(job.group)
        if files is None:
            return [] if isinstance(job, FindTime) else None
        match job:
            case ReadOffsets():
                return _read_offsets(files, job)
            case ReadEntries():
                return _read_entries(files, job)
            case FindTime():
                return _find_time(files, job)

    def settle(self, group: int) -> None:
        self.damage_marks.discard(group)
        self.doubt_marks.discard(group)

    # -- parts

    def _stands_at(self, group: int) -> CheckpointedAt:
        files = self.groups.get(group)
        return files.stands_at() if files is not None else NO_CHECKPOINT

    def _recover(self, group: int, read: ReadTail) -> RecoveredGroup:
        """As runtime/data.py makes it."""
        files = self.groups.get(group)
        is_damaged = group in self.damage_marks or read.problem is not None
        if is_damaged:
            self.damage_marks.add(group)
        if files is None:
            start = first = StartState(index=0, term=0, offset=0, membership=Membership(voters=()))
        else:
            files.is_damaged = is_damaged
            start, first = files.checkpoint, files.log_start
        return RecoveredGroup(
            group=group,
            start=start,
            first=first,
            tail=read.entries,
            hard=self.log.hard_states.get(group, _NO_HARD_STATE),
            segments=files.facts() if files is not None and group != METADATA_GROUP else (),
            has_files=files is not None,
            is_doubtful=group in self.doubt_marks,
            is_damaged=is_damaged,
        )

    def _files(self, group: int) -> FakeGroupFiles:
        files = self.groups.get(group)
        if files is None:
            begun = self._begun.pop(group)
            files = FakeGroupFiles(checkpoint=begun.start, log_start=begun.start, title=begun.title)
            self.groups[group] = files
        if files.is_damaged:
            raise FakeDamage(group)
        return files

    def _write(self, job: WriteEntries) -> Written:
        files = self._files(job.group)
        assert job.entries, job
        for entry in job.entries:
            assert entry.index == files.last_index + 1, (job.group, entry.index, files.last_index)
            assert entry.base_offset == files.next_offset, (job.group, entry, files.next_offset)
            if not files.segments or files.segments[-1].is_full_before(entry, job.limits):
                files.segments.append(FakeSegment([]))
            files.segments[-1].entries.append(entry)
        return Written(segments=files.facts())

    def _save(self, job: SaveCheckpoint) -> None:
        if job.group == METADATA_GROUP:
            known = self.groups.get(job.group)
            sequence = known.reset_sequence if known is not None else 0
            self.groups[job.group] = _state_files(job.start, job.title, sequence)
            return
        files = self._files(job.group)
        assert (job.start.index, job.start.offset) == (files.last_index, files.next_offset), job.group
        files.checkpoint, files.title = job.start, job.title

    def _drop(self, job: DropBelow) -> Dropped:
        files = self._files(job.group)
        while files.segments:
            oldest = files.segments[0]
            last = oldest.entries[-1]
            if last.next_offset > job.log_start_offset or last.index > files.checkpoint.index:
                break
            if len(files.segments) == 1 and not oldest.facts().size_bytes:
                break
            files.log_start = StartState(
                index=last.index,
                term=last.term,
                offset=last.next_offset,
                membership=files.log_start.membership,
            )
            del files.segments[0]
        start = files.log_start
        return Dropped(index=start.index, term=start.term, offset=start.offset, segments=files.facts())

    def _reset(self, job: ResetLog) -> None:
        if job.group == METADATA_GROUP:
            self.groups[job.group] = _state_files(job.start, job.title, job.wal_sequence)
            return
        if job.group in self._begun:
            self._files(job.group)
        assert job.group in self.groups, job.group
        self.bad_reads.discard(job.group)
        self.groups[job.group] = FakeGroupFiles(
            checkpoint=job.start, log_start=job.start, title=job.title, reset_sequence=job.wal_sequence
        )


def _state_files(start: StartState, title: str, reset_sequence: int) -> FakeGroupFiles:
    """A group without segments: its log begins where its checkpoint stands."""
    return FakeGroupFiles(checkpoint=start, log_start=start, title=title, reset_sequence=reset_sequence)


def _has_records(entry: Entry) -> bool:
    return entry.kind == EntryKind.RECORDS


def _batches(files: FakeGroupFiles) -> list[Entry]:
    return [entry for entry in files.entries() if _has_records(entry)]


def _within(entries: Sequence[Entry], bytes_max: int) -> list[Entry]:
    """As many as fit, and at least one."""
    found: list[Entry] = []
    size_bytes = 0
    for entry in entries:
        size_bytes += len(entry.payload)
        if found and size_bytes > bytes_max:
            break
        found.append(entry)
    return found


def _read_offsets(files: FakeGroupFiles, job: ReadOffsets) -> list[bytes] | None:
    if job.offset < files.log_start.offset:
        return None
    wanted = [entry for entry in _batches(files) if job.offset < entry.next_offset <= job.offset_max]
    return [entry.payload for entry in _within(wanted, job.bytes_max)]


def _read_entries(files: FakeGroupFiles, job: ReadEntries) -> list[Entry] | None:
    if job.first_index <= files.log_start.index:
        return None
    return _within([entry for entry in files.entries() if entry.index >= job.first_index], job.bytes_max)


def _find_time(files: FakeGroupFiles, job: FindTime) -> list[bytes]:
    found = [entry.payload for entry in _batches(files) if entry.next_offset > job.offset_min]
    times = [read_header(batch).max_timestamp for batch in found]
    wanted = max(times, default=0) if job.timestamp is None else job.timestamp
    return [batch for batch, time in zip(found, times, strict=True) if time >= wanted][:1]
