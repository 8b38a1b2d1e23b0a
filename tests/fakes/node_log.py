"""A broker's write-ahead log in memory: numbered files of flushes, and what a restart reads from them.

What it keeps is durable; a flush that is not written yet is lost in a crash, as a torn last one is. The rules
are those of storage/wal_tails.py: an entry replaces its index and all behind it, a start mark counts once a
checkpoint answers it, and a log that ends before its newest entry is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.raft.entries import Entry, EntryKind, HardState
from tidings.raft.outbox import Flush


@dataclass(frozen=True, slots=True, kw_only=True)
class FakePlace:
    """Where a flush stands."""

    file_number: int
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedAt:
    """Where a group's checkpoint stands, and the start mark that it answers (the flush's sequence number)."""

    index: int
    term: int
    reset_sequence: int


NO_CHECKPOINT = CheckpointedAt(index=0, term=0, reset_sequence=0)


@dataclass(slots=True)
class _LogFile:
    """One file. The first of each life of the process makes earlier start marks in vain for good. Each begins
    with `last`, by group the index and term of the newest entry written before it."""

    number: int
    begins_life: bool
    last: dict[int, tuple[int, int]]
    flushes: list[tuple[int, Flush]] = field(default_factory=list)  # (sequence, flush)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTail:
    """What the log says of one group behind its checkpoint. `problem` says why the group is damaged."""

    entries: list[Entry]
    last: tuple[int, int]  # index and term of the newest entry; of the newest ever, where there is a problem
    problem: str | None
    oldest_file: int | None  # the first file with an entry that the checkpoint does not hold


class FakeLog:
    """The write-ahead log of one broker."""

    def __init__(self, *, flushes_per_file: int) -> None:
        self.hard_states: dict[int, HardState] = {}
        self.is_doubtful = False
        self.flushes_per_file = flushes_per_file
        self._last: dict[int, tuple[int, int]] = {}
        self._forgotten: set[int] = set()  # durable with the next flush
        self._forgotten_later: set[int] = set()  # with the one after it
        self._files = [_LogFile(number=1, begins_life=True, last={})]
        self._next_sequence = 1

    @property
    def oldest_file(self) -> int:
        return self._files[0].number

    @property
    def newest_file(self) -> int:
        return self._files[-1].number

    def groups(self) -> set[int]:
        """The groups that a start would find, or does not know any more once the next flush is durable."""
        return {*self.hard_states, *self._last} - self._forgotten - self._forgotten_later

    def begin_life(self, last: Mapping[int, tuple[int, int]]) -> None:
        """A process starts, with groups that end where it has found: it writes into a file of its own. What
        was not written is gone."""
        self._forgotten.clear()
        self._forgotten_later.clear()
        self._last = dict(last)
        self._begin_file(begins_life=True)

    def write(self, flush: Flush) -> FakePlace:
        for group in self._forgotten:
            self._scrub(group)
        self._forgotten, self._forgotten_later = self._forgotten_later, set()
        newest = self._files[-1]
        if len(newest.flushes) >= self.flushes_per_file:
            newest = self._begin_file(begins_life=False)
        newest.flushes.append((self._next_sequence, flush))
        self._next_sequence += 1
        self._last.update(flush.last)
        self.hard_states.update(flush.hard_states)
        return FakePlace(file_number=newest.number, sequence=self._next_sequence - 1)

    def cut(self, below_file: int) -> None:
        while len(self._files) > 1 and self._files[0].number < below_file:
            del self._files[0]

    def forget(self, group: int, *, is_writing: bool) -> None:
        """Nothing of the group is needed any more; the next flush that is begun says so."""
        (self._forgotten_later if is_writing else self._forgotten).add(group)

    def read(self, group: int, checkpoint: CheckpointedAt) -> ReadTail:
        """What a start that happens now reads of the group."""
        tail: list[Entry] = []
        hole: str | None = None
        oldest_by_index: dict[int, int] = {}  # index -> file, of entries that no later one replaced
        is_ignoring = False
        last = (0, 0)
        for file in self._files:
            is_ignoring = is_ignoring and not file.begins_life
            if not is_ignoring:
                last = file.last.get(group, last)
            for sequence, flush in file.flushes:
                for entry in [entry for owner, entry in flush.entries if owner == group]:
                    if entry.kind == EntryKind.START:
                        is_ignoring = checkpoint.reset_sequence < sequence
                    if is_ignoring:
                        continue
                    last = (entry.index, entry.term)
                    for index in [index for index in oldest_by_index if index >= entry.index]:
                        del oldest_by_index[index]
                    if entry.kind == EntryKind.START or entry.index <= checkpoint.index:
                        tail, hole = [], None
                        continue
                    oldest_by_index[entry.index] = file.number
                    place = entry.index - checkpoint.index - 1
                    if place > len(tail):
                        hole = f"entries before index {entry.index} are missing"
                        continue
                    hole = hole if place else None
                    tail[place:] = [entry]
        end = (tail[-1].index, tail[-1].term) if tail else (checkpoint.index, checkpoint.term)
        problem = hole or _problem(end, last)
        return ReadTail(
            entries=tail,
            last=last if problem else end,
            problem=problem,
            oldest_file=min(oldest_by_index.values(), default=None),
        )

    def _begin_file(self, *, begins_life: bool) -> _LogFile:
        file = _LogFile(number=self.newest_file + 1, begins_life=begins_life, last=dict(self._last))
        self._files.append(file)
        return file

    def _scrub(self, group: int) -> None:
        for file in self._files:
            file.last.pop(group, None)
            file.flushes = [(sequence, _without(flush, group)) for sequence, flush in file.flushes]
        self.hard_states.pop(group, None)
        self._last.pop(group, None)


def _problem(end: tuple[int, int], last: tuple[int, int]) -> str | None:
    if end[0] < last[0] or (end[0] == last[0] and end[1] != last[1]):
        return f"the log ends at {end}, but had reached {last}"
    return None


def _without(flush: Flush, group: int) -> Flush:
    return Flush(
        number=flush.number,
        entries=[held for held in flush.entries if held[0] != group],
        hard_states={owner: state for owner, state in flush.hard_states.items() if owner != group},
        last={owner: last for owner, last in flush.last.items() if owner != group},
    )
