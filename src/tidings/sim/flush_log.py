"""The write-ahead log as it stands on a disk: the durable flushes, and what recovery makes of them.

Its one rule: in the log an entry replaces its index and everything after it; a START marker replaces the
group's whole log, and counts once the start state it stands for is the group's checkpoint. It must not know
when a flush becomes durable. Tests: tests/sim/test_flush_log.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.outbox import Flush

NO_HARD_STATE = HardState(term=0, vote=0)


@dataclass(slots=True)
class GroupImage:
    """What one group has on disk outside the write-ahead log."""

    checkpoint: StartState
    log_start: (
        StartState  # where the segments begin: index, term, offset and membership before their first entry
    )
    segments: list[Entry] = field(default_factory=list)  # those behind the checkpoint are cut off by a crash
    start_marker: Entry | None = None  # the START in the write-ahead log that the checkpoint answers
    is_damaged: bool = False
    is_in_doubt: bool = False  # a torn flush was cut off; stays until the group says that it has settled
    durable_terms: dict[int, int] = field(default_factory=dict)  # index -> term, as recovery would find it
    durable_last: int = 0

    @property
    def first_index(self) -> int:
        return self.log_start.index + 1

    def holds(self, index: int, term: int) -> bool:
        """Whether the entry would be found after a crash now."""
        if self.is_damaged:
            return False
        return index <= self.checkpoint.index or self.durable_terms.get(index) == term

    def note_durable(self, entry: Entry) -> None:
        """The write-ahead log holds this entry now."""
        terms = self.durable_terms
        if entry.index > self.durable_last + 1:
            return  # behind a hole: recovery would not reach it
        for index in range(entry.index, self.durable_last + 1):
            terms.pop(index, None)
        if entry.index > self.checkpoint.index:
            terms[entry.index] = entry.term
        self.durable_last = max(entry.index, self.checkpoint.index)

    def entries_from(self, first_index: int, bytes_max: int) -> list[Entry]:
        """Whole entries of the segments in order, at least one if there is one."""
        place = first_index - self.first_index
        if place < 0:
            return []
        size_bytes = 0
        found: list[Entry] = []
        for entry in self.segments[place:]:
            size_bytes += len(entry.payload)
            if found and size_bytes > bytes_max:
                break
            found.append(entry)
        return found

    def replace_checkpoint(self, start: StartState) -> None:
        self.checkpoint = start
        self._drop_before(start.log_start_offset)
        for index in [index for index in self.durable_terms if index <= start.index]:
            del self.durable_terms[index]
        self.durable_last = max(self.durable_last, start.index)

    def _drop_before(self, log_start_offset: int) -> None:
        """Forget the checkpointed entries that lie wholly before the log start."""
        dropped = 0
        membership = self.log_start.membership
        for entry in self.segments:
            if entry.next_offset > log_start_offset or entry.index > self.checkpoint.index:
                break
            if entry.kind == EntryKind.MEMBERSHIP:
                membership = Membership.decode(entry.payload)
            dropped += 1
        if dropped:
            last = self.segments[dropped - 1]
            del self.segments[:dropped]
            self.log_start = StartState(
                index=last.index, term=last.term, offset=last.next_offset, membership=membership
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredGroup:
    """What a start finds of one group. Of a damaged one only the membership and its index can be trusted."""

    start: StartState
    hard: HardState
    tail: list[Entry]
    first_index: int
    first_offset: int
    is_damaged: bool
    is_in_doubt: bool


class FlushLog:
    """The durable flushes that are not cut yet, and the terms and votes of those that are."""

    __slots__ = ("_flushes", "_hard_states")

    def __init__(self) -> None:
        self._flushes: list[Flush] = []
        self._hard_states: dict[int, HardState] = {}

    def __len__(self) -> int:
        return len(self._flushes)

    def append(self, flush: Flush) -> None:
        self._flushes.append(flush)

    def lose_last(self) -> None:
        self._flushes.pop()

    def remove_group(self, group: int) -> None:
        """Its entries mean nothing any more; its terms and votes do: who comes back must not vote twice."""
        self._flushes = [without_group(flush, group) for flush in self._flushes]

    def cut(self, images: Mapping[int, GroupImage]) -> None:
        """Give up the oldest flushes, as far as all that they hold is in checkpoints."""
        flushes = self._flushes
        while flushes and all(
            self._is_saved(images.get(group), entry) for group, entry in flushes[0].entries
        ):
            flush = flushes.pop(0)
            self._hard_states.update(flush.hard_states)
            for group, entry in flush.entries:
                image = images.get(group)
                if image is not None and image.start_marker is entry:
                    image.start_marker = None

    def _is_saved(self, image: GroupImage | None, entry: Entry) -> bool:
        if image is None:
            return True
        if (
            entry.kind == EntryKind.START
        ):  # until its start state is the checkpoint it may still come to nothing
            return entry is image.start_marker or self._holds(image.start_marker)
        return entry.index <= image.checkpoint.index

    def _holds(self, marker: Entry | None) -> bool:
        return marker is not None and any(
            entry is marker for flush in self._flushes for _, entry in flush.entries
        )

    # -- recovery

    def hard_state_of(self, group: int) -> HardState:
        for flush in reversed(self._flushes):
            if group in flush.hard_states:
                return flush.hard_states[group]
        return self._hard_states.get(group, NO_HARD_STATE)

    def recover(self, group: int, image: GroupImage) -> RecoveredGroup:
        start = image.checkpoint
        tail = [] if image.is_damaged else self.tail(group, image)
        hard = self.hard_state_of(group)
        last_term = tail[-1].term if tail else start.term
        if (
            hard.term < last_term
        ):  # the checkpoint was durable before the flush with the term of its last entry
            hard = HardState(term=last_term, vote=0)
        return RecoveredGroup(
            start=start,
            hard=hard,
            tail=tail,
            first_index=image.first_index,
            first_offset=image.log_start.offset,
            is_damaged=image.is_damaged,
            is_in_doubt=image.is_in_doubt,
        )

    def tail(self, group: int, image: GroupImage) -> list[Entry]:
        """The entries behind the checkpoint, as far as they go on from it."""
        saved = image.checkpoint
        tail: list[Entry] = []
        is_same_log = True
        for entry in self._entries_since_start(group, image):
            if entry.index <= saved.index:
                tail.clear()
                is_same_log = entry.index < saved.index or entry.term == saved.term
                continue
            if tail and entry.index <= tail[-1].index:
                del tail[max(0, entry.index - tail[0].index) :]
            if entry.index == (tail[-1].index if tail else saved.index) + 1 and is_same_log:
                tail.append(entry)
        return tail if not tail or tail[0].term >= saved.term else []

    def find_durable(self, group: int, image: GroupImage) -> None:
        """Note in the image what recovery would find now."""
        tail = self.tail(group, image)
        image.durable_terms = {entry.index: entry.term for entry in tail}
        image.durable_last = tail[-1].index if tail else image.checkpoint.index

    def drop_other_logs(self, group: int, image: GroupImage) -> None:
        """Recovery writes down what it chose: a START that came to nothing would hide later entries."""
        marker = image.start_marker
        logged = self._entries_of(group)
        if all(entry.kind != EntryKind.START for entry in logged) and marker is None:
            return
        kept = {id(entry) for entry in self._entries_since_start(group, image)}
        if self._holds(marker):
            kept.add(id(marker))
        else:
            image.start_marker = (
                None  # lost before it was durable: what the log holds is older than the checkpoint
            )
        self._flushes = [
            _with_entries(flush, [(o, e) for o, e in flush.entries if o != group or id(e) in kept])
            for flush in self._flushes
        ]

    def _entries_of(self, group: int) -> list[Entry]:
        return [entry for flush in self._flushes for owner, entry in flush.entries if owner == group]

    def _entries_since_start(self, group: int, image: GroupImage) -> list[Entry]:
        """What is of the checkpoint's log: behind its START marker, before one that never became durable."""
        entries = self._entries_of(group)
        if image.start_marker is not None:
            places = [place for place, entry in enumerate(entries) if entry is image.start_marker]
            if not places:
                return []
            entries = entries[places[0] + 1 :]
        starts = (place for place, entry in enumerate(entries) if entry.kind == EntryKind.START)
        return entries[: next(starts, len(entries))]


def blank(membership: Membership) -> StartState:
    """What a group begins with that has no entry yet, or none left."""
    return StartState(index=0, term=0, offset=0, membership=membership)


def without_group(flush: Flush, group: int) -> Flush:
    return _with_entries(flush, [(owner, entry) for owner, entry in flush.entries if owner != group])


def _with_entries(flush: Flush, entries: list[tuple[int, Entry]]) -> Flush:
    return Flush(number=flush.number, entries=entries, hard_states=flush.hard_states, last=flush.last)
