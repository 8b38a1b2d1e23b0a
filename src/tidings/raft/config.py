"""The limits and times of consensus, each with its unit and reason.

The one rule: values only; whoever makes a host decides where they come from. Tests: tests/raft/test_config.py
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """What may be tuned. The defaults suit brokers in one data centre whose disks sync within some
    milliseconds."""

    # A leader that is silent for this long may be replaced; the random part keeps candidates from splitting
    # the vote.
    election_timeout_ms_min: int = 1000
    election_timeout_ms_max: int = 2000
    # Several beats fit into an election timeout, so that one that is lost or late changes nothing.
    beat_interval_ms: int = 150
    # One append's entries: large enough to use a disk's and a network's speed, small enough not to hold up
    # the others.
    append_bytes_max: int = 1 << 20
    # Sent and not yet answered, per follower and group: what a leader keeps in memory for a follower that
    # lags.
    inflight_bytes_max: int = 8 << 20
    # Proposed and not yet committed: without a majority a leader refuses more instead of filling its memory.
    uncommitted_bytes_max: int = 32 << 20
    # A piece of a start state: bounds what a receiver must hold beside other traffic.
    start_piece_bytes: int = 1 << 20
    # A start state larger than this is refused by its receiver: no owner makes one.
    start_bytes_max: int = 1 << 30
    # A hand-over of leadership that takes longer is given up, and the leader takes proposals again.
    transfer_timeout_ms: int = 1000

    def __post_init__(self) -> None:
        assert 0 < self.election_timeout_ms_min <= self.election_timeout_ms_max, self
        assert 0 < self.beat_interval_ms * 2 < self.election_timeout_ms_min, self
        assert self.append_bytes_max > 0, self
        assert self.inflight_bytes_max > 0, self
        assert self.uncommitted_bytes_max > 0, self
        assert 0 < self.start_piece_bytes <= self.start_bytes_max, self
        assert self.transfer_timeout_ms > 0, self
