"""What members tell each other. Values without behaviour; their bytes are in wire.py.

The one rule: `term` is the sender's own term, whatever the message is about, so a higher one always tells the
receiver that it is behind. A message is never changed after it was made; the classes are not frozen because
they are made on the hot path. Tests: tests/raft/test_wire.py
"""

from __future__ import annotations

from tidings.raft.entries import Entry, EntryKind

NO_GROUP = 0  # messages between hosts are about no group; the field is there so that all messages look alike


class Message:
    """The head of every message: which group, in which term, from whom to whom (members)."""

    __slots__ = ("group", "receiver", "sender", "term")

    def __init__(self, group: int, term: int, sender: int, receiver: int) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver

    def fields(self) -> dict[str, object]:
        names = [name for kind in reversed(type(self).__mro__) for name in getattr(kind, "__slots__", ())]
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and type(self) is type(other) and self.fields() == other.fields()

    __hash__ = None  # type: ignore[assignment]  # equal by value and held in no set: identity would mislead

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.fields().items())
        return f"{type(self).__name__}({fields})"


class VoteRequest(Message):
    """A candidate asks for a vote in `asked_term`: its own term, or in a pre-vote the one it would enter."""

    __slots__ = ("is_transfer", "last_index", "last_term", "pre")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        pre: bool,
        last_index: int,
        last_term: int,
        is_transfer: bool,
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.pre = pre
        self.last_index = last_index
        self.last_term = last_term
        self.is_transfer = (
            is_transfer  # the leader itself wants to be replaced: its being alive is no obstacle
        )

    @property
    def asked_term(self) -> int:
        return self.term + 1 if self.pre else self.term


class VoteReply(Message):
    """`asked_term` ties the answer to its question."""

    __slots__ = ("asked_term", "granted", "pre")

    def __init__(
        self, group: int, term: int, sender: int, receiver: int, pre: bool, granted: bool, asked_term: int
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.pre = pre
        self.granted = granted
        self.asked_term = asked_term


class Append(Message):
    """The leader's entries that follow `prev_index`; without entries a probe, a commit notice or a read's
    question."""

    __slots__ = ("commit_index", "entries", "prev_index", "prev_term", "read_context", "session")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        prev_index: int,
        prev_term: int,
        commit_index: int,
        entries: list[Entry],
        read_context: int,
        session: int,
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.prev_index = prev_index
        self.prev_term = prev_term
        self.commit_index = commit_index
        self.entries = entries
        self.read_context = read_context  # 0: no read waits; echoed
        self.session = (
            session  # echoed: the leader knows replies from before the follower lost what it promised
        )


class AppendReply(Message):
    """What the follower holds now. `prev_index`, `read_context` and `session` are the append's.

    accepted: `match_index` is durable when this leaves, `hint_index` agrees with the leader's log.
    refused: `hint_index` is the newest entry that may agree, judging by its term `hint_term`.
    """

    __slots__ = (
        "accepted",
        "commit_index",
        "counts",
        "hint_index",
        "hint_term",
        "match_index",
        "needs_start",
        "prev_index",
        "read_context",
        "session",
    )

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        accepted: bool,
        prev_index: int,
        match_index: int,
        hint_index: int,
        hint_term: int,
        commit_index: int,
        needs_start: bool,
        counts: bool,
        read_context: int,
        session: int,
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.accepted = accepted
        self.prev_index = prev_index
        self.match_index = match_index
        self.hint_index = hint_index
        self.hint_term = hint_term
        self.commit_index = commit_index
        self.needs_start = needs_start  # the log is gone: only a start state helps
        self.counts = (
            counts  # False: the sender may have forgotten a promise, so nothing may rest on this reply
        )
        self.read_context = read_context
        self.session = session


class InstallStart(Message):
    """A piece of an encoded StartState, the one at `start_index` and `start_term`."""

    __slots__ = ("piece", "piece_offset", "session", "start_index", "start_term", "total_bytes")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        start_index: int,
        start_term: int,
        piece_offset: int,
        total_bytes: int,
        piece: bytes,
        session: int,
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.start_index = start_index
        self.start_term = start_term
        self.piece_offset = piece_offset
        self.total_bytes = total_bytes
        self.piece = piece
        self.session = session


class InstallReply(Message):
    """Which byte of the start state is wanted next; `installed` once it is durable, or was not needed."""

    __slots__ = ("installed", "next_offset", "session", "start_index")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        start_index: int,
        next_offset: int,
        installed: bool,
        session: int,
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.start_index = start_index
        self.next_offset = next_offset
        self.installed = installed
        self.session = session


class TimeoutNow(Message):
    """The leader hands over: stand for election at once."""

    __slots__ = ()


class DoubtRequest(Message):
    """A member that may have forgotten promises asks what was promised. `phase` 1: stop counting on what I
    said before; 2: what do you hold? `round_number` tells one life of the asker from another."""

    __slots__ = ("phase", "round_number")

    def __init__(
        self, group: int, term: int, sender: int, receiver: int, round_number: int, phase: int
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.round_number = round_number
        self.phase = phase


class DoubtReply(Message):
    """What the sender holds, all of it durable: its term, its newest entry, and who votes as far as it knows:
    (index, voters) as of its commit index, then of every membership behind that; none at all: it holds
    nothing of the group."""

    __slots__ = ("electorates", "last_index", "last_term", "phase", "round_number")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        round_number: int,
        phase: int,
        last_index: int,
        last_term: int,
        electorates: tuple[tuple[int, tuple[int, ...]], ...],
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.round_number = round_number
        self.phase = phase
        self.last_index = last_index
        self.last_term = last_term
        self.electorates = electorates


class Beat(Message):
    """Between hosts: the sender lives and leads what `digest` sums up (leaders.py). `sent_ms`: its own clock,
    echoed."""

    __slots__ = ("digest", "sent_ms")

    def __init__(self, group: int, term: int, sender: int, receiver: int, sent_ms: int, digest: int) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.sent_ms = sent_ms
        self.digest = digest


class BeatReply(Message):
    """Whether the receiver of the beat believes the same."""

    __slots__ = ("matches", "sent_ms")

    def __init__(
        self, group: int, term: int, sender: int, receiver: int, sent_ms: int, matches: bool
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.sent_ms = sent_ms
        self.matches = matches


class Led(Message):
    """Between hosts: (group, term) that the sender leads: all of them, or those that are new."""

    __slots__ = ("is_complete", "leads", "sent_ms")

    def __init__(
        self,
        group: int,
        term: int,
        sender: int,
        receiver: int,
        sent_ms: int,
        is_complete: bool,
        leads: list[tuple[int, int]],
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.sent_ms = sent_ms
        self.is_complete = is_complete
        self.leads = leads


class LedReply(Message):
    """The (group, term) of the list that are out of date, with the newer term known."""

    __slots__ = ("outdated", "sent_ms")

    def __init__(
        self, group: int, term: int, sender: int, receiver: int, sent_ms: int, outdated: list[tuple[int, int]]
    ) -> None:
        self.group = group
        self.term = term
        self.sender = sender
        self.receiver = receiver
        self.sent_ms = sent_ms
        self.outdated = outdated


def brings_records(message: Message) -> bool:
    """Whether an entry in it would take room that grows with what is produced."""
    return isinstance(message, Append) and any(entry.kind == EntryKind.RECORDS for entry in message.entries)
