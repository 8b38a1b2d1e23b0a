"""Jobs: what a broker has done beside its event loop, as values.

Its one rule: a job says what to do and whom to tell, never how; storage jobs of one group are done in the
order they were given. The runtime does them with threads and files, a simulation with virtual ones. Tests:
tests/node/test_replica.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.broker.cluster import METADATA_GROUP as METADATA_GROUP
from tidings.raft.entries import Entry, StartState


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginGroup:
    """The group is new on this broker: its log begins behind `start`. Nothing is written before its first
    entry."""

    group: int
    start: StartState
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLimits:
    """When a segment is full: by size, or by the age of its first record."""

    segment_bytes: int
    segment_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """What retention asks of a segment."""

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteEntries:
    """Write committed entries behind those already in the group's segments. Rolls segments as the limits
    say."""

    group: int
    entries: Sequence[Entry]
    limits: SegmentLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of WriteEntries: the group's segments now."""

    segments: Sequence[SegmentFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCheckpoint:
    """Sync the group's segments, then replace its checkpoint. `title` is for people who look into the
    folder."""

    group: int
    start: StartState
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBelow:
    """Remove the segments that lie wholly below the log start offset."""

    group: int
    log_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What came of DropBelow: where the log begins now (`index`, `term` and `offset` are before its first
    entry)."""

    index: int
    term: int
    offset: int
    segments: Sequence[SegmentFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetLog:
    """Replace all that the group holds by an empty log that goes on behind `start`."""

    group: int
    start: StartState
    title: str
    wal_sequence: int = 0  # of the durable flush that told the write-ahead log


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroup:
    """Remove all that the group holds: its topic was deleted, or its replica moved away, by a committed
    command."""

    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOffsets:
    """Whole batches from the one that contains `offset`."""

    group: int
    offset: int
    bytes_max: int
    offset_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEntries:
    """Entries from `first_index` on, for a follower that is behind what memory holds."""

    group: int
    first_index: int
    bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTime:
    """A list of the batch in which a reader that asks for a time begins, not wholly below `offset_min`, or of
    nothing. None asks for the first of the newest time that there is."""

    group: int
    timestamp: int | None
    offset_min: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """A pure function that would hold up the loop."""

    function: Callable[..., object]  # any signature: it is called with `arguments` only
    arguments: tuple[Any, ...]  # as above


StorageJob = BeginGroup | WriteEntries | SaveCheckpoint | DropBelow | ResetLog | RemoveGroup
ReadJob = ReadOffsets | ReadEntries | FindTime | Compute
