"""Tests of node/checkpoints.py with whole brokers: the log stays short, and nothing is lost by a cut."""

from __future__ import annotations

from tests.node.client import Client, produced
from tests.node.machine import Machine, entries_of
from tests.node.world import CHECKPOINT_MS, World
from tidings.protocol.errors import ErrorCode


def rounds(world: World, client: Client, group: int, count: int, *, topic: str = "t") -> None:
    """Fill some files of the log, and let them be checkpointed, so many times."""
    for _ in range(count):
        client.produce_many(40, group=group, topic=topic)
        world.run(CHECKPOINT_MS + 500)


def file_count(machine: Machine) -> int:
    return machine.disk.log.newest_file - machine.disk.log.oldest_file + 1


def test_the_log_stays_short_and_all_is_there_after_a_crash(world: World, client: Client) -> None:
    (group,) = client.create_topic()

    rounds(world, client, group, 5)
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)

    assert all(file_count(machine) <= 5 for machine in world.running)
    assert len(client.read_all(to=world.lead(group))) == 200


def test_a_leader_without_a_majority_keeps_its_tail_through_cuts_of_the_log(
    world: World, client: Client
) -> None:
    """The entry that it cannot commit is written again in each round."""
    (group,) = client.create_topic()
    (alone,) = client.create_topic("alone", assignments=((1,),))
    leader = world.lead(group)
    assert leader is world[1]
    for follower in (2, 3):
        world[follower].holds_flushes = True
    client.send_values(b"held", to=leader)
    world.run(20)
    tail_index = leader.replica(group).group.last_index
    oldest_file = leader.disk.log.oldest_file

    rounds(world, client, alone, 4, topic="alone")
    written_count = entries_of(leader.flushes, group).count(tail_index)
    is_cut = leader.disk.log.oldest_file > oldest_file
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)
    leader = world.lead(group)

    assert is_cut
    assert written_count > 1
    assert client.read_all(to=leader) == [b"held"]


def test_storage_that_does_not_keep_up_delays_the_cut_and_loses_nothing(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    follower = next(machine for machine in world.running if machine is not world.lead(group))
    follower.holds_jobs = True
    rounds(world, client, group, 3)
    oldest_file = follower.disk.log.oldest_file

    world.restart(follower.broker_id)
    world.run_until(lambda: world.is_even(group))

    assert oldest_file == 1
    assert follower.replica(group).high_watermark == 120


def test_restarts_between_rounds_lose_nothing(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    for broker_id in (1, 2, 3, 1, 2, 3):
        rounds(world, client, group, 1)
        world.crash(broker_id, keeps_flush=True)
        world.run(10)
        world.start(broker_id)
        world.run_until(lambda: world.is_led(group) and world.is_even(group))

    assert len(client.read_all(to=world.lead(group))) == 240


def test_a_damaged_replica_that_nobody_refills_holds_the_log_no_longer_than_twice_its_length(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    (alone,) = client.create_topic("alone", assignments=((1,),))
    client.produce(b"kept", group=group)
    world.run_until(lambda: world.is_even(group))
    world[1].damage(group)
    world.loses = lambda _sender, receiver, _frame: receiver is world[1]
    world.run(20)
    replica = world[1].replica(group).group

    rounds(world, client, alone, 6, topic="alone")
    was_damaged = replica.damaged
    world.loses = lambda *_: False
    world.restart(1)
    world.run_until(lambda: world.is_even(group))

    assert was_damaged
    assert file_count(world[1]) <= 9
    assert client.read_all(to=world.lead(group)) == [b"kept"]


def test_a_broker_whose_log_is_overfull_takes_no_records_until_it_is_shorter(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic("alone", assignments=((1,),))
    world[1].holds_jobs = True
    while not world[1].node.checkpoints.is_overfull:
        client.wait(client.send_values(b"x", to=world.lead(group), topic="alone"))

    refused = produced(client.wait(client.send_values(b"no room", to=world[1], topic="alone")))
    world[1].release_jobs()
    world.run_until(lambda: not world[1].node.checkpoints.is_overfull)
    taken = produced(client.wait(client.send_values(b"room", to=world[1], topic="alone")))

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert taken.error_code == ErrorCode.NONE


def test_a_follower_without_room_takes_no_records_but_commands_and_catches_up_later(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    (other,) = client.create_topic("other")
    follower = next(machine for machine in world.running if machine is not world.lead(group))
    follower.node.is_storage_full = True

    client.produce_many(5, group=group)
    end_without_room = follower.replica(group).end_offset
    client.delete_topic("other")
    world.run_until(lambda: other not in follower.node.replicas.by_group)
    follower.node.is_storage_full = False
    world.run_until(lambda: world.is_even(group))

    assert end_without_room == 0
    assert follower.replica(group).high_watermark == 5
