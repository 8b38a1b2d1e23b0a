"""Recovered: what a group's files said at the start, and how the group begins from it.

Its one rule: a group that was never here begins with the members that the metadata names; one that was, with
what its files say; one whose files cannot be trusted, with nothing but its votes and its members, to be
refilled by its leader. Where it has no other voter to be refilled by, it begins with what can be read of it,
for reading only. It must not know files. Tests: tests/node/test_recovered.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidings.broker.cluster import METADATA_GROUP
from tidings.node.formation import Founding
from tidings.node.jobs import SegmentFacts
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost

_NO_HARD_STATE = HardState(term=0, vote=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredGroup:
    """One group. `start` is as of its checkpoint; `first` is where the log that storage can give begins (its
    index, term and offset)."""

    group: int
    start: StartState
    first: StartState
    tail: Sequence[Entry] = ()
    hard: HardState = _NO_HARD_STATE
    segments: Sequence[SegmentFacts] = ()
    has_files: bool = False
    is_doubtful: bool = False
    is_damaged: bool = False
    membership_index: int = 0  # of a damaged one: the index as of which its members are known
    is_read_only: bool = False  # damaged, and nobody else has it: nothing of it may be changed

    def add_to(self, host: RaftHost, now_ms: int) -> Group:
        return host.add(
            group=self.group,
            start=replace(self.start, index=self.membership_index) if self.is_damaged else self.start,
            hard=self.hard,
            tail=list(self.tail),
            first_index=self.first.index + 1,
            first_offset=self.first.offset,
            doubtful=self.is_doubtful,
            damaged=self.is_damaged,
            now_ms=now_ms,
        )

    def emptied(self) -> RecoveredGroup:
        """What a replica goes on with whose files cannot be trusted: its votes and its membership, and no
        log."""
        start = StartState(index=0, term=0, offset=0, membership=self.start.membership)
        return replace(
            self,
            start=start,
            first=start,
            tail=(),
            segments=(),
            is_damaged=True,
            is_read_only=False,
            membership_index=max(self.start.index, self.membership_index),
        )


def begin_group(
    recovered: RecoveredGroup | None, group: int, founders: tuple[int, ...], *, member: int
) -> RecoveredGroup:
    """The group from its files, or a new one with these voters. A young one has entries in the write-ahead
    log, and no files that say who its members are."""
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=founders))
    if recovered is None:
        return RecoveredGroup(group=group, start=start, first=start)
    if not recovered.has_files:
        recovered = replace(recovered, start=start, first=start)
    if not recovered.is_damaged:
        return recovered
    if _voters_of(recovered) == (member,):
        return replace(recovered, is_damaged=False, is_doubtful=False, is_read_only=True)
    return recovered.emptied()


def begin_metadata(recovered: RecoveredGroup | None, founding: Founding, *, member: int) -> RecoveredGroup:
    """Metadata of which nothing can be read is never begun anew: the groups on the disk would become those of
    other topics."""
    begin = begin_group(recovered, METADATA_GROUP, founding.membership().voters, member=member)
    is_empty = begin.start.index == 0 and not begin.tail
    return begin.emptied() if begin.is_read_only and is_empty else begin


def _voters_of(recovered: RecoveredGroup) -> tuple[int, ...]:
    """As far as its files can tell."""
    membership = recovered.start.membership
    for entry in recovered.tail:
        if entry.kind == EntryKind.MEMBERSHIP:
            membership = Membership.decode(entry.payload)
    return membership.voters
