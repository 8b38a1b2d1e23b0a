"""Who is a member of a group, as its log says.

The one rule: a membership counts from the moment its entry is in the log, committed or not, and no longer
once the entry is truncated (Raft dissertation 4.1). So the history stands beside the log and is cut with it.
It must not know terms or messages. Tests: tests/raft/test_membership.py
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.raft.entries import Entry, EntryKind, Membership
from tidings.raft.errors import MembershipRefused


def majority(voter_count: int) -> int:
    return voter_count // 2 + 1


class MembershipHistory:
    """The memberships of a log from its start on, each with the index of its entry."""

    __slots__ = ("_indexes", "_memberships")

    def __init__(self, start_index: int, membership: Membership, tail: Iterable[Entry] = ()) -> None:
        self._indexes = [start_index]
        self._memberships = [membership]
        for entry in tail:
            if entry.kind == EntryKind.MEMBERSHIP:
                self.add(entry.index, Membership.decode(entry.payload))

    @property
    def newest(self) -> Membership:
        return self._memberships[-1]

    @property
    def newest_index(self) -> int:
        return self._indexes[-1]

    def add(self, index: int, membership: Membership) -> None:
        assert index > self._indexes[-1], (index, self._indexes)
        self._indexes.append(index)
        self._memberships.append(membership)

    def truncate(self, from_index: int) -> bool:
        """Forget what was said at `from_index` and behind it. True if that changes who is a member now."""
        before = len(self._indexes)
        while self._indexes[-1] >= from_index:
            self._indexes.pop()
            self._memberships.pop()
        return len(self._indexes) < before

    def has_voted(self, member: int) -> bool:
        """Whether a member is a voter, or was one as far as this history goes back."""
        return any(member in membership.voters for membership in self._memberships)

    def electorates(self, commit_index: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(index, voters): as of the commit index, then of every membership behind it."""
        pairs = zip(self._indexes, self._memberships, strict=True)
        later = [(index, membership.voters) for index, membership in pairs if index > commit_index]
        return ((commit_index, self.at(commit_index).voters), *later)

    def at(self, index: int) -> Membership:
        """The membership as of an entry; the oldest one known for entries before the history."""
        for place in range(len(self._indexes) - 1, 0, -1):
            if self._indexes[place] <= index:
                return self._memberships[place]
        return self._memberships[0]


def check_step(now: Membership, then: Membership) -> None:
    """Raises MembershipRefused unless majorities of both memberships always share a voter."""
    voters_now, voters_then = dict.fromkeys(now.voters), dict.fromkeys(then.voters)
    if not voters_then:
        raise MembershipRefused("a group has at least one voter")
    if len(voters_then) < len(then.voters) or len(dict.fromkeys(then.learners)) < len(then.learners):
        raise MembershipRefused(f"a member is named twice: {then}")
    if any(learner in voters_then for learner in then.learners) or 0 in voters_then or 0 in then.learners:
        raise MembershipRefused(f"a member either votes or listens, and none has the number 0: {then}")
    changed = [
        voter for voter in (*now.voters, *then.voters) if (voter in voters_now) != (voter in voters_then)
    ]
    if len(changed) > 1:
        raise MembershipRefused(f"one voter at a time: {now.voters} to {then.voters}")
