"""One machine in a small world: turns, pauses, crashes, and what a restart brings back."""

from dataclasses import replace

from tests.sim.knobs import CALM, calm_world
from tidings.raft.entries import Membership
from tidings.sim.clock import MS
from tidings.sim.machine import Machine
from tidings.sim.replica import Answer, BatchId
from tidings.sim.world import World

GROUP = 0


def run(world: World, ms: int) -> None:
    world.agenda.run_until(world.agenda.now_us + ms * MS)


def leader_of(world: World) -> Machine:
    leader = world.leader_of(GROUP)
    assert leader is not None
    return leader


def append(machine: Machine, sequence: int, answers: list[Answer]) -> None:
    replica = machine.replicas[GROUP]
    machine.do(
        lambda _: replica.append(BatchId(1, sequence), 0, 1, machine.clock.now_ms, answers.append), None
    )


def test_three_machines_elect_a_leader_and_commit() -> None:
    world = calm_world()
    run(world, 1_000)
    answers: list[Answer] = []

    append(leader_of(world), 0, answers)
    run(world, 200)

    assert answers == [Answer.ACKED]
    assert {group.commit_index for group in world.replicas_of(GROUP)} == {2}


def test_a_paused_machine_takes_its_inputs_when_it_goes_on() -> None:
    world = calm_world()
    run(world, 1_000)
    leader = leader_of(world)
    answers: list[Answer] = []
    leader.pause()
    append(leader, 0, answers)
    run(world, 1_000)
    answered_meanwhile = list(answers)
    successor = leader_of(world)

    leader.resume()
    run(world, 200)

    assert answered_meanwhile == []
    assert successor is not leader
    assert answers == [Answer.NOT_LEADER]


def test_a_crashed_machine_comes_back_with_what_was_durable() -> None:
    world = calm_world()
    run(world, 1_000)
    leader = leader_of(world)
    append(leader, 0, [])
    run(world, 200)
    term = leader.replicas[GROUP].group.term

    leader.crash(keeps_writes=False, may_tear=False)
    was_up = leader.is_up
    leader.start()

    group = leader.replicas[GROUP].group
    assert not was_up
    assert (group.term, group.last_index) == (term, 2)


def test_inputs_of_an_older_life_never_come() -> None:
    world = calm_world()
    machine = world.machines[1]
    happened: list[object] = []
    machine.later(10 * MS, happened.append, "old")

    machine.crash(keeps_writes=True, may_tear=False)
    machine.start()
    machine.later(10 * MS, happened.append, "new")
    run(world, 100)

    assert happened == ["new"]


def test_a_machine_that_is_down_takes_nothing() -> None:
    world = calm_world()
    machine = world.machines[1]
    happened: list[object] = []
    machine.crash(keeps_writes=True, may_tear=False)

    machine.do(happened.append, "lost")

    assert happened == []


def refilled_follower() -> tuple[World, Machine, Machine]:
    """A leader, and a follower that was away until the log began behind all that it had."""
    world = calm_world()
    run(world, 1_000)
    leader = leader_of(world)
    follower = next(machine for machine in world.machines.values() if machine is not leader)
    world.crash(follower, keeps_writes=True)
    for sequence in range(5):
        append(leader, sequence, [])
    run(world, 200)
    leader.do(lambda _: leader.replicas[GROUP].move_log_start(leader.clock.now_ms), None)
    append(leader, 5, [])
    run(world, 500)
    world.start(follower)
    run(world, 1_000)
    return world, leader, follower


def test_a_follower_that_was_away_past_the_log_start_is_given_a_start_state() -> None:
    _, leader, follower = refilled_follower()

    refilled = follower.replicas[GROUP]

    assert refilled.group.log.start_index > 2
    assert refilled.state.encode() == leader.replicas[GROUP].state.encode()
    assert refilled.state.last_sequences == {1: 5}


def test_a_leader_that_was_refilled_recognises_retries_of_what_is_no_longer_in_its_log() -> None:
    world, leader, follower = refilled_follower()
    leader.do(lambda _: leader.replicas[GROUP].group.transfer(follower.member, leader.clock.now_ms), None)
    run(world, 1_000)
    end_offset = follower.replicas[GROUP].group.next_offset
    answers: list[Answer] = []

    for sequence in (3, 5):
        append(follower, sequence, answers)
    run(world, 200)

    assert leader_of(world) is follower
    assert answers == [Answer.ACKED, Answer.ACKED]
    assert follower.replicas[GROUP].group.next_offset == end_offset


def test_a_listener_is_filled_without_a_vote() -> None:
    world = calm_world(replace(CALM, machine_count=4))
    run(world, 1_000)
    leader, newcomer = leader_of(world), world.machines[4]
    membership = Membership(voters=(1, 2, 3), learners=(4,))

    newcomer.add_listener(GROUP, membership)
    leader.replicas[GROUP].change_membership(membership, leader.clock.now_ms)
    run(world, 1_000)

    assert newcomer.replicas[GROUP].group.last_index == leader.replicas[GROUP].group.last_index
    assert not newcomer.replicas[GROUP].group.is_voter


def test_a_machine_remembers_that_it_had_a_replica() -> None:
    world = calm_world()
    run(world, 1_000)
    machine = next(machine for machine in world.machines.values() if machine is not leader_of(world))

    world.remove_replica(machine, GROUP)

    assert machine.had_replica(GROUP)
    assert not machine.had_replica(GROUP + 1)
