"""Tests of node/replicas.py in whole brokers: what becomes of a topic's groups when it is deleted."""

from __future__ import annotations

from tests.node.client import Client, fetched
from tests.node.world import CHECKPOINT_MS, World
from tidings.broker.cluster import METADATA_GROUP
from tidings.protocol.errors import ErrorCode


def checkpoint_all(world: World) -> None:
    """Let every broker make a checkpoint of all that it holds."""
    world.run(CHECKPOINT_MS + 500)


def test_a_deleted_topic_leaves_nothing_in_memory_or_on_disk(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    world.run(100)

    client.delete_topic()
    world.run(100)
    checkpoint_all(world)

    for machine in world.running:
        assert group not in machine.node.host.groups
        assert group not in machine.node.replicas.by_group
        assert group not in machine.node.host.leader_table
        assert group not in machine.disk.groups
        assert group not in machine.disk.log.groups()


def test_a_reader_parked_at_a_deleted_topic_is_answered(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    asked = client.send_fetch(0, to=world.lead(group), wait_ms=30_000)

    client.delete_topic()
    client.wait(asked)

    assert fetched(asked).error_code != ErrorCode.NONE


def test_a_broker_that_was_down_removes_the_files_of_a_topic_deleted_meanwhile(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    checkpoint_all(world)
    world.crash(3)

    client.delete_topic()
    world.start(3)
    world.run_until(lambda: group not in world[3].disk.groups)

    assert group not in world[3].node.host.groups


def test_a_broker_that_was_down_for_long_removes_them_too(world: World, client: Client) -> None:
    """The metadata's log is cut meanwhile: it gets a copy of the whole state instead of the deletion."""
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    checkpoint_all(world)
    world.crash(3)

    client.delete_topic()
    for broker_id in (1, 2):
        checkpoint_all(world)
        world.restart(broker_id)
        world.lead(METADATA_GROUP)
    applied_index = world[1].node.metadata.applied_index
    world.start(3)
    was_open = group in world[3].node.host.groups
    world.run_until(lambda: group not in world[3].disk.groups)

    assert was_open
    assert world[3].node.host.groups[METADATA_GROUP].log.start_index >= applied_index
    assert group not in world[3].node.host.groups
    assert group not in world[3].node.host.leader_table


def test_the_number_of_a_deleted_topics_group_is_never_used_again(world: World, client: Client) -> None:
    numbers = client.create_topic(assignments=((1, 2, 3), (1, 2, 3)))
    client.delete_topic()
    checkpoint_all(world)
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)
    world.run_until(world.is_serving)

    again = client.create_topic()

    assert set(again).isdisjoint(numbers)
    assert again[0] > max(numbers)


def test_a_topic_of_the_same_name_begins_empty(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    client.delete_topic()

    (again,) = client.create_topic()

    assert client.produce(b"first", group=again) == 0
    assert client.read_all(to=world.lead(again)) == [b"first"]


def test_messages_for_a_group_that_is_not_open_yet_are_not_lost_for_long(
    world: World, client: Client
) -> None:
    slow = world[3]
    slow.holds_flushes = True  # it applies nothing, so it does not hear of the topic
    asked = client.send_create_topic()
    world.run(200)
    (group,) = client.groups_of()
    client.produce_many(5, group=group)
    was_open = group in slow.node.host.groups

    slow.release_flushes()
    client.wait(asked)
    world.run_until(lambda: world.is_even(group))

    assert not was_open
    assert slow.replica(group).high_watermark == 5


def test_a_group_whose_topic_is_not_known_yet_keeps_its_part_of_the_log(world: World, client: Client) -> None:
    """A start finds entries of a group before it has applied the command that made its topic."""
    (group,) = client.create_topic()
    client.produce_many(40, group=group)
    world.run_until(lambda: world.is_even(group))
    for broker_id in (1, 2, 3):
        world.crash(broker_id)

    lonely = world.start(3)  # without a majority it learns of no commit
    world.run(3 * CHECKPOINT_MS)
    was_open = group in lonely.node.host.groups
    world.restart(3)
    world.start(1)
    world.run_until(lambda: world.is_led(group) and world.is_even(group))

    assert not was_open
    assert len(client.read_all(to=world.lead(group))) == 40
