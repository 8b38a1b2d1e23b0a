"""A group's log as its replica knows it: the newest entries in memory, the terms of all of them.

The one rule: the window is contiguous in index and in offset, from `window_first` to `last_index`; what lies
before it (down to `start_index`) is in storage, and its terms are known from the epoch table, so nothing is
ever looked up there. It must not know what is committed or durable, nor who asks. Tests:
tests/raft/test_log.py

    entries          start_index | ....... in storage ....... | window_first ... last_index |
    epoch table      TermStart  TermStart              TermStart         TermStart
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from tidings.raft.entries import Entry, StartState, TermStart
from tidings.raft.errors import LogDiverged

# What an entry costs in memory and on the wire beside its payload.
ENTRY_OVERHEAD_BYTES = 64


class GroupLog:
    """Begins right behind a start state, with the tail that was recovered."""

    __slots__ = (
        "_bytes_before_window",
        "_bytes_up_to",
        "_newest_term_first",
        "_term_firsts",
        "last_index",
        "last_term",
        "next_offset",
        "start_index",
        "start_offset",
        "start_term",
        "terms",
        "window",
        "window_first",
    )

    def __init__(self, start: StartState, tail: Iterable[Entry] = ()) -> None:
        self.start_index = start.index
        self.start_term = start.term
        self.start_offset = start.offset
        self.terms: list[TermStart] = list(start.terms)
        if start.index and not self.terms:
            self.terms.append(TermStart(term=start.term, index=start.index, offset=start.offset))
        assert not self.terms or self.terms[-1].term == start.term, (start.term, self.terms[-1])
        assert not self.terms or self.terms[-1].index <= start.index, (start.index, self.terms[-1])
        self._term_firsts = [row.index for row in self.terms]
        self._newest_term_first = self._term_firsts[-1] if self.terms else 0
        self.window_first = start.index + 1
        self.window: list[Entry] = []
        # Bytes of all entries from the beginning of this object's life up to and including each one of the
        # window: the bytes between any two entries are one subtraction.
        self._bytes_up_to: list[int] = []
        self._bytes_before_window = 0
        self.last_index = start.index
        self.last_term = start.term
        self.next_offset = start.offset
        for entry in tail:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        """Put an entry behind the last one. Raises LogDiverged if it does not fit there."""
        term = entry.term
        if (
            entry.index != self.last_index + 1
            or entry.base_offset != self.next_offset
            or term < self.last_term
        ):
            raise LogDiverged(
                f"entry {entry.index} (term {term}, offset {entry.base_offset}) behind {self.last_index} "
                f"(term {self.last_term}, next offset {self.next_offset})"
            )
        if term != self.last_term:
            self.terms.append(TermStart(term=term, index=entry.index, offset=entry.base_offset))
            self._term_firsts.append(entry.index)
            self._newest_term_first = entry.index
            self.last_term = term
        ends = self._bytes_up_to
        before = ends[-1] if ends else self._bytes_before_window
        ends.append(before + len(entry.payload) + ENTRY_OVERHEAD_BYTES)
        self.window.append(entry)
        self.last_index = entry.index
        self.next_offset = entry.base_offset + entry.record_count

    def truncate(self, from_index: int) -> None:
        """Forget the entry at `from_index` and all behind it."""
        assert self.window_first <= from_index <= self.last_index, (
            self.window_first,
            from_index,
            self.last_index,
        )
        keep = from_index - self.window_first
        self.next_offset = self.window[keep].base_offset
        del self.window[keep:]
        del self._bytes_up_to[keep:]
        while self._term_firsts and self._term_firsts[-1] >= from_index:
            self._term_firsts.pop()
            self.terms.pop()
        self._newest_term_first = self._term_firsts[-1] if self.terms else 0
        self.last_index = from_index - 1
        self.last_term = self.terms[-1].term if self.terms else 0

    def term_at(self, index: int) -> int:
        """The term of the entry at an index, in memory or not; 0 before the first entry there ever was."""
        assert 0 <= index <= self.last_index, (index, self.last_index)
        if index >= self._newest_term_first:
            return self.last_term
        row = bisect_right(self._term_firsts, index)
        assert row or index == 0, (index, self._term_firsts)
        return self.terms[row - 1].term if row else 0

    def matches(self, index: int, term: int) -> bool:
        """Whether this log has the entry of that index and term (and so, by Log Matching, all before it)."""
        return index <= self.last_index and self.term_at(index) == term

    def newest_in_terms_up_to(self, index: int, term: int) -> int:
        """The newest index at or below `index` whose entry is of `term` or an older one."""
        index = min(index, self.last_index)
        row = bisect_right(self._term_firsts, index)
        while row and self.terms[row - 1].term > term:
            index = self.terms[row - 1].index - 1
            row -= 1
        return index

    def entry_at(self, index: int) -> Entry:
        assert self.window_first <= index <= self.last_index, (self.window_first, index, self.last_index)
        return self.window[index - self.window_first]

    def entries_from(self, first_index: int) -> list[Entry]:
        assert first_index >= self.window_first, (first_index, self.window_first)
        return self.window[first_index - self.window_first :]

    def entries_between(self, first_index: int, last_index: int) -> list[Entry]:
        assert first_index >= self.window_first, (first_index, self.window_first)
        return self.window[first_index - self.window_first : last_index + 1 - self.window_first]

    def entries_within(self, first_index: int, bytes_max: int) -> list[Entry]:
        """The entries from `first_index` on that fit into `bytes_max`, and at least one."""
        skipped = first_index - self.window_first
        assert 0 <= skipped < len(self.window), (first_index, self.window_first, self.last_index)
        ends = self._bytes_up_to
        bytes_end = (ends[skipped - 1] if skipped else self._bytes_before_window) + bytes_max
        if ends[-1] <= bytes_end:
            return self.window[skipped:]
        return self.window[skipped : max(bisect_right(ends, bytes_end), skipped + 1)]

    def bytes_between(self, after_index: int, up_to_index: int) -> int:
        """What the entries behind `after_index`, up to and including `up_to_index`, take; those not in memory
        nothing."""
        return self._bytes_end(up_to_index) - self._bytes_end(after_index)

    def find_offset(self, offset: int) -> Entry | None:
        """The entry in memory that holds the record at `offset`."""
        place = bisect_right(self.window, offset, key=_base_offset) - 1
        # An entry without records stands before the one that begins at its offset, so the last one is the
        # one.
        if place < 0 or offset >= self.window[place].next_offset:
            return None
        return self.window[place]

    def window_bytes(self) -> int:
        return self._bytes_end(self.last_index) - self._bytes_before_window

    def release(self, up_to_index: int) -> None:
        """Drop entries from memory; storage has them. Group.release() knows which may go."""
        count = min(up_to_index, self.last_index) + 1 - self.window_first
        if count > 0:
            self._bytes_before_window = self._bytes_up_to[count - 1]
            del self.window[:count]
            del self._bytes_up_to[:count]
            self.window_first += count

    def move_start(self, index: int, term: int, offset: int) -> None:
        """Storage holds nothing at or below `index` any more, or (on recovery) everything above it."""
        assert index <= self.last_index, (index, self.last_index)
        self.start_index = index
        self.start_term = term
        self.start_offset = offset
        self.release(index)
        # The row that `index` is in stays: its term is the one before the first entry left.
        stale = max(bisect_right(self._term_firsts, index) - 1, 0)
        del self.terms[:stale]
        del self._term_firsts[:stale]

    def move_start_to(self, index: int) -> None:
        """move_start() to an entry that is in memory."""
        self.move_start(index, self.term_at(index), self.entry_at(index).next_offset)

    def _bytes_end(self, index: int) -> int:
        place = index - self.window_first
        return self._bytes_up_to[place] if place >= 0 else self._bytes_before_window


def _base_offset(entry: Entry) -> int:
    return entry.base_offset
