"""What the write-ahead log says of each group: its tail behind the checkpoint, its term and vote, its marks.

The one rule: an entry written at an index replaces whatever was at that index and behind it. So a tail that
was written again as a whole is harmless, and after damage a tail counts only from a record that makes
everything before it irrelevant.
It must not know where in which file a flush stands. Tests: tests/storage/test_wal_tails.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.raft.entries import Entry, EntryKind, HardState
from tidings.storage.wal_format import (
    ENTRY_KINDS_BELOW,
    FORGOTTEN,
    HARD_STATE,
    LAST_TERM,
    MARKS,
    RECORD,
    RECORD_BYTES,
    STATE,
    HeldFile,
    Mark,
    supersede,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedAt:
    """Where a group's checkpoint stands."""

    index: int
    term: int
    reset_sequence: int  # of the flush with the last start mark that was carried out; 0: none


NO_VOTE = HardState(term=0, vote=0)
NO_CHECKPOINT = CheckpointedAt(index=0, term=0, reset_sequence=0)


@dataclass(slots=True)
class GroupTail:
    """One group while the log is read."""

    checkpoint: CheckpointedAt
    tail: list[Entry] = field(default_factory=list)  # contiguous from checkpoint.index + 1
    # The same as if nothing had been lost, which is right where nobody ever replaced an entry: in a group of
    # one voter. None while nothing was lost.
    kept: list[Entry] | None = None
    beyond: Entry | None = None  # the newest entry behind a hole, to say how much is missing
    last_index: int = 0  # of the log, as the newest record says
    last_term: int = 0
    hard: HardState = NO_VOTE
    marks: Mark = Mark.NONE
    lost_log: str | None = None  # why the end of its log is not known
    lost_vote: str | None = None  # why its term and vote are not known
    is_ignoring: bool = False  # behind a start mark that was never carried out: nothing of this was promised

    def longest(self) -> list[Entry]:
        """All that can be had of the tail of a group that never had another voter."""
        return self.tail if self.kept is None else self.kept

    def problem(self) -> str | None:
        """Why this group is damaged, None if it is intact."""
        if self.lost_vote is not None:
            return f"its term and vote are not known: {self.lost_vote}"
        if self.lost_log is not None:
            return f"the end of its log is not known: {self.lost_log}"
        if Mark.DAMAGED in self.marks:
            return "it was damaged before and is not refilled yet"
        end = self.tail[-1] if self.tail else self.checkpoint
        if end.index < self.last_index or (end.index == self.last_index and end.term != self.last_term):
            return (
                f"its log ends at index {end.index} of term {end.term}, "
                f"but had reached index {self.last_index} of term {self.last_term}"
            )
        return None


class WalTails:
    """All groups while the log is read."""

    def __init__(self, checkpoints: Mapping[int, CheckpointedAt]) -> None:
        self.groups: dict[int, GroupTail] = {}
        self.files: list[HeldFile] = []
        self.resting: set[int] = set()  # groups whose checkpoint makes entries in these files needless
        self._file = HeldFile(number=0, file_bytes=0, last_index={})
        self._lost: str | None = None
        self.durable_sequence = 0  # of a flush that was durable before a checkpoint was made
        for group, checkpoint in checkpoints.items():
            self.groups[group] = _unheard_of(checkpoint)
            self.durable_sequence = max(self.durable_sequence, checkpoint.reset_sequence)

    def begin_file(self, file: HeldFile, *, is_opened: bool) -> None:
        self._file = file
        if file.number:
            self.files.append(file)
            self._lost = None  # its first flush names every group that is not new
        if is_opened:
            for tail in self.groups.values():
                tail.is_ignoring = False

    def lose_all(self, reason: str) -> None:
        """Flushes are missing here: they may have held anything."""
        self._lost = reason
        for tail in self.groups.values():
            tail.kept = tail.longest()
            tail.tail = []
            tail.lost_log = tail.lost_vote = reason

    def take_flush(self, sequence: int, body: bytes) -> None:
        position = 0
        end = len(body)
        unpack = RECORD.unpack_from
        while position < end:
            group, kind, record_count, length, index, term, base_offset = unpack(body, position)
            position += RECORD_BYTES
            tail = self.groups.get(group)
            if tail is None:
                tail = self._add(group)
            if kind < ENTRY_KINDS_BELOW and kind != EntryKind.START:
                if not tail.is_ignoring:
                    self._note_last(group, tail, index, term)
                    if index > tail.checkpoint.index:
                        payload = body[position : position + length]
                        _take_entry(tail, Entry(index, term, kind, base_offset, record_count, payload))
                    else:
                        self._take_covered_entry(group, tail)
            elif kind == EntryKind.START:
                self._take_start_mark(group, tail, sequence, index, term)
            elif kind == FORGOTTEN:
                self._forget(group, tail.checkpoint)
            else:
                if kind == STATE and index < tail.last_index and not tail.is_ignoring:
                    # What was written behind a start mark that was not carried out.
                    supersede(self.files[:-1], group, index + 1)
                payload = body[position : position + length]
                _take_state(tail, kind, payload, index, term, base_offset, record_count)
            position += length

    def _add(self, group: int) -> GroupTail:
        tail = self.groups[group] = GroupTail(NO_CHECKPOINT)
        tail.lost_vote = tail.lost_log = self._lost
        return tail

    def _forget(self, group: int, checkpoint: CheckpointedAt) -> None:
        for file in self.files:
            file.last_index.pop(group, None)
        if checkpoint is NO_CHECKPOINT:
            del self.groups[group]
        else:
            self.groups[group] = _unheard_of(checkpoint)

    def _take_covered_entry(self, group: int, tail: GroupTail) -> None:
        """An entry that the checkpoint covers: what was written behind it before is void all the same."""
        _begin_anew(tail)
        self.resting.add(group)

    def _take_start_mark(self, group: int, tail: GroupTail, sequence: int, index: int, term: int) -> None:
        """The whole log was replaced, if the checkpoint says that it came to that."""
        tail.is_ignoring = tail.checkpoint.reset_sequence < sequence
        if not tail.is_ignoring:
            self._note_last(group, tail, index, term)
            self._take_covered_entry(group, tail)
            tail.beyond = None

    def _note_last(self, group: int, tail: GroupTail, index: int, term: int) -> None:
        if index <= tail.last_index:
            supersede(self.files[:-1], group, index)
        tail.last_index = index
        tail.last_term = term
        self._file.last_index[group] = index


def _unheard_of(checkpoint: CheckpointedAt) -> GroupTail:
    tail = GroupTail(checkpoint)
    # A group at index 0 has never had a term; any other has one, and only the log holds it.
    tail.lost_vote = "the write-ahead log has no record of them" if checkpoint.index else None
    return tail


def _begin_anew(tail: GroupTail) -> None:
    """What comes replaces all that came before, lost or not."""
    tail.tail.clear()
    tail.kept = None
    tail.lost_log = None


def _take_entry(tail: GroupTail, entry: Entry) -> None:
    place = entry.index - tail.checkpoint.index - 1
    if place == 0:
        _begin_anew(tail)
    elif tail.kept is not None:
        _put(tail.kept, place, entry)
    if not _put(tail.tail, place, entry):
        tail.lost_log = f"entries before index {entry.index} are missing"
        if tail.beyond is None or entry.index > tail.beyond.index:
            tail.beyond = entry


def _put(entries: list[Entry], place: int, entry: Entry) -> bool:
    """The entry at its place, and nothing behind it; False where entries before it are missing."""
    if place > len(entries):
        return False
    if place < len(entries):
        del entries[place:]
    entries.append(entry)
    return True


def _take_state(
    tail: GroupTail, kind: int, payload: bytes, index: int, term: int, vote: int, marks: int
) -> None:
    if kind in (HARD_STATE, STATE):
        tail.hard = HardState(term=term, vote=vote)
        tail.lost_vote = None
    if kind in (MARKS, STATE):
        tail.marks = Mark(marks)
    if kind == STATE:
        tail.lost_log = None
        if not tail.is_ignoring:
            tail.last_index = index
            (tail.last_term,) = LAST_TERM.unpack(payload)
