"""What a broker has promised, to compare a recovered disk with.

A model of the groups' logs that knows nothing of files: entries, votes, what is committed. While a flush is
written there are two states that a crash may leave: without it and with all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.storage.broker_disk import BrokerDisk, Written, records, start_at, start_mark, term_start
from tidings.raft.entries import Entry, HardState
from tidings.storage.recovery import RecoveredGroup
from tidings.storage.segments import SegmentStore

NO_VOTE = HardState(term=0, vote=0)


@dataclass(slots=True)
class GroupLog:
    """One group's log as promised: entries behind `start_index`."""

    start_index: int = 0
    start_term: int = 0
    start_offset: int = 0
    entries: list[Entry] = field(default_factory=list)
    hard: HardState = NO_VOTE
    committed: int = 0  # index up to which nothing is ever replaced

    @property
    def last_index(self) -> int:
        return self.start_index + len(self.entries)

    @property
    def next_offset(self) -> int:
        return self.entries[-1].next_offset if self.entries else self.start_offset

    @property
    def last_term(self) -> int:
        return self.entries[-1].term if self.entries else self.start_term

    def copy(self) -> GroupLog:
        return GroupLog(
            self.start_index,
            self.start_term,
            self.start_offset,
            list(self.entries),
            self.hard,
            self.committed,
        )

    def between(self, first: int, last: int) -> list[Entry]:
        """Entries first to last, both included."""
        return self.entries[first - self.start_index - 1 : last - self.start_index]

    def cut_to(self, last_index: int) -> None:
        del self.entries[last_index - self.start_index :]

    def grow(self, count: int, *, size: int) -> list[Entry]:
        """New entries behind the last one: a term start where the term is new, then batches."""
        added: list[Entry] = []
        for _ in range(count):
            index, term, offset = self.last_index + 1, max(self.hard.term, 1), self.next_offset
            if term > self.last_term:
                entry = term_start(index, term=term, offset=offset)
            else:
                entry = records(index, term=term, offset=offset, count=index % 3 + 1, size=size)
            self.entries.append(entry)
            added.append(entry)
        return added


class Promises:
    """All groups of a disk, and what the call under way may have added."""

    def __init__(self, groups: list[int]) -> None:
        self.logs = {group: GroupLog() for group in groups}
        self.maybe: dict[int, GroupLog] | None = None  # the logs if the call under way came through

    def copy(self) -> Promises:
        """The same promises, to be compared with more than one disk."""
        same = Promises([])
        same.logs = {group: log.copy() for group, log in self.logs.items()}
        same.maybe = self.maybe and {group: log.copy() for group, log in self.maybe.items()}
        return same

    def flush(self, disk: BrokerDisk, changes: dict[int, list[Entry]], hard: dict[int, HardState]) -> None:
        """Write one flush. `changes` are entries that replace what stands at their indexes and behind."""
        after = {group: log.copy() for group, log in self.logs.items()}
        for group, entries in changes.items():
            after[group].cut_to(entries[0].index - 1)
            after[group].entries.extend(entries)
        for group, state in hard.items():
            after[group].hard = state
        self.maybe = after
        pairs = [(group, entry) for group, entries in changes.items() for entry in entries]
        disk.wal.write(Written(entries=pairs, hard_states=hard))
        self.logs, self.maybe = after, None

    def reset(self, disk: BrokerDisk, group: int, index: int, term: int, fresh: int) -> None:
        """Take a start state: the old log counts until the reset is through, then only the new one does."""
        log = self.logs[group]
        new = GroupLog(index, term, index * 2, [], HardState(term=max(term, log.hard.term), vote=0), index)
        entries = [(group, start_mark(index, term=term))]
        entries += [(group, entry) for entry in new.grow(fresh, size=60)]
        with_vote = {key: one.copy() for key, one in self.logs.items()}
        with_vote[group].hard = new.hard
        self.maybe = with_vote
        position = disk.wal.write(Written(entries=entries, hard_states={group: new.hard}))
        self.logs, self.maybe = with_vote, {**with_vote, group: new}
        start = start_at(index, term=term, offset=index * 2, state=b"state")
        disk.stores[group].reset(start, "t", wal_sequence=position.sequence)
        self.logs, self.maybe = {**with_vote, group: new}, None

    def checkpoint(self, disk: BrokerDisk, group: int) -> None:
        """Make a checkpoint of what is in the segments."""
        store = disk.stores[group]
        log = self.logs[group]
        last = log.between(store.last_index, store.last_index)
        term = last[-1].term if last else log.start_term
        start = start_at(store.last_index, term=term, offset=store.next_offset)
        store.checkpoint(start, "t")

    def agrees(self, disk: BrokerDisk) -> bool:
        """Take over what recovery found, if it is one of the states that may be."""
        found = {group: recovered_log(disk, group) for group in self.logs}
        for state in (self.logs, self.maybe):
            if state is not None and all(_same(state[group], found[group]) for group in state):
                for group, log in state.items():
                    log.committed = max(log.committed, disk.stores[group].last_index)
                self.logs, self.maybe = state, None
                return True
        return False


def recovered_log(disk: BrokerDisk, group: int) -> GroupLog:
    """The log as a start finds it: checkpointed segments, then the tail."""
    state = disk.recovered.groups.get(group)
    store = disk.stores[group]
    if state is None:
        return GroupLog()
    assert state.damaged is None, state.damaged
    start = state.log_start
    entries = read_all(store, state)
    return GroupLog(start.index, start.term, start.offset, entries + state.tail, state.hard)


def read_all(store: SegmentStore, state: RecoveredGroup) -> list[Entry]:
    """Every entry of the segments up to the checkpoint."""
    entries: list[Entry] = []
    index = state.first_index
    while index <= state.start.index:
        entries += store.read_entries(index, 500)
        index = entries[-1].index + 1
    return entries


def _same(promised: GroupLog, found: GroupLog) -> bool:
    """Retention may have moved the start of what is found."""
    if not promised.start_index <= found.start_index <= promised.last_index:
        return False
    before = promised.copy()
    before.cut_to(found.start_index)
    return (
        (before.last_term, before.next_offset) == (found.start_term, found.start_offset)
        and promised.between(found.start_index + 1, promised.last_index) == found.entries
        and promised.hard == found.hard
    )
