"""The work that all groups of a host put down for its owner: what to send, to save, to read, to tell.

The one rule: a message leaves when what it promises is durable. Work is saved in numbered flushes, in order;
a message that rests on flush N waits here until N is durable. Everything is kept in order of arrival, so the
same inputs give the same work. It must not know what a message or an entry means. Tests:
tests/raft/test_outbox.py
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tidings.raft.entries import Entry, HardState, StartState
from tidings.raft.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """One write to the write-ahead log. A log entry replaces what the log holds at its index and all behind
    it."""

    number: int
    entries: list[tuple[int, Entry]]  # (group, entry)
    hard_states: dict[int, HardState]
    last: dict[int, tuple[int, int]]  # by group: index and term of the last one of `entries`


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEntries:
    """A follower needs entries that are no longer in memory. Answer: Group.entries_read()."""

    group: int
    member: int
    first_index: int
    bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWanted:
    """A follower needs a start state: it is new, damaged, or below the log start. Answer:
    Group.give_start()."""

    group: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInstalled:
    """This replica's log was replaced. The owner replaces its storage and state, then calls
    RaftHost.start_installed()."""

    group: int
    start: StartState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfirmed:
    """The answer to Group.read_index(): a read is linearizable once `index` is applied; None: ask who leads
    now."""

    group: int
    context: int
    index: int | None


class Outbox:
    """One per host. The owner takes the lists and dicts and leaves empty ones; `seal` takes what a flush is
    made of."""

    __slots__ = (
        "_waiting",
        "advanced",
        "changed",
        "collecting_flush",
        "dirty",
        "durable_flush",
        "entries",
        "hard_states",
        "lagging",
        "led",
        "messages",
        "reads",
        "reads_confirmed",
        "settled",
        "starts_installed",
        "starts_wanted",
    )

    def __init__(self) -> None:
        self.messages: list[Message] = []  # may leave at once
        self.collecting_flush = 1
        self.durable_flush = 0
        self.entries: list[tuple[int, Entry]] = []
        self.hard_states: dict[int, HardState] = {}
        # Sets of groups, as dicts because those keep their order.
        self.advanced: dict[int, None] = {}  # the commit index moved, or on the leader the durable index
        self.changed: dict[int, None] = {}  # role, leader, term or membership is another
        self.settled: dict[
            int, None
        ] = {}  # neither doubtful nor damaged any more: storage may forget its mark
        self.reads: list[ReadEntries] = []
        self.starts_wanted: list[StartWanted] = []
        self.starts_installed: list[StartInstalled] = []
        self.reads_confirmed: list[ReadConfirmed] = []
        # For the host itself: groups with something to send at the next flush, with a leadership to announce
        # then, or with a commit to tell at the next tick.
        self.dirty: dict[int, None] = {}
        self.led: dict[int, None] = {}
        self.lagging: dict[int, None] = {}
        self._waiting: dict[int, list[Message]] = {}

    def send_after(self, flush: int, message: Message) -> None:
        """Send a message as soon as a flush is durable."""
        if flush <= self.durable_flush:
            self.messages.append(message)
        elif flush in self._waiting:
            self._waiting[flush].append(message)
        else:
            self._waiting[flush] = [message]

    def seal(self) -> Flush | None:
        """What is to be made durable next, and a new flush begun; None if there is nothing."""
        number = self.collecting_flush
        if not self.entries and not self.hard_states:
            assert number not in self._waiting, number
            return None
        last = {group: (entry.index, entry.term) for group, entry in self.entries}
        flush = Flush(number=number, entries=self.entries, hard_states=self.hard_states, last=last)
        self.entries = []
        self.hard_states = {}
        self.collecting_flush = number + 1
        return flush

    def made_durable(self, flush: int) -> None:
        assert flush == self.durable_flush + 1, (flush, self.durable_flush)
        assert flush < self.collecting_flush, (flush, self.collecting_flush)
        self.durable_flush = flush

    def release(self) -> None:
        """Let the messages go that waited for what is durable now."""
        due = [flush for flush in self._waiting if flush <= self.durable_flush]
        for flush in due:
            self.messages.extend(self._waiting.pop(flush))

    def drop_groups(self, removed: Collection[int]) -> None:
        """The groups were removed: nothing of them is to be saved, sent or told any more. All is gone through
        once, however many they are."""
        self.entries = [held for held in self.entries if held[0] not in removed]
        for group in removed:
            self.hard_states.pop(group, None)
            for groups in (self.advanced, self.changed, self.settled, self.dirty, self.led, self.lagging):
                groups.pop(group, None)
        self.reads = [read for read in self.reads if read.group not in removed]
        self.starts_wanted = [wanted for wanted in self.starts_wanted if wanted.group not in removed]
        self.starts_installed = [done for done in self.starts_installed if done.group not in removed]
        for flush, messages in list(self._waiting.items()):
            kept = [message for message in messages if message.group not in removed]
            if kept:
                self._waiting[flush] = kept
            else:
                del self._waiting[flush]
