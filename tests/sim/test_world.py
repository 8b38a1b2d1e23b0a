"""Many machines: crashes that peers notice or not, disks that are replaced, and what may be lost together."""

from dataclasses import replace
from itertools import pairwise

from tests.sim.knobs import CALM, calm_world
from tidings.sim.clock import MS
from tidings.sim.swarm import Fault
from tidings.sim.world import World

GROUP = 0


def run(world: World, ms: int) -> None:
    world.agenda.run_until(world.agenda.now_us + ms * MS)


def kill_leader(world: World) -> int:
    run(world, 1_000)
    leader = world.leader_of(GROUP)
    assert leader is not None
    killed_us = world.agenda.now_us
    world.crash(leader, keeps_writes=True)
    while world.leader_of(GROUP) is None:
        run(world, 1)
    return (world.agenda.now_us - killed_us) // MS


def test_a_killed_leader_is_replaced_at_once_if_its_peers_notice_and_after_a_timeout_if_not() -> None:
    noticed_ms = kill_leader(calm_world(replace(CALM, downs_are_told_share=1.0)))
    silent_ms = kill_leader(calm_world(replace(CALM, downs_are_told_share=0.0)))

    assert noticed_ms < CALM.raft.election_timeout_ms_min / 2
    assert silent_ms >= CALM.raft.election_timeout_ms_min - 2 * CALM.raft.beat_interval_ms


def test_a_machine_whose_disk_is_lost_comes_back_as_another_member() -> None:
    world = calm_world()
    machine = world.machines[3]
    world.crash(machine, keeps_writes=False)

    newcomer = world.replace_disk(machine)
    world.start(machine)

    assert newcomer.member == 4
    assert newcomer.is_up
    assert not machine.is_up
    assert newcomer.replicas == {}


def test_one_replica_of_a_group_may_lose_what_it_promised_and_no_second_one() -> None:
    world = calm_world()

    world.lost_promises(1)

    assert world.may_lose(1)
    assert not world.may_lose(2)
    assert not world.may_doubt(2)


def test_a_group_of_two_voters_may_lose_nothing() -> None:
    world = calm_world(replace(CALM, voters_by_group={GROUP: (1, 2)}))

    assert not world.may_lose(1)


def test_a_trap_crashes_a_machine_right_after_what_it_waited_for() -> None:
    lines: list[str] = []
    knobs = replace(CALM, faults=(Fault.TRAP_REPLY,), trap_share=1.0)
    world = calm_world(knobs, write=lines.append)

    run(world, 1_000)

    after_replies = [after for line, after in pairwise(lines) if "-> " in line and "AppendReply" in line]
    assert any("crash" in line or "power cut" in line for line in after_replies)
