"""What the consensus room refuses, one small tree split by blame.

The one rule: RaftError is somebody else's request or bytes that cannot be served; a mistake of our own is an
assertion. Tests: tests/raft/test_replication.py, tests/raft/test_membership.py, tests/raft/test_wire.py
"""

from __future__ import annotations


class RaftError(Exception):
    """The base of this room's errors."""


class NotLeader(RaftError):
    """This member does not lead the group, or is handing it over just now."""

    def __init__(self, group: int, leader: int) -> None:
        super().__init__(
            f"group {group} is led by member {leader}" if leader else f"group {group} has no leader known"
        )
        self.group = group
        self.leader = leader


class LogFull(RaftError):
    """More would wait for a majority than may: try again when some of it is committed."""


class MembershipRefused(RaftError):
    """The change is not a safe next step from the membership of now."""


class WireError(RaftError):
    """A peer's bytes are not messages of this format."""


class LogDiverged(RaftError):
    """A peer's entries agree with this log in index and term, but not in what follows from that: one of both
    logs is damaged. The replica must not go on with them."""
