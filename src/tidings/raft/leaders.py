"""Who leads which group, as far as this host knows, and a digest of it that two hosts can compare.

The one rule: the newest term wins, and within a term a leader once known stays. The table holds every group
that was ever heard of, member of it or not. Where this host has a replica, table and replica agree: if the
replica follows a leader, the table says so too; if the replica has seen a newer term, the table names no
leader. It must not know groups or messages. Tests: tests/raft/test_leaders.py

The digest of a member is the exclusive or of a 64-bit mix of (group, term) over all groups it leads. Both
ends keep it up to date with every change, so a beat costs the same for one group as for thousands.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


def mix(group: int, term: int) -> int:
    """A 64-bit number that two different (group, term) practically never share (the finalizer of
    splitmix64)."""
    x = (group * 0x9E3779B97F4A7C15 + term * 0xD1B54A32D192ED03 + 0x2545F4914F6CDD1D) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class LeaderTable:
    """group -> (leader, term); leader 0: none known in that term."""

    __slots__ = ("_digests", "table", "version")

    def __init__(self) -> None:
        self.version = 0  # another number whenever the table is another
        self.table: dict[int, tuple[int, int]] = {}
        self._digests: dict[int, int] = {}

    def learn(self, group: int, leader: int, term: int) -> None:
        """Take what was heard, unless something newer or better is known."""
        known_leader, known_term = self.table.get(group, (0, -1))
        if term > known_term or (term == known_term and leader and not known_leader):
            self._put(group, leader, term)

    def disown(self, group: int, leader: int) -> None:
        """The leader itself says that it does not lead the group."""
        known_leader, term = self.table.get(group, (0, -1))
        if known_leader == leader and leader:
            self._put(group, 0, term)

    def forget(self, group: int) -> None:
        leader, term = self.table.pop(group, (0, 0))
        self.version += 1
        if leader:
            self._digests[leader] ^= mix(group, term)

    def digest_of(self, leader: int) -> int:
        return self._digests.get(leader, 0)

    def led_by(self, leader: int) -> list[tuple[int, int]]:
        """(group, term) of all that a member leads."""
        return [(group, term) for group, (known, term) in self.table.items() if known == leader]

    def _put(self, group: int, leader: int, term: int) -> None:
        digests = self._digests
        old_leader, old_term = self.table.get(group, (0, 0))
        if old_leader:
            digests[old_leader] ^= mix(group, old_term)
        if leader:
            digests[leader] = digests.get(leader, 0) ^ mix(group, term)
        self.table[group] = (leader, term)
        self.version += 1
