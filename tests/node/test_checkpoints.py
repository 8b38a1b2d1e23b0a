"""Tests of node/checkpoints.py: when a file of the write-ahead log may be cut, and when it may not.

With whole brokers: tests/node/test_log_length.py.
"""

from __future__ import annotations

import pytest

from tidings.node.checkpoints import Checkpoints
from tidings.raft.entries import Entry, EntryKind
from tidings.raft.outbox import Flush

INTERVAL_MS = 60_000


class FakeOwner:
    """Groups with so many entries each; a checkpoint is saved when the test says so."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}
        self.applied: dict[int, int] = {}
        self.window_first: dict[int, int] = {}
        self.frozen: set[int] = set()
        self.closed: set[int] = set()  # neither open, nor in files that may be opened
        self.unsavable: set[int] = set()
        self.unopened: set[int] = set()  # some of these, which nobody has named yet
        self.given_up: set[int] = set()  # or which are to be refilled
        self.saving: list[int] = []
        self.carried: list[tuple[int, int | None]] = []
        self.cuts: list[int] = []
        self.collecting_flush = 1

    def save_checkpoint(self, group: int) -> int | None:
        if group in self.frozen or group in self.unsavable or group in self.closed:
            return None
        self.saving.append(group)
        return self.applied[group]

    def is_carried(self, group: int, *, is_too_long: bool) -> bool:
        return group in self.frozen or (is_too_long and group in self.unopened)

    def is_given_up(self, group: int) -> bool:
        return group in self.given_up

    def may_return(self, group: int) -> bool:
        return group not in self.closed

    def last_index(self, group: int) -> int:
        return self.last.get(group, 0)

    def carry(self, group: int, first_index: int | None) -> int | None:
        if first_index is not None and first_index < self.window_first.get(group, 1):
            return None
        self.carried.append((group, first_index))
        return self.collecting_flush

    def cut_log(self, below_file: int) -> None:
        self.cuts.append(below_file)


class Log:
    """Checkpoints of a broker, and the flushes that it is told of."""

    def __init__(self, *, file_count_max: int = 3) -> None:
        self.owner = FakeOwner()
        self.checkpoints = Checkpoints(
            self.owner, file_count_max=file_count_max, interval_ms=INTERVAL_MS, now_ms=0
        )

    def flush(self, file: int, **groups: int) -> None:
        """A flush in the file, with entries of the groups (g1=7: group 1 up to index 7)."""
        last = {int(name[1:]): (index, 1) for name, index in groups.items()}
        entries = [
            (group, Entry(index, 1, EntryKind.RECORDS, 0, 1, b"")) for group, (index, _) in last.items()
        ]
        number = self.owner.collecting_flush
        self.owner.collecting_flush += 1
        for group, (index, _) in last.items():
            self.owner.last[group] = max(self.owner.last.get(group, 0), index)
            self.owner.applied.setdefault(group, index)
        self.checkpoints.flushed(Flush(number=number, entries=entries, hard_states={}, last=last), file)

    def apply(self, group: int, index: int) -> None:
        self.owner.applied[group] = index

    def tick(self, now_ms: int = INTERVAL_MS) -> None:
        self.checkpoints.tick(now_ms)

    def saved(self, group: int) -> None:
        self.owner.saving.remove(group)
        self.checkpoints.saved(group, self.owner.applied[group])


def test_nothing_is_saved_before_it_is_time_or_the_log_is_long() -> None:
    log = Log()
    log.flush(1, g1=5)

    log.tick(INTERVAL_MS - 1)

    assert log.owner.saving == []


def test_a_long_log_is_cut_when_all_its_groups_are_saved() -> None:
    log = Log()
    log.flush(1, g1=5, g2=5)
    log.flush(4, g1=6)
    log.apply(1, 6)

    log.tick(1)
    log.saved(1)
    cuts_between = list(log.owner.cuts)
    log.saved(2)

    assert cuts_between == []
    assert log.owner.cuts == [4]


def test_a_log_that_is_old_is_cut_too() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(2, g1=6)
    log.apply(1, 6)

    log.tick()
    log.saved(1)

    assert log.owner.cuts == [2]


def test_a_tail_that_is_not_applied_is_carried_before_the_cut() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(2, g2=1)
    log.apply(1, 3)

    log.tick()
    log.saved(2)
    log.saved(1)
    cuts_before_the_carried_flush = list(log.owner.cuts)
    log.flush(3, g1=5)

    assert log.owner.carried == [(1, 4)]
    assert cuts_before_the_carried_flush == []
    assert log.owner.cuts == [2]


def test_a_flush_that_was_under_way_when_the_tail_was_carried_is_not_taken_for_it() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(2, g2=1)
    log.apply(1, 3)
    log.tick()
    log.saved(2)
    log.owner.collecting_flush += 1  # one flush is being written
    log.saved(1)
    log.owner.collecting_flush -= 1

    log.flush(2, g1=6)
    cuts_between = list(log.owner.cuts)
    log.flush(3, g1=6)

    assert cuts_between == []
    assert log.owner.cuts == [2]


def test_a_tail_that_never_commits_is_carried_in_every_round() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.apply(1, 3)

    for file in range(2, 6):
        log.flush(file, g2=file)
        log.apply(2, file)
        log.tick(file * INTERVAL_MS)
        log.saved(2)
        log.saved(1)
        log.flush(file, g1=5)

    assert log.owner.carried == [(1, 4)] * 4
    assert log.owner.cuts == [2, 3, 4, 5]


def test_a_tail_that_left_memory_meanwhile_is_saved_by_another_checkpoint() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(2, g1=9)
    log.apply(1, 5)
    log.tick()
    log.owner.window_first[1] = 10  # applied, written and released while the checkpoint was saved

    log.saved(1)
    log.apply(1, 9)
    log.saved(1)

    assert log.owner.cuts == [2]


def test_entries_that_come_during_a_round_stay() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(3, g2=1)
    log.tick()
    log.flush(3, g1=6)
    log.saved(2)
    log.saved(1)
    log.flush(4, g2=2)
    log.apply(2, 2)

    log.tick(2 * INTERVAL_MS)
    log.saved(2)
    log.apply(1, 6)
    log.saved(1)

    assert log.owner.cuts == [3, 4]


def test_a_group_that_is_not_open_yet_holds_its_files() -> None:
    log = Log()
    log.owner.unsavable.add(7)
    log.checkpoints.recovered({7: 2, 1: 1}, 1, 4)
    log.owner.last[1] = log.owner.applied[1] = 5

    log.tick()
    log.saved(1)
    cuts_while_closed = list(log.owner.cuts)
    log.owner.unsavable.clear()
    log.owner.last[7] = log.owner.applied[7] = 3
    log.tick(2 * INTERVAL_MS)
    log.saved(7)

    assert cuts_while_closed == [2]
    assert log.owner.cuts == [2, 4]


def test_groups_that_recovery_found_and_the_metadata_has_removed_hold_nothing() -> None:
    log = Log()
    log.owner.closed.add(7)
    log.checkpoints.recovered({7: 1}, 1, 3)
    log.flush(4, g1=1)

    log.tick()
    log.saved(1)

    assert log.owner.cuts == [4]


def test_a_removed_group_holds_nothing_even_if_a_flush_of_it_was_under_way() -> None:
    log = Log()
    log.flush(1, g1=5, g2=5)
    log.owner.closed.add(1)
    log.checkpoints.removed(1)

    log.flush(1, g1=6)
    log.flush(2, g2=6)
    log.apply(2, 6)
    log.tick()
    log.saved(2)

    assert log.owner.cuts == [2]


def test_a_group_removed_during_a_round_does_not_hold_it_up() -> None:
    log = Log()
    log.flush(1, g1=5, g2=5)
    log.flush(2, g2=6)
    log.apply(2, 6)
    log.tick()
    log.saved(2)

    log.owner.closed.add(1)
    log.checkpoints.removed(1)

    assert log.owner.cuts == [2]


def test_a_checkpoint_that_fails_ends_its_round_and_holds_the_groups_files() -> None:
    log = Log()
    log.flush(1, g2=5)
    log.flush(2, g1=5)
    log.flush(3, g2=6)
    log.apply(2, 6)
    log.tick()
    log.saved(2)

    log.checkpoints.failed(1)

    assert not log.checkpoints.is_under_way
    assert log.owner.cuts == [2]


def test_a_checkpoint_that_comes_after_it_was_given_up_counts_for_nothing() -> None:
    log = Log()
    log.flush(1, g1=5)
    log.flush(2, g2=1)
    log.tick()
    log.checkpoints.failed(1)

    log.saved(1)
    log.saved(2)

    assert max(log.owner.cuts) <= 1  # the first file there is


def test_a_group_whose_files_are_frozen_is_carried_whole() -> None:
    log = Log()
    log.owner.frozen.add(1)
    log.checkpoints.recovered({1: 1}, 1, 3)

    log.tick()
    log.flush(4, g1=5)

    assert log.owner.carried == [(1, None)]
    assert log.owner.cuts == [3]


@pytest.mark.parametrize(("newest_file", "expected"), [(6, [1]), (7, [7])], ids=["within", "beyond"])
def test_a_replica_to_be_refilled_holds_the_log_up_to_twice_its_length(
    newest_file: int, expected: list[int]
) -> None:
    log = Log(file_count_max=3)
    log.owner.unsavable.add(7)
    log.owner.given_up.add(7)
    log.checkpoints.recovered({7: 1}, 1, newest_file)

    log.tick()

    assert (log.owner.cuts or [1]) == expected
    assert not log.checkpoints.is_overfull


@pytest.mark.parametrize(("newest_file", "expected"), [(6, []), (7, [7])], ids=["within", "beyond"])
def test_a_group_that_is_not_open_yet_is_carried_beyond_twice_the_length(
    newest_file: int, expected: list[int]
) -> None:
    log = Log(file_count_max=3)
    log.owner.unsavable.add(7)
    log.owner.unopened.add(7)
    log.checkpoints.recovered({7: 1}, 1, newest_file)

    log.tick()
    log.flush(newest_file, g7=5)

    assert log.owner.cuts == expected


def test_a_log_that_cannot_be_cut_is_not_saved_again_and_again() -> None:
    log = Log()
    log.owner.unsavable.add(7)
    log.checkpoints.recovered({7: 1}, 1, 1)
    log.flush(8, g1=1)
    log.tick(1)
    log.saved(1)
    log.flush(8, g1=2)

    log.tick(2)

    assert log.owner.saving == []
