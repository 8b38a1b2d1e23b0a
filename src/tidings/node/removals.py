"""Removals: groups whose topic was deleted, from the command to the end of their files.

Its one rule: files go when a checkpoint of the metadata holds the command that removed them, not before: a
start from an older one opens the group again for a moment, and must find the log that it had, not a blank one
that contradicts the other replicas'. It must not know what else a removal means. Tests:
tests/node/test_removals.py
"""

from __future__ import annotations

from typing import Protocol

from tidings.broker.cluster import METADATA_GROUP
from tidings.node.checkpoints import Checkpoints
from tidings.node.jobs import RemoveGroup, StorageJob


class RemovalsOwner(Protocol):
    """What removals ask of their node."""

    checkpoints: Checkpoints

    def metadata_index(self) -> int: ...
    def save_checkpoint(self, group: int) -> int | None: ...
    def store(self, job: StorageJob) -> None: ...


class Removals:
    """Groups that are closed and not yet removed."""

    def __init__(self, owner: RemovalsOwner, *, saved_index: int) -> None:
        self._owner = owner
        self._index_by_group: dict[int, int] = {}  # of the metadata, when the group was removed from it
        self._saved_index = saved_index  # of the metadata's newest checkpoint
        self._asked_index = saved_index  # of the one that is being saved

    def __contains__(self, group: int) -> bool:
        return group in self._index_by_group

    def __bool__(self) -> bool:
        return bool(self._index_by_group)

    def add(self, group: int) -> None:
        """The metadata, as far as it is applied here, has removed the group."""
        index = self._owner.metadata_index()
        self._index_by_group[group] = index
        if index <= self._saved_index:
            self._remove_saved()

    def metadata_saved(self, index: int) -> None:
        """A checkpoint of the metadata at this index is durable."""
        self._saved_index = max(self._saved_index, index)
        self._remove_saved()

    def tick(self) -> None:
        """Have a checkpoint made for them, as soon as one can be."""
        if max(self._index_by_group.values(), default=0) > self._asked_index:
            index = self._owner.save_checkpoint(METADATA_GROUP)
            if index is not None:
                self._asked_index = index

    def _remove_saved(self) -> None:
        saved = [group for group, index in self._index_by_group.items() if index <= self._saved_index]
        for group in saved:
            del self._index_by_group[group]
            self._owner.checkpoints.removed(group)
            self._owner.store(RemoveGroup(group=group))
