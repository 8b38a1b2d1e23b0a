"""When things become durable, and what a crash leaves of them."""

from dataclasses import replace
from random import Random

from tests.sim.knobs import DISK
from tidings.raft.entries import Entry, EntryKind, Membership, StartState
from tidings.raft.outbox import Flush
from tidings.sim.clock import MS, Agenda
from tidings.sim.disk import Disk
from tidings.sim.swarm import DiskKnobs

GROUP = 0
BLANK = StartState(index=0, term=0, offset=0, membership=Membership(voters=(1, 2, 3)))


def entry(index: int) -> Entry:
    return Entry(index, 1, EntryKind.RECORDS, index - 1, 1, b"")


class Bench:
    """A disk with one group, and what it called back for."""

    def __init__(self, knobs: DiskKnobs = DISK, seed: int = 1) -> None:
        self.agenda = Agenda()
        self.disk = Disk(self.agenda, Random(seed), knobs)
        self.disk.add_group(GROUP, BLANK)
        self.synced: list[int] = []
        self.done: list[str] = []

    def write(self, index: int) -> None:
        flush = Flush(number=index, entries=[(GROUP, entry(index))], hard_states={}, last={GROUP: (index, 1)})
        self.disk.write(flush, lambda flush: self.synced.append(flush.number))

    def wait(self) -> None:
        self.agenda.run_until(self.agenda.now_us + 1_000 * MS)

    def recovered(self) -> list[int]:
        return [e.index for e in self.disk.recover()[GROUP].tail]


def test_flushes_become_durable_one_after_the_other() -> None:
    bench = Bench()

    for index in (1, 2, 3):
        bench.write(index)
    durable_at_once = bench.recovered()
    bench.wait()

    assert durable_at_once == []
    assert bench.synced == [1, 2, 3]
    assert bench.recovered() == [1, 2, 3]


def test_a_killed_process_leaves_what_it_was_writing_but_is_told_nothing() -> None:
    bench = Bench()
    bench.write(1)
    bench.write(2)

    bench.disk.crash(keeps_writes=True, may_tear=False)
    bench.wait()

    assert bench.recovered() == [1]
    assert bench.synced == []


def test_a_power_cut_leaves_a_prefix_of_what_was_being_written() -> None:
    left = set()
    for seed in range(40):
        bench = Bench(replace(DISK, flushes_per_sync_max=3), seed)
        bench.write(1)
        bench.wait()
        for index in (2, 3, 4):
            bench.write(index)
        bench.disk.crash(keeps_writes=False, may_tear=False)
        left.add(tuple(bench.recovered()))

    assert left == {(1,), (1, 2)}


def test_a_flush_that_was_cut_short_leaves_every_group_in_doubt_until_it_has_settled() -> None:
    found: set[tuple[bool, bool]] = set()  # whether the flush is there, whether it is doubted
    for seed in range(20):
        bench = Bench(replace(DISK, torn_share=1.0), seed)
        bench.write(1)
        bench.disk.crash(keeps_writes=False, may_tear=True)
        found.add((bench.recovered() == [1], bench.disk.recover()[GROUP].is_in_doubt))
        bench.disk.settle(GROUP)
        assert not bench.disk.recover()[GROUP].is_in_doubt

    assert found == {(True, False), (False, True)}


def test_a_lost_flush_takes_back_what_was_synced_and_is_doubted() -> None:
    bench = Bench()
    bench.write(1)
    bench.write(2)
    bench.wait()

    bench.disk.lose_last_flush()

    assert bench.recovered() == [1]
    assert bench.disk.recover()[GROUP].is_in_doubt


def test_jobs_of_a_group_are_done_in_order_and_forgotten_by_a_crash() -> None:
    bench = Bench()
    disk = bench.disk
    disk.write_segments(GROUP, [entry(1), entry(2)], lambda: bench.done.append("written"))
    disk.save_checkpoint(GROUP, replace(BLANK, index=2, term=1, offset=2), lambda: bench.done.append("saved"))
    bench.wait()
    disk.write_segments(GROUP, [entry(3)], lambda: bench.done.append("never told"))

    disk.crash(keeps_writes=True, may_tear=False)
    bench.wait()

    assert bench.done == ["written", "saved"]
    assert disk.recover()[GROUP].start.index == 2
    assert [e.index for e in disk.images[GROUP].segments] == [1, 2]


def test_entries_are_read_back_whole_and_at_least_one() -> None:
    bench = Bench()
    bench.disk.is_healed = True
    bench.disk.write_segments(GROUP, [entry(1), entry(2)], lambda: None)
    bench.wait()
    read: list[list[int]] = []

    bench.disk.read(GROUP, 2, 0, lambda entries: read.append([e.index for e in entries]))
    bench.disk.read(GROUP, 9, 0, lambda entries: read.append([e.index for e in entries]))
    bench.wait()

    assert sorted(read) == [[], [2]]


def test_a_removed_group_is_gone_from_the_log_too() -> None:
    bench = Bench()
    bench.write(1)
    bench.wait()

    bench.disk.remove_group(GROUP)
    bench.disk.add_group(GROUP, BLANK)

    assert bench.recovered() == []


def test_a_replaced_log_is_in_doubt_if_the_old_one_was_damaged() -> None:
    bench = Bench()
    bench.disk.images[GROUP].is_damaged = True
    marker = Entry(5, 2, EntryKind.START, 4, 0, b"")

    bench.disk.reset(
        GROUP, replace(BLANK, index=5, term=2, offset=4), marker, lambda: bench.done.append("reset")
    )
    bench.wait()

    found = bench.disk.recover()[GROUP]
    assert bench.done == ["reset"]
    assert (found.is_damaged, found.is_in_doubt) == (False, True)
    assert found.start.index == 5
