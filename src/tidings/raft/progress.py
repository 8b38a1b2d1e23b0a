"""What a leader knows of one follower, and how it sends to it.

The one rule: `match_index` is what the follower said is on its disk; `next_index` is a guess. The guess is
probed before it is relied upon, and relied upon until it is refused or nothing is heard for too long. Tests:
tests/raft/test_replication.py

    PROBE      one append at a time, until one is accepted     -> REPLICATE
    REPLICATE  appends follow each other within a window       -> PROBE (refused, silent, connection lost)
    START      the follower needs a start state, in pieces     -> PROBE (installed)
"""

from __future__ import annotations

from enum import IntEnum


class ProgressState(IntEnum):
    PROBE = 0
    REPLICATE = 1
    START = 2


class StartSending:
    """A start state on its way to a follower, piece by piece."""

    __slots__ = ("encoded", "next_offset", "start_index", "start_term")

    def __init__(self, encoded: bytes, start_index: int, start_term: int) -> None:
        self.encoded = encoded
        self.start_index = start_index
        self.start_term = start_term
        self.next_offset = 0  # the byte that the follower asked for last


class Progress:
    """One follower, voter or learner. Plain fields: the hot path reads and writes them directly."""

    __slots__ = (
        "behind_since_ms",
        "commit_index",
        "counted_index",
        "goal_index",
        "goal_ms",
        "is_voter",
        "is_waiting",
        "last_ack_ms",
        "match_index",
        "member",
        "next_index",
        "read_acked",
        "read_failed",
        "sending",
        "sent_commit",
        "session",
        "state",
        "unanswered_since_ms",
    )

    def __init__(self, member: int, next_index: int, is_voter: bool, now_ms: int) -> None:
        self.member = member
        self.is_voter = is_voter
        self.state = ProgressState.PROBE
        self.match_index = 0
        self.counted_index = 0  # match_index, as far as a majority may rest on it (AppendReply.counts)
        self.next_index = next_index
        self.is_waiting = False  # a probe is unanswered, or entries are being read: send nothing meanwhile
        self.sent_commit = 0  # the commit index last told
        self.commit_index = 0  # the commit index last acknowledged
        self.read_failed = False  # storage could not read what it needs: ask again at the next tick
        self.read_acked = 0  # newest read round that the follower confirmed
        self.session = 0  # raised when the follower may have lost what it acknowledged before
        self.sending: StartSending | None = None
        self.last_ack_ms = now_ms  # a new leader's followers have a timeout's grace
        self.unanswered_since_ms: int | None = (
            None  # when the oldest append was sent that nothing was heard since
        )
        # While behind: the moment as of which it held all that was committed; 0: it holds all.
        self.behind_since_ms = 0
        self.goal_index = 0  # reaching this index means having caught up with the commit index of `goal_ms`
        self.goal_ms = 0

    def probe(self) -> None:
        """What was sent may be lost: ask whether it is there. A refusal says how far to go back."""
        self.state = ProgressState.PROBE
        self.is_waiting = False
        self.read_failed = False
        self.sent_commit = 0
        self.unanswered_since_ms = None
        self.sending = None

    def replicate(self) -> None:
        self.state = ProgressState.REPLICATE
        self.is_waiting = False
        self.sending = None

    def want_start(self) -> None:
        self.state = ProgressState.START
        self.is_waiting = False
        self.sending = None
        self.unanswered_since_ms = None

    def forget_promises(self) -> None:
        """The follower may have lost what it acknowledged: nothing it said before counts any more."""
        self.session += 1
        self.match_index = self.counted_index = self.commit_index = self.read_acked = 0
        self.probe()

    def committed(self, commit_index: int, now_ms: int) -> None:
        """The group's commit index moved past what this follower has."""
        if not self.behind_since_ms:
            self.behind_since_ms = self.goal_ms = now_ms
            self.goal_index = commit_index

    def measure_lag(self, commit_index: int, now_ms: int) -> None:
        """The follower answered: note how far behind in time it is."""
        if self.match_index >= commit_index:
            self.behind_since_ms = 0
        elif self.match_index >= self.goal_index:
            self.behind_since_ms = self.goal_ms
            self.goal_index = commit_index
            self.goal_ms = now_ms
