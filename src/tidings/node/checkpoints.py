"""Checkpoints: keeping the write-ahead log short, so that it can be reused and a start reads little.

Its one rule: a file of the write-ahead log is given up only when everything in it is in a saved checkpoint,
or stands again in a newer file by a flush that is durable. It must not know what the groups hold. Tests:
tests/node/test_checkpoints.py

One round: every group with entries in older files saves a checkpoint of what it has applied. Entries behind
that, its tail, are written to the log again (carried). When all are saved and carried, the files before the
round's first one are cut. A group that can save none just now keeps the log from being cut any further than
its own entries, and the next round asks it again; once the log is twice as long as it should be, a replica
that waits to be refilled has none any more, and one that is not open yet is carried.
"""

from __future__ import annotations

from typing import Protocol

from tidings.raft.outbox import Flush

_TOO_LONG_FACTOR = 2


class CheckpointOwner(Protocol):
    """What checkpoints ask of the node."""

    def save_checkpoint(self, group: int) -> int | None:
        """Give out the jobs that save what the group has applied; the index, or None where that cannot be
        done."""

    def is_carried(self, group: int, *, is_too_long: bool) -> bool:
        """Whether the log has to carry all of the group that is not in its files: they are never changed
        again, or, where the log is too long, nobody knows whether they will be."""
        ...

    def may_return(self, group: int) -> bool:
        """Whether the group is open, or may be opened: else nothing of it is needed."""
        ...

    def is_given_up(self, group: int) -> bool:
        """Whether the group is to be refilled by its leader, and a restart knows."""
        ...

    def last_index(self, group: int) -> int: ...

    def carry(self, group: int, first_index: int | None) -> int | None:
        """Write the group's entries from the index on (None: all that memory holds) again; the number of the
        flush, or None where memory does not hold them (then they are applied, and a new checkpoint covers
        them)."""

    def cut_log(self, below_file: int) -> None: ...


class Checkpoints:
    """What stands where in the write-ahead log, as far as cutting it needs to know."""

    def __init__(self, owner: CheckpointOwner, *, file_count_max: int, interval_ms: int, now_ms: int) -> None:
        self._owner = owner
        self._file_count_max = file_count_max
        self._interval_ms = interval_ms
        self._next_at_ms = now_ms + interval_ms
        self._oldest_by_group: dict[int, int] = {}  # group -> oldest file with entries that no checkpoint has
        self._file = 0  # the newest file that is known to be written
        self._oldest_file = 0
        self._boundary = 0  # of the round under way: files before this one are to be cut
        self._saving: dict[int, int] = {}  # group -> last index when its checkpoint was given out
        self._carrying: dict[int, int] = {}  # group -> flush that has its tail again

    def recovered(self, oldest_by_group: dict[int, int], oldest_file: int, file: int) -> None:
        """What recovery found in the log."""
        may_return = self._owner.may_return
        self._oldest_by_group = {group: at for group, at in oldest_by_group.items() if may_return(group)}
        self._oldest_file = oldest_file
        self._file = file

    @property
    def is_overfull(self) -> bool:
        """Whether the log has to get shorter before it gets longer."""
        return self._file - self._oldest_file > _TOO_LONG_FACTOR * self._file_count_max

    @property
    def _is_twice_as_long(self) -> bool:
        """As it should be: reached before it is overfull, so that what can be done is done before."""
        return self._file - self._oldest_file >= _TOO_LONG_FACTOR * self._file_count_max

    @property
    def is_under_way(self) -> bool:
        return bool(self._saving or self._carrying)

    def flushed(self, flush: Flush, file: int) -> None:
        """A flush is durable in the file."""
        self._file = file
        for group in flush.last:
            if not self._owner.may_return(group):
                continue  # removed while the flush was written
            self._oldest_by_group.setdefault(group, file)
            if group in self._carrying and flush.number >= self._carrying[group]:
                del self._carrying[group]
                self._oldest_by_group[group] = self._boundary
                self._end_round()

    def tick(self, now_ms: int) -> None:
        """Begin a round where the log is long, or old."""
        if self.is_under_way:
            return
        is_long = self._file - self._oldest_file >= self._file_count_max
        if now_ms < self._next_at_ms and not (is_long and self._boundary < self._file):
            return
        if not self._oldest_by_group and not is_long:
            return
        self._next_at_ms = now_ms + self._interval_ms
        self._boundary = self._file
        for group in list(self._oldest_by_group):
            self._save(group)
        self._end_round()

    def saved(self, group: int, index: int) -> None:
        """The group's checkpoint at the index is on disk."""
        last_index = self._saving.pop(group, None)
        if last_index is None:
            return
        if last_index <= index:
            self._settle(group, index)
        else:
            flush_number = self._owner.carry(group, index + 1)
            if flush_number is None:
                self._save(group)
            else:
                self._carrying[group] = flush_number
        self._end_round()

    def failed(self, group: int) -> None:
        """The group's files turned out to be damaged: what it was to save or carry may never come."""
        self._saving.pop(group, None)
        self._carrying.pop(group, None)
        self._end_round()

    def removed(self, group: int) -> None:
        """The group is gone for good."""
        self._oldest_by_group.pop(group, None)
        self.failed(group)

    def _save(self, group: int) -> None:
        """A group that is not open holds its files: the metadata has not named it yet, and only `removed`
        says that nothing of it is needed. So does one to be refilled: what it has may be the last copy."""
        last_index = self._owner.last_index(group)
        if self._owner.save_checkpoint(group) is not None:
            self._saving[group] = last_index
        elif self._is_twice_as_long and self._owner.is_given_up(group):
            del self._oldest_by_group[group]
        elif self._owner.is_carried(group, is_too_long=self._is_twice_as_long):
            flush_number = self._owner.carry(group, None)
            if flush_number is not None:
                self._carrying[group] = flush_number

    def _settle(self, group: int, index: int) -> None:
        """What came meanwhile stands in the round's first file, or in later ones."""
        if self._owner.last_index(group) > index:
            self._oldest_by_group[group] = self._boundary
        else:
            self._oldest_by_group.pop(group, None)

    def _end_round(self) -> None:
        if self.is_under_way or self._boundary <= self._oldest_file:
            return
        oldest_file = min([self._boundary, *self._oldest_by_group.values()])
        if oldest_file > self._oldest_file:
            self._oldest_file = oldest_file
            self._owner.cut_log(oldest_file)
