"""Tests of node/registration.py: who is taken into the cluster, and what the others are told."""

from __future__ import annotations

from tests.node.client import Client
from tests.node.world import World
from tidings.broker.cluster import METADATA_GROUP


def save_checkpoints(world: World) -> None:
    """What was applied so far is in every broker's checkpoint of the metadata."""
    for machine in world.running:
        assert machine.node.save_checkpoint(METADATA_GROUP) is not None
    world.run(1_000)


def test_a_founder_names_the_cluster_and_is_known_to_all(world: World) -> None:
    for machine in world.running:
        cluster = machine.node.broker.cluster
        assert cluster.cluster_id == world.founding.cluster_id
        assert {row.broker_id: row.member for row in cluster.brokers.values()} == world.founding.members


def test_a_new_broker_joins_a_running_cluster(world: World) -> None:
    world.add(4)

    joined = world.start(4)
    world.run_until(lambda: joined.is_registered)

    assert joined.node.broker.cluster.brokers[4].member == joined.member


def test_a_wiped_disk_is_refused_with_the_command_that_replaces_it(world: World) -> None:
    wiped = world.wipe(2)

    world.start(2)
    world.run_until(lambda: wiped.refusal is not None)

    assert not wiped.is_registered
    assert "tidings broker --replace 2" in str(wiped.refusal)
    assert all(world[number].node.broker.cluster.brokers[2].member != wiped.member for number in (1, 3))


def test_a_replaced_broker_becomes_a_voter_in_the_place_of_the_old_one(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce(b"before", group=group)
    old = world[2].member
    fresh = world.wipe(2, replace=True)

    world.start(2)
    world.run_until(lambda: fresh.is_registered)
    world.run_until(
        lambda: all(
            {machine.member for machine in world.running}
            == set(leader.node.host.groups[number].membership.voters)
            for number in (0, group)
            if (leader := world.leader_of(number)) is not None
        )
    )

    assert old not in {machine.member for machine in world.running}
    world.run_until(lambda: world.is_even(group))


def test_a_known_broker_serves_at_once_when_it_comes_back(world: World) -> None:
    save_checkpoints(world)
    for number in (1, 2, 3):
        world.crash(number)

    alone = world.start(2)

    assert alone.is_registered


def test_a_disk_that_was_replaced_is_refused_when_it_comes_back(world: World) -> None:
    save_checkpoints(world)
    returning = world.crash(2)
    fresh = world.add(2, replace=True)
    world.start(2)
    world.run_until(lambda: fresh.is_registered)
    world.crash(2)
    world.machines[2] = returning

    world.start(2)
    assert returning.is_registered
    world.run_until(lambda: returning.refusal is not None)

    assert "tidings broker --replace 2" in str(returning.refusal)
