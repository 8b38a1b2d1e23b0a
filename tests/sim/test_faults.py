"""The nemesis: every fault happens, stays within the model, and is undone."""

from dataclasses import replace

import pytest

from tests.sim.knobs import CALM, calm_world
from tidings.sim.clock import MS
from tidings.sim.faults import Nemesis, _bridged, _deaf, _in_a_ring, _isolated, _mute, _split
from tidings.sim.reassignment import Reassignment
from tidings.sim.swarm import Fault
from tidings.sim.workload import Workload
from tidings.sim.world import World

GROUP = 0
NOT_STRUCK = {
    Fault.SLOW_DISK,
    Fault.TRAP_VOTE,
    Fault.TRAP_REPLY,
    Fault.TRAP_FLUSH,
    Fault.TRAP_START,
    Fault.TRAP_MEMBERSHIP,
}


def run(world: World, ms: int) -> None:
    world.agenda.run_until(world.agenda.now_us + ms * MS)


@pytest.mark.parametrize(
    "fault", [fault for fault in Fault if fault not in NOT_STRUCK], ids=lambda f: f.value
)
def test_a_group_is_well_again_after_a_fault_was_healed(fault: Fault) -> None:
    world = calm_world(replace(CALM, faults=(fault,), machine_count=4))
    workload, reassignment = Workload(world), Reassignment(world)
    nemesis = Nemesis(world, reassignment)
    workload.begin()
    reassignment.begin()
    nemesis.begin()
    run(world, 3_000)

    nemesis.heal()
    workload.end()
    run(world, 5_000)

    assert world.leader_of(GROUP) is not None
    assert workload.is_done
    assert reassignment.is_done


def test_cuts_part_machines_as_their_names_say() -> None:
    five = [1, 2, 3, 4, 5]

    assert _mute(five) == [(1, 2), (1, 3), (1, 4), (1, 5)]
    assert _deaf(five) == [(2, 1), (3, 1), (4, 1), (5, 1)]
    assert set(_isolated(five)) == {*_mute(five), *_deaf(five)}
    assert (1, 3) in _split(five)
    assert (1, 2) not in _split(five)


def test_a_bridge_has_one_machine_that_hears_all() -> None:
    pairs = _bridged([1, 2, 3, 4, 5])

    assert not any(1 in pair for pair in pairs)
    assert set(pairs) == {(2, 4), (2, 5), (3, 4), (3, 5), (4, 2), (5, 2), (4, 3), (5, 3)}


def test_in_a_ring_each_hears_its_two_neighbours() -> None:
    pairs = _in_a_ring([1, 2, 3, 4, 5])

    for member in (1, 2, 3, 4, 5):
        assert len([pair for pair in pairs if pair[1] == member]) == 2
    assert (1, 2) not in pairs
    assert (1, 5) not in pairs
