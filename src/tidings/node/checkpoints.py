"""Checkpoints: keeping the write-ahead log short, so that it can be reused and a start reads little.

Its one rule: a file of the write-ahead log is given up only when everything in it is in a saved checkpoint,
or stands again in a newer file by a flush that is durable. It must not know what the groups hold. Tests:
tests/node/test_checkpoints.py

One round: every group with entries in older files saves a checkpoint of what it has applied. Entries behind
that, its tail, are written to the log again (carried). When all are saved and carried, the files before the
round's first one are cut.
"""

from __future__ import annotations

from typing import Protocol

from tidings.raft.outbox import Flush


class CheckpointOwner(Protocol):
    """What checkpoints ask of the node."""

    def save_checkpoint(self, group: int) -> int | None:
        """Give out the jobs that save what the group has applied; the index, or None where the group is
        gone."""

    def last_index(self, group: int) -> int: ...

    def carry(self, group: int, first_index: int) -> int | None:
        """Write the group's entries from the index on again; the number of the flush, or None where memory no
        longer holds them all (then they are applied, and a new checkpoint covers them)."""

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
        self._oldest_by_group = dict(oldest_by_group)
        self._oldest_file = oldest_file
        self._file = file

    @property
    def is_under_way(self) -> bool:
        return bool(self._saving or self._carrying)

    def flushed(self, flush: Flush, file: int) -> None:
        """A flush is durable in the file."""
        self._file = file
        for group in flush.last:
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
        if not is_long and (now_ms < self._next_at_ms or not self._oldest_by_group):
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

    def removed(self, group: int) -> None:
        """The group is gone for good."""
        self._oldest_by_group.pop(group, None)
        self._saving.pop(group, None)
        self._carrying.pop(group, None)

    def _save(self, group: int) -> None:
        """A group that is not open holds its files: the metadata has not named it yet, and only `removed`
        says that nothing of it is needed."""
        last_index = self._owner.last_index(group)
        if self._owner.save_checkpoint(group) is not None:
            self._saving[group] = last_index

    def _settle(self, group: int, index: int) -> None:
        if self._owner.last_index(group) > index:
            self._oldest_by_group[group] = (
                self._boundary
            )  # what came meanwhile stands in this file or later ones
        else:
            self._oldest_by_group.pop(group, None)

    def _end_round(self) -> None:
        if self.is_under_way or self._boundary <= self._oldest_file:
            return
        self._oldest_file = min([self._boundary, *self._oldest_by_group.values()])
        self._owner.cut_log(self._oldest_file)
