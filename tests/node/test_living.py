"""Tests of node/living.py: who answers just now, who leads, and whose replicas keep up."""

from __future__ import annotations

import pytest

from tests.node.client import Client
from tests.node.machine import Machine
from tests.node.world import World
from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.ports import NO_LEADER
from tidings.protocol.apis import ApiKey
from tidings.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

LAG_MS = 2_000
LISTED_MS = 60_000


@pytest.fixture
def world() -> World:
    """Three brokers that serve; who is behind for two seconds does not keep up."""
    world = World(replica_lag_time_max_ms=LAG_MS)
    world.run_until(world.is_serving)
    return world


def isr_told_by(client: Client, machine: Machine) -> set[int]:
    """As a client sees it, which may be an answer that was kept."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    asked = client.wait(machine.request(ApiKey.METADATA, 9, body))
    (topic,) = asked.answer(MetadataResponse).topics
    return set(topic.partitions[0].isr_nodes)


def test_all_connected_brokers_are_alive_and_this_one_is(world: World) -> None:
    assert set(world[1].node.living.alive()) == {1, 2, 3}
    assert set(world[1].node.living.members()) == {world[2].member, world[3].member}


def test_a_broker_that_is_gone_is_listed_for_a_while(world: World) -> None:
    world.crash(3)
    world.run(100)
    living = world[1].node.living
    alive, listed = set(living.alive()), set(living.listed())

    world.run(LISTED_MS)

    assert (alive, listed) == ({1, 2}, {1, 2, 3})
    assert set(living.listed()) == {1, 2}


def test_a_broker_that_is_back_is_alive_again(world: World) -> None:
    world.restart(3)
    world.run(100)

    assert set(world[1].node.living.alive()) == {1, 2, 3}


def test_every_broker_names_the_same_controller(world: World) -> None:
    controllers = {machine.node.living.controller_id for machine in world.running}

    assert controllers == {world.lead(METADATA_GROUP).broker_id}


def test_a_leader_that_does_not_answer_is_none(world: World, client: Client) -> None:
    (group,) = client.create_topic(assignments=((3,),))
    epoch = world[1].node.living.leader_of(group).epoch

    world.crash(3)
    world.run(100)

    leader = world[1].node.living.leader_of(group)
    assert (leader.broker_id, leader.epoch) == (NO_LEADER, epoch)


def test_a_group_that_nobody_has_heard_of_has_no_leader(world: World) -> None:
    assert world[1].node.living.leader_of(999).broker_id == NO_LEADER


def test_every_change_of_what_is_answered_has_another_version(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    living = world[1].node.living
    versions = [living.version]

    world.crash(3)
    world.run(100)
    versions.append(living.version)
    world.start(3)
    world.run(100)
    versions.append(living.version)
    leader = world.lead(group)
    leader.replica(group).group.transfer(world[2].member, world.now_ms)
    leader.wake()
    world.run(100)
    versions.append(living.version)

    assert len(set(versions)) == len(versions)


def test_all_replicas_that_have_everything_are_in_sync(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(3, group=group)
    world.run(2 * LAG_MS)

    assert isr_told_by(client, world.lead(group)) == {1, 2, 3}


def test_a_replica_that_stays_behind_is_in_sync_no_longer_and_clients_see_it(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    slow = next(machine for machine in world.running if machine is not leader)
    slow.holds_flushes = True
    client.produce(b"x", group=group)
    isr_at_first = isr_told_by(client, leader)

    world.run(LAG_MS + 1_500)
    isr_while_behind = isr_told_by(client, leader)
    slow.release_flushes()
    world.run(2_000)

    assert isr_at_first == {1, 2, 3}
    assert isr_while_behind == {1, 2, 3} - {slow.broker_id}
    assert isr_told_by(client, leader) == {1, 2, 3}


def test_a_replica_whose_broker_is_gone_is_in_sync_no_longer(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    gone = next(machine for machine in world.running if machine is not leader)

    world.crash(gone.broker_id)
    world.run(100)

    assert isr_told_by(client, leader) == {1, 2, 3} - {gone.broker_id}


def test_who_does_not_lead_names_the_replicas_that_are_alive(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    follower = next(machine for machine in world.running if machine is not world.lead(group))

    assert follower.node.living.in_sync(group, (3, 2, 1)) == [3, 2, 1]


def test_a_replica_that_only_listens_is_not_in_sync(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    old = next(machine for machine in world.running if machine is not leader)
    newcomer = world.wipe(old.broker_id, replace=True)
    world.run(100)
    world.start(newcomer.broker_id)

    world.run_until(lambda: newcomer.member in leader.replica(group).group.membership.learners)

    assert newcomer.broker_id not in isr_told_by(client, leader)


def test_a_broker_that_stops_is_alive_and_is_given_nothing(world: World) -> None:
    world[3].node.replicas.hand_over(world.now_ms)
    world[3].wake()
    world.run(10)
    living = world[1].node.living
    staying, alive = living.staying(), set(living.alive())

    world.restart(3)
    world.run(10)

    assert staying == [world[2].member]
    assert alive == {1, 2, 3}
    assert set(living.staying()) == {world[2].member, world[3].member}
