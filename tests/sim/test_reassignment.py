"""Replicas that move while the group goes on."""

from dataclasses import replace

from tests.sim.knobs import CALM, calm_world
from tidings.sim.clock import MS
from tidings.sim.reassignment import Reassignment
from tidings.sim.world import World

GROUP = 0


def moving_world(machine_count: int) -> tuple[World, Reassignment]:
    world = calm_world(replace(CALM, machine_count=machine_count))
    reassignment = Reassignment(world)
    reassignment.begin()
    run(world, 1_000)
    return world, reassignment


def run(world: World, ms: int) -> None:
    world.agenda.run_until(world.agenda.now_us + ms * MS)


def voters(world: World) -> set[int]:
    return set(world.invariants.committed[GROUP].membership.voters)


def test_a_voter_is_replaced_step_by_step_and_its_replica_removed() -> None:
    world, reassignment = moving_world(machine_count=4)

    reassignment.aim(GROUP, (2, 3, 4))
    was_under_way = reassignment.is_under_way(GROUP)
    run(world, 3_000)

    assert was_under_way
    assert reassignment.is_done
    assert voters(world) == {2, 3, 4}
    assert GROUP not in world.machines[1].replicas
    assert GROUP in world.machines[4].replicas


def test_a_group_grows_and_shrinks() -> None:
    world, reassignment = moving_world(machine_count=5)

    reassignment.aim(GROUP, (1, 2, 3, 4, 5))
    run(world, 3_000)
    grown = voters(world)
    reassignment.aim(GROUP, (1, 4, 5))
    run(world, 3_000)

    assert grown == {1, 2, 3, 4, 5}
    assert voters(world) == {1, 4, 5}


def test_a_member_whose_disk_is_lost_is_replaced_by_the_newcomer() -> None:
    world, reassignment = moving_world(machine_count=3)
    lost = world.machines[2]
    world.crash(lost, keeps_writes=False)
    world.lost_promises(2)
    newcomer = world.replace_disk(lost)

    reassignment.replace_lost(2, newcomer.member)
    run(world, 4_000)

    assert voters(world) == {1, 3, 4}
    assert world.lossy[GROUP] == {}
