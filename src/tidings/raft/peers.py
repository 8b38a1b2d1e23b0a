"""What a host knows of the other hosts: who is there, when each was last heard, who is known to be down.

The one rule: facts about hosts, shared by all groups of this one; what follows from them is each group's own
decision. Tests: tests/raft/test_beats.py
"""

from __future__ import annotations


class Peers:
    """The other members. All dicts keep the order of arrival, so that the same inputs give the same
    messages."""

    __slots__ = ("agreed_ms", "down", "excused_until_ms", "gone", "heard_ms", "known", "paused", "skipped")

    def __init__(self) -> None:
        self.known: dict[int, None] = {}
        # When the other host last confirmed that it leads all that this host believes it leads; and when it
        # last agreed with what this host leads. One says nothing about the other.
        self.heard_ms: dict[int, int] = {}
        self.agreed_ms: dict[int, int] = {}
        self.down: dict[int, None] = {}
        # After this host itself stood still: until then nobody's silence counts, what they said is unread.
        self.excused_until_ms = 0
        # Removed from the cluster: they vote in no group any more, and nothing waits for them.
        self.gone: dict[int, None] = {}
        # The transport to these is full, and groups that had something to send to them meanwhile.
        self.paused: dict[int, None] = {}
        self.skipped: dict[int, dict[int, None]] = {}

    def meet(self, member: int) -> None:
        if member not in self.gone:
            self.known[member] = None

    def forget(self, member: int) -> None:
        self.gone[member] = None
        for members in (self.known, self.heard_ms, self.agreed_ms, self.down, self.paused, self.skipped):
            members.pop(member, None)

    def agreed(self, member: int, at_ms: int) -> None:
        if at_ms > self.agreed_ms.get(member, 0):
            self.agreed_ms[member] = at_ms

    def skip(self, member: int, group: int) -> None:
        """Remember that a group had something for a paused member."""
        self.skipped.setdefault(member, {})[group] = None

    def resume(self, member: int) -> dict[int, None]:
        """The transport takes more again: the groups that waited for it."""
        self.paused.pop(member, None)
        return self.skipped.pop(member, {})
