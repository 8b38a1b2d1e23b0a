"""What a group's log is made of: entries, the membership they may carry, and the state a log starts from.

The one rule: two numbers, both explicit. `index` counts entries (Raft), `offset` counts records (Kafka); a
term-start or a membership entry takes an index and no offset. Nothing here knows what a payload means.
Tests: tests/raft/test_entries.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

_U16 = struct.Struct("<H")
_MEMBER = struct.Struct("<Q")
LOG_START_BYTES = 8  # the payload of such an entry


class EntryKind(IntEnum):
    """What an entry carries."""

    RECORDS = 0  # a Kafka record batch; the only kind that takes offsets
    TERM_START = 1  # empty: the first entry of every term (Raft 5.4.2, section 8)
    MEMBERSHIP = 2  # an encoded Membership: effective as soon as it is appended (Raft dissertation 4.1)
    LOG_START = 3  # a move of the log start: i64 little endian, the new first readable offset
    COMMAND = 4  # a command of the metadata group's state machine
    # No entry of the log: tells the write-ahead log that a start state at this index and term replaced the
    # group's whole log. Put into the outbox when the start is taken, before any entry of the new log.
    START = 5


@dataclass(slots=True)
class Entry:
    """One entry of a group's log. Never changed after it was made; not frozen for the hot path's sake."""

    index: int
    term: int
    kind: int
    base_offset: int  # offset of the first record; for kinds without records: the offset of the next record
    record_count: int  # 0 for every kind but RECORDS
    payload: bytes

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.record_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who votes and who only listens. Members are numbers drawn from a broker's directory uuid: a wiped disk
    is another number, so the member that lost its votes can never be taken for the one that gave them."""

    voters: tuple[int, ...]
    learners: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """u16 voter count | u16 learner count | u64 per voter | u64 per learner, little endian."""
        members = b"".join(map(_MEMBER.pack, (*self.voters, *self.learners)))
        return _U16.pack(len(self.voters)) + _U16.pack(len(self.learners)) + members

    @staticmethod
    def decode(payload: bytes) -> Membership:
        (voter_count,) = _U16.unpack_from(payload, 0)
        (learner_count,) = _U16.unpack_from(payload, 2)
        if len(payload) != 4 + 8 * (voter_count + learner_count):
            raise ValueError(f"membership of {voter_count}+{learner_count} members in {len(payload)} bytes")
        members = tuple(number for (number,) in _MEMBER.iter_unpack(payload[4:]))
        return Membership(voters=members[:voter_count], learners=members[voter_count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStart:
    """A row of the epoch table: the first index and the first offset of a term."""

    term: int
    index: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartState:
    """All that a log needs to go on without the entries up to and including `index`.

    `offset` is the offset of the next record. `state` is what the owner of the log derived from the entries
    so far (producers of a partition, the whole state of the metadata group), opaque here.
    """

    index: int
    term: int
    offset: int
    membership: Membership
    log_start_offset: int = 0
    terms: tuple[TermStart, ...] = ()
    state: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardState:
    """What must be on disk before it is acted upon: the newest term seen and the vote given in it (or 0)."""

    term: int
    vote: int
