"""Crashes at any step: whatever survives of unsynced writes, every promise holds and nothing is called
damaged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.fakes.files import FakeFiles, Keep, PowerLost
from tests.storage.broker_disk import BrokerDisk, indexes, records
from tests.storage.promises import Promises
from tidings.raft.entries import HardState

GROUPS = [1, 2, 3]
SMALL_SEGMENT_BYTES = 400
groups = st.sampled_from(GROUPS)


class Broker(RuleBasedStateMachine):
    """A broker that writes, applies, checkpoints, carries, cuts, resets - and loses power at a planned
    step."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = BrokerDisk(FakeFiles(), first_file_bytes=1024, file_bytes_max=4096)
        self.promises = Promises(GROUPS)
        for group in GROUPS:
            self.disk.create(group)

    @initialize(steps=st.integers(1, 200))
    def plan(self, steps: int) -> None:
        self.plan_crash(steps)

    def plan_crash(self, steps: int) -> None:
        self.disk.fake.crash_at_step = self.disk.fake.steps + steps

    @rule(
        counts=st.dictionaries(groups, st.integers(1, 4), min_size=1),
        size=st.sampled_from([44, 100, 700, 5000]),
        back=st.integers(0, 3),
        new_term=st.booleans(),
        keep=st.sampled_from(Keep),
        seed=st.integers(0, 1000),
        next_crash=st.integers(1, 200),
    )
    def write(
        self,
        counts: dict[int, int],
        size: int,
        back: int,
        new_term: bool,
        keep: Keep,
        seed: int,
        next_crash: int,
    ) -> None:
        """New entries, some in place of uncommitted ones, under new terms and votes."""
        changes = {}
        hard = {}
        for group, count in counts.items():
            log = self.promises.logs[group].copy()
            if new_term or log.hard.term == 0:
                log.hard = hard[group] = HardState(term=log.hard.term + 1, vote=seed)
                log.cut_to(max(log.last_index - back, log.committed))
            changes[group] = log.grow(count, size=size)
        self.attempt(lambda: self.promises.flush(self.disk, changes, hard), keep, seed, next_crash)

    @rule(group=groups, count=st.integers(1, 6), keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
    def commit(self, group: int, count: int, keep: Keep, seed: int) -> None:
        """The next entries are committed, and go to the segments."""
        log = self.promises.logs[group]
        store = self.disk.stores[group]
        entries = log.between(store.last_index + 1, min(store.last_index + count, log.last_index))
        log.committed = max(log.committed, store.last_index + len(entries))
        self.attempt(
            lambda: self.disk.apply(*entries, group=group, segment_bytes=SMALL_SEGMENT_BYTES), keep, seed, 50
        )

    @rule(group=groups, keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
    def checkpoint(self, group: int, keep: Keep, seed: int) -> None:
        self.attempt(lambda: self.promises.checkpoint(self.disk, group), keep, seed, 40)

    @rule(keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
    def carry_and_cut(self, keep: Keep, seed: int) -> None:
        """Checkpoint what holds old files, write again what is not committed, cut."""
        self.attempt(self.tidy, keep, seed, 30)

    def tidy(self) -> None:
        newest = self.disk.wal.current_file
        for group in self.disk.wal.groups_holding(newest, {}):
            self.promises.checkpoint(self.disk, group)
            log = self.promises.logs[group]
            tail = log.between(self.disk.stores[group].last_index + 1, log.last_index)
            if tail:
                self.promises.flush(self.disk, {group: tail}, {})
        reached = {group: self.disk.stores[group].last_index for group in GROUPS}
        assert self.disk.wal.oldest_file_needed(reached) >= newest
        self.disk.wal.cut(newest)

    @rule(keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
    def prepare(self, keep: Keep, seed: int) -> None:
        self.attempt(self.disk.wal.prepare_next, keep, seed, 20)

    @rule(group=groups, share=st.floats(0, 1), keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
    def drop(self, group: int, share: float, keep: Keep, seed: int) -> None:
        offset = int(self.disk.stores[group].next_offset * share)
        self.attempt(lambda: self.disk.stores[group].drop_below(offset), keep, seed, 60)

    @rule(
        group=groups,
        ahead=st.integers(-5, 20),
        fresh=st.integers(0, 3),
        keep=st.sampled_from(Keep),
        seed=st.integers(0, 1000),
    )
    def reset(self, group: int, ahead: int, fresh: int, keep: Keep, seed: int) -> None:
        log = self.promises.logs[group]
        index = max(log.last_index + ahead, 1)
        term = log.hard.term + 1
        self.attempt(lambda: self.promises.reset(self.disk, group, index, term, fresh), keep, seed, 70)

    @rule(keep=st.sampled_from(Keep), seed=st.integers(0, 1000), next_crash=st.integers(1, 30))
    def crash(self, keep: Keep, seed: int, next_crash: int) -> None:
        self.restart(keep, seed, next_crash)

    @invariant()
    def segments_can_be_read(self) -> None:
        for group, store in self.disk.stores.items():
            log = self.promises.logs[group]
            first = max(store.start.index, log.start_index) + 1
            if first <= store.last_index:
                (entry,) = store.read_entries(first, 1)
                assert [entry] == log.between(first, first)

    def attempt(self, call: Callable[[], object], keep: Keep, seed: int, next_crash: int) -> None:
        try:
            call()
        except PowerLost:
            self.restart(keep, seed, next_crash)

    def restart(self, keep: Keep, seed: int, next_crash: int) -> None:
        """Power is lost, perhaps again during the start."""
        random = Random(seed)
        for steps in (next_crash, None):
            files = self.disk.fake.after_crash(random, keep)
            keep = random.choice(list(Keep))
            files.crash_at_step = steps
            try:
                disk = BrokerDisk(files, first_file_bytes=1024, file_bytes_max=4096)
            except PowerLost:
                self.disk.files = files
                continue
            break
        self.disk = disk
        for group in GROUPS:
            if group not in disk.stores:
                disk.create(group)
        assert disk.recovered.damage is None, disk.recovered.damage
        assert self.promises.agrees(disk), (self.promises.logs, self.promises.maybe, disk.recovered.groups)
        self.disk.fake.crash_at_step = self.disk.fake.steps + next_crash * 3


TestBroker = Broker.TestCase
TestBroker.settings = settings(max_examples=80, stateful_step_count=40, deadline=None, derandomize=True)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_thousands_of_lives_of_a_broker_keep_every_promise() -> None:
    run_state_machine_as_test(
        Broker, settings=settings(max_examples=10_000, stateful_step_count=60, deadline=None)
    )


def run_script(files: FakeFiles, promises: Promises) -> None:
    """A little of everything, the same each time."""
    disk = BrokerDisk(files, first_file_bytes=1024, file_bytes_max=2048)
    for group in (1, 2):
        disk.create(group)
    for round_number in range(1, 5):
        hard = {group: HardState(term=round_number, vote=11) for group in (1, 2)}
        changes = {}
        for group in (1, 2):
            log = promises.logs[group].copy()
            log.hard = hard[group]
            log.cut_to(max(log.last_index - 1, log.committed))
            changes[group] = log.grow(3, size=150 * round_number)
        promises.flush(disk, changes, hard)
        log = promises.logs[1]
        log.committed = log.last_index - 1
        disk.apply(
            *log.between(disk.stores[1].last_index + 1, log.committed), segment_bytes=SMALL_SEGMENT_BYTES
        )
        promises.checkpoint(disk, 1)
    disk.stores[1].drop_below(disk.stores[1].next_offset)
    tail = promises.logs[1].between(disk.stores[1].last_index + 1, promises.logs[1].last_index)
    promises.flush(disk, {1: tail}, {})
    disk.wal.cut(disk.wal.oldest_file_needed({1: disk.stores[1].last_index}))
    disk.wal.prepare_next()
    promises.reset(disk, 2, 40, 9, 2)


def steps_of_the_script() -> int:
    files = FakeFiles()
    run_script(files, Promises([1, 2]))
    return files.steps


@pytest.mark.parametrize("keep", Keep)
def test_a_crash_at_any_step_keeps_every_promise(keep: Keep) -> None:
    for step in range(steps_of_the_script()):
        files = FakeFiles()
        files.crash_at_step = step
        promises = Promises([1, 2])
        with pytest.raises(PowerLost):
            run_script(files, promises)

        disk = BrokerDisk(files.after_crash(Random(step), keep))
        for group in (1, 2):
            if group not in disk.stores:
                disk.create(group)

        assert disk.recovered.damage is None, step
        assert promises.agrees(disk), (step, promises.logs, promises.maybe, disk.recovered.groups)


@pytest.mark.parametrize("keep", [Keep.NOTHING, Keep.PREFIX, Keep.PAGES])
def test_power_lost_in_or_after_the_start_that_follows_a_kill_keeps_every_promise(keep: Keep) -> None:
    for step in range(steps_of_the_script()):
        files = FakeFiles()
        files.crash_at_step = step
        promises = Promises([1, 2])
        with pytest.raises(PowerLost):
            run_script(files, promises)
        for steps_of_start in (step % 12, 10_000):
            killed = files.after_crash(Random(step), Keep.EVERYTHING)
            killed.crash_at_step = steps_of_start
            with suppress(PowerLost):
                BrokerDisk(killed)

            disk = BrokerDisk(killed.after_crash(Random(step), keep))
            for group in (1, 2):
                if group not in disk.stores:
                    disk.create(group)

            assert disk.recovered.damage is None, step
            assert promises.copy().agrees(disk), (step, promises.logs, promises.maybe, disk.recovered.groups)


@pytest.mark.parametrize("keep", [Keep.NOTHING, Keep.PREFIX, Keep.PAGES])
def test_what_was_read_after_a_kill_is_durable_before_anything_rests_on_it(keep: Keep) -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=HardState(term=1, vote=11))
    disk.fake.crash_at_step = disk.fake.steps  # the bytes of the next flush are written, its sync never comes
    with pytest.raises(PowerLost):
        disk.write(records(2))
    was_there = False

    for step in range(40):
        killed = disk.fake.after_crash(Random(step), Keep.EVERYTHING)
        killed.crash_at_step = step
        with suppress(PowerLost):
            was_there = indexes(BrokerDisk(killed).recovered.groups[1].tail) == [1, 2]
        again = BrokerDisk(killed.after_crash(Random(step), keep)).recovered

        assert again.damage is None, step
        assert indexes(again.groups[1].tail) in ([1], [1, 2])
        assert not was_there or indexes(again.groups[1].tail) == [1, 2], step
    assert was_there


def test_a_store_opens_where_its_creation_was_cut_off() -> None:
    for step in range(12):
        disk = BrokerDisk()
        disk.fake.crash_at_step = disk.fake.steps + step
        with suppress(PowerLost):
            disk.create(9)

        again = BrokerDisk(disk.fake.after_crash(Random(1), Keep.NOTHING))
        store = again.stores.get(9) or again.create(9)

        assert (store.last_index, store.next_offset) == (0, 0)
