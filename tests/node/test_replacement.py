"""Tests of node/policies.py and its parts in whole brokers: lost disks, newcomers, leaders that go home."""

from __future__ import annotations

from functools import partial

from tests.node.client import Client
from tests.node.machine import Machine
from tests.node.world import World
from tidings.broker.cluster import METADATA_GROUP


def members_of(machine: Machine, group: int) -> set[int]:
    membership = machine.node.host.groups[group].membership
    return {*membership.voters, *membership.learners}


def voters_of(machine: Machine, group: int) -> set[int]:
    return set(machine.node.host.groups[group].membership.voters)


def members(world: World) -> set[int]:
    """Of the brokers that run."""
    return {machine.member for machine in world.running}


def vote_in_all(world: World, groups: list[int], voters: set[int]) -> bool:
    """Whether these and nobody else are members of the groups, as every broker knows them."""
    return all(
        group in machine.node.host.groups
        and voters_of(machine, group) == members_of(machine, group) == voters
        for machine in world.running
        for group in groups
    )


def replace(world: World, broker_id: int) -> Machine:
    """The broker's disk is lost, and a blank one takes its place."""
    world.wipe(broker_id, replace=True)
    world.run(100)
    return world.start(broker_id)


def test_a_replaced_broker_votes_in_every_group_and_its_old_disk_in_none(
    world: World, client: Client
) -> None:
    groups = client.create_topic(assignments=((1, 2, 3), (2, 3, 1), (3, 1, 2)))
    for group in groups[:1]:
        client.produce_many(20, group=group)

    replace(world, 3)
    world.run_until(lambda: vote_in_all(world, [METADATA_GROUP, *groups], members(world)))

    assert world[3].is_registered
    world.run_until(lambda: world.is_even(groups[0]))
    world.crash(1)
    assert len(client.read_all(to=world.lead(groups[0]))) == 20


def test_a_disk_may_be_lost_again_and_again(world: World, client: Client) -> None:
    groups = client.create_topic()

    for broker_id in (3, 3, 1, 3, 2):
        replace(world, broker_id)
        world.run_until(partial(vote_in_all, world, [METADATA_GROUP, *groups], members(world)))
        client.produce(b"x", group=groups[0])

    assert len(client.read_all(to=world.lead(groups[0]))) == 5


def test_a_blank_disk_under_a_known_id_is_refused_without_being_told_to_replace(world: World) -> None:
    world.wipe(2)

    world.start(2)
    world.run_until(lambda: world[2].refusal is not None)

    assert "--replace 2" in str(world[2].refusal)
    assert not world[2].is_registered


def test_a_replaced_disk_that_comes_back_is_refused_and_disturbs_nobody(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    old = world.crash(3)
    replace(world, 3)
    world.run_until(lambda: vote_in_all(world, [METADATA_GROUP, group], members(world)))
    world.crash(3)
    term = world.lead(group).replica(group).leader_epoch

    world.machines[3] = old
    world.start(3)
    world.run_until(lambda: old.refusal is not None)
    world.run(5_000)

    assert world.lead(group).replica(group).leader_epoch == term
    assert old.member not in members_of(world[1], group)


def test_nobody_waits_for_disks_that_are_gone_for_good(world: World, client: Client) -> None:
    """A replica in doubt asks all voters that it knows of, but for those that the metadata knows to be
    gone."""
    (group,) = client.create_topic()
    gone = set()
    for _ in range(2):
        gone.add(world[3].member)
        replace(world, 3)
        world.run_until(partial(vote_in_all, world, [METADATA_GROUP, group], members(world)))
    world.run(1_000)
    forgotten = [set(machine.node.host.peers.gone) for machine in world.running]
    world.crash(2)

    world.start(2, is_torn=True)
    world.run_until(lambda: world.is_even(group) and not world[2].disk.doubt_marks)

    assert forgotten == [gone] * 3


def test_a_newcomer_that_dies_before_it_has_caught_up_does_not_get_a_vote(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    client.produce_many(3, group=group)
    old_member = world[3].member
    machine = world.wipe(3, replace=True)
    world.run(100)
    world.start(3)

    world.run_until(lambda: world[1].node.member_of(3) == machine.member)
    world.crash(3)
    world.run(5_000)

    assert voters_of(world.lead(group), group) == {world[1].member, world[2].member, old_member}
    assert voters_of(world.lead(METADATA_GROUP), METADATA_GROUP) >= {world[1].member, world[2].member}
    assert machine.member not in voters_of(world.lead(METADATA_GROUP), METADATA_GROUP)


def test_a_fourth_broker_votes_on_the_metadata_and_a_sixth_only_listens() -> None:
    world = World()
    world.run_until(world.is_serving)

    for broker_id in (4, 5, 6):
        world.add(broker_id)
        world.start(broker_id)
        world.run_until(world.is_serving)
    world.run(5_000)

    membership = world.lead(METADATA_GROUP).node.host.groups[METADATA_GROUP].membership
    assert set(membership.voters) == {world[broker_id].member for broker_id in (1, 2, 3, 4, 5)}
    assert set(membership.learners) == {world[6].member}


def test_whoever_votes_on_the_metadata_goes_on_when_a_broker_of_a_lower_id_comes() -> None:
    world = World(metadata_voters_max=3)
    world.run_until(world.is_serving)
    replace(world, 1)
    world.run_until(world.is_serving)
    voters = members(world)
    world.run_until(lambda: vote_in_all(world, [METADATA_GROUP], voters))

    for broker_id in (4, 5):
        world.add(broker_id)
        world.start(broker_id)
        world.run_until(world.is_serving)
    world.run(3_000)

    assert voters_of(world.lead(METADATA_GROUP), METADATA_GROUP) == voters


def test_leaders_go_home_when_their_broker_is_back(world: World, client: Client) -> None:
    groups = client.create_topic(assignments=((1, 2, 3), (2, 3, 1), (3, 1, 2)))
    world.run_until(lambda: all(world.is_led(group) for group in groups))
    world.crash(2)
    away = world.lead(groups[1])

    world.start(2)
    world.run_until(lambda: all(world.is_led(group) for group in groups))
    world.run(world[1].config.leader_balance_interval_ms + 1_000)

    assert away is not world[2]
    assert [world.lead(group).broker_id for group in groups] == [1, 2, 3]


def test_a_broker_that_stops_hands_all_that_it_leads_over_first(world: World, client: Client) -> None:
    groups = client.create_topic(assignments=((1, 2, 3), (1, 3, 2)))
    world.run_until(lambda: all(world.is_led(group) for group in (METADATA_GROUP, *groups)))
    leader = world.lead(METADATA_GROUP)
    world.run(6_000)
    before_ms = world.now_ms

    while leader.node.replicas.hand_over(world.now_ms):
        leader.wake()
        world.run(20)
        assert world.now_ms - before_ms < 1_000

    assert all(world.lead(group) is not leader for group in (METADATA_GROUP, *groups))
    assert world.now_ms - before_ms < 500


def test_leadership_does_not_come_back_to_a_broker_that_stops(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    world.run(6_000)
    assert world.lead(group) is world[1]
    world[1].node.replicas.hand_over(world.now_ms)
    world[1].wake()
    world.run(100)

    world.run(2 * world[1].config.leader_balance_interval_ms)

    assert world.lead(group) is not world[1]
