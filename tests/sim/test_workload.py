"""Producers that retry, readers, and what they find out."""

from dataclasses import replace

import pytest

from tests.sim.knobs import CALM, calm_world
from tidings.raft.outbox import ReadConfirmed
from tidings.sim.clock import MS
from tidings.sim.invariants import Violation
from tidings.sim.workload import Workload
from tidings.sim.world import World

GROUP = 0


def working_world() -> tuple[World, Workload]:
    world = calm_world(replace(CALM, replica=replace(CALM.replica, log_start_interval_ms=200)))
    workload = Workload(world)
    workload.begin()
    run(world, 2_000)
    return world, workload


def run(world: World, ms: int) -> None:
    world.agenda.run_until(world.agenda.now_us + ms * MS)


def test_producers_find_the_leader_and_are_acknowledged_what_is_committed() -> None:
    world, workload = working_world()

    acked = workload.acked[GROUP]

    assert len(acked) > 10
    world.invariants.check_acked(GROUP, acked)


def test_producers_go_on_after_their_leader_died_and_nothing_is_there_twice() -> None:
    world, workload = working_world()
    leader = world.leader_of(GROUP)
    assert leader is not None
    acked_count = len(workload.acked[GROUP])

    world.crash(leader, keeps_writes=False)
    run(world, 2_000)

    batches = world.invariants.committed[GROUP].index_by_batch
    assert len(workload.acked[GROUP]) > acked_count + 10
    assert workload.acked[GROUP].keys() <= batches.keys()


def test_in_the_end_every_batch_is_acknowledged_also_one_of_a_new_producer() -> None:
    world, workload = working_world()

    workload.end()
    run(world, 1_000)

    producers = {batch.producer for batch in workload.acked[GROUP]}
    assert workload.is_done
    assert workload.unanswered == []
    assert producers == {1, 2}


def test_the_log_start_moves_while_producers_write() -> None:
    world, _ = working_world()

    starts = [machine.replicas[GROUP].state.log_start_offset for machine in world.machines.values()]

    assert all(offset > 0 for offset in starts)


def test_a_read_of_the_past_is_found_out() -> None:
    world, workload = working_world()
    machine = world.machines[1]
    workload._reads[99] = 7

    workload._read_confirmed(machine, ReadConfirmed(group=GROUP, context=99, index=7))
    workload._reads[99] = 7

    with pytest.raises(Violation, match="read up to entry 6"):
        workload._read_confirmed(machine, ReadConfirmed(group=GROUP, context=99, index=6))
