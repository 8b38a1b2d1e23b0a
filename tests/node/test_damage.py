"""Tests of node/node.py: replicas whose files cannot be trusted, or that are below the leader's log start."""

from __future__ import annotations

import pytest

from tests.node.client import Client, fetched, produced
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.node.messages import RAFT
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import CreateTopicsResponse
from tidings.raft import wire
from tidings.raft.entries import Entry, EntryKind
from tidings.raft.messages import Append

SMALL_SEGMENTS = {"segment.bytes": "16384"}


def follower_of(world: World, group: int) -> Machine:
    leader = world.lead(group)
    return next(machine for machine in world.running if machine is not leader)


def checkpoint_all(world: World) -> None:
    """Let every broker make a checkpoint of all that it holds."""
    world.run(CHECKPOINT_MS + 500)


def is_whole(machine: Machine, group: int) -> bool:
    """Whether nothing of the replica's damage or doubt is left, in memory or on the disk."""
    replica = machine.node.host.groups.get(group)
    marks = machine.disk.damage_marks | machine.disk.doubt_marks
    return replica is not None and not replica.damaged and not replica.doubtful and group not in marks


@pytest.fixture
def group(world: World, client: Client) -> int:
    """A topic of three replicas with ten records, on all disks."""
    (group,) = client.create_topic()
    client.produce_many(10, group=group)
    world.run_until(lambda: world.is_even(group))
    return group


def test_a_replica_found_damaged_at_the_start_is_refilled_by_its_leader(
    world: World, client: Client, group: int
) -> None:
    follower = follower_of(world, group)
    checkpoint_all(world)
    world.crash(follower.broker_id)
    follower.disk.damage_marks.add(group)

    world.start(follower.broker_id)
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))
    client.produce(b"more", group=group)
    world.run_until(lambda: world.is_even(group))
    world.run(100)

    assert follower.disk.groups[group].next_offset == 11
    assert follower.replica(group).high_watermark == 11


def test_a_replica_found_damaged_while_it_runs_is_refilled_by_its_leader(
    world: World, client: Client, group: int
) -> None:
    follower = follower_of(world, group)
    checkpoint_all(world)

    follower.damage(group)
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))
    client.produce(b"more", group=group)
    world.run_until(lambda: world.is_even(group))

    assert follower.replica(group).high_watermark == 11


def test_a_leader_found_damaged_gives_office_up_and_is_refilled(
    world: World, client: Client, group: int
) -> None:
    leader = world.lead(group)

    leader.damage(group)
    world.run(50)
    world.run_until(lambda: world.is_even(group) and is_whole(leader, group))

    assert len(client.read_all(to=world.lead(group))) == 10


def test_a_read_that_finds_damage_is_answered_with_an_error_and_the_replica_is_refilled() -> None:
    world = World(recent_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    client.produce_many(30, group=group, size=200)
    world.run(200)
    leader = world.lead(group)
    leader.disk.bad_reads.add(group)

    answer = fetched(client.wait(client.send_fetch(0, to=leader)))
    world.run_until(lambda: world.is_even(group) and is_whole(leader, group))

    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(client.read_all(to=world.lead(group))) == 30


@pytest.mark.parametrize("after_ms", range(1, 16, 2))
def test_a_refill_that_a_crash_interrupts_is_begun_again(
    world: World, client: Client, group: int, after_ms: int
) -> None:
    follower = follower_of(world, group)
    checkpoint_all(world)

    follower.damage(group)
    world.run(after_ms)
    world.restart(follower.broker_id)
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))

    assert follower.replica(group).high_watermark == 10


def test_a_replica_is_damaged_again_while_it_is_refilled(world: World, client: Client, group: int) -> None:
    follower = follower_of(world, group)

    for _ in range(8):
        follower.damage(group)
        world.run(3)
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))

    assert follower.replica(group).high_watermark == 10


def test_what_was_being_written_when_damage_was_found_counts_for_nothing(
    world: World, client: Client, group: int
) -> None:
    follower = follower_of(world, group)
    follower.holds_jobs = True
    client.produce_many(5, group=group)
    world.run(100)

    follower.damage(group)
    follower.release_jobs()
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))
    checkpoint_all(world)
    world.restart(follower.broker_id)
    world.run_until(lambda: world.is_even(group))

    assert follower.replica(group).high_watermark == 15


def test_memory_is_given_back_rightly_after_a_refill() -> None:
    world = World(recent_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    client.produce_many(4, group=group, size=200)
    follower = follower_of(world, group)
    world.run(100)

    follower.damage(group)
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))
    follower.holds_jobs = True
    client.produce_many(20, group=group, size=200)
    other = client.create_topic("other", assignments=((follower.broker_id,),))[0]
    follower.release_jobs()
    client.produce_many(20, group=other, topic="other", size=200)
    world.run_until(lambda: world.is_even(group))

    assert follower.replica(group).high_watermark == 24


def test_a_cut_tail_is_asked_after_before_the_replica_votes_again(
    world: World, client: Client, group: int
) -> None:
    follower = follower_of(world, group)
    world.crash(follower.broker_id)

    world.start(follower.broker_id, is_torn=True)
    world.run_until(lambda: group in follower.node.host.groups)
    was_doubtful = follower.replica(group).group.doubtful
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))

    assert was_doubtful


def test_a_whole_cluster_in_doubt_goes_on(world: World, client: Client, group: int) -> None:
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id, is_torn=True)

    world.run_until(lambda: all(is_whole(machine, group) for machine in world.running))

    assert len(client.read_all(to=world.lead(group))) == 10


def test_damaged_metadata_is_fetched_again(world: World, client: Client, group: int) -> None:
    checkpoint_all(world)
    world.crash(3)
    world[3].disk.damage_marks.add(0)

    world.start(3)
    world.run_until(world.is_serving)
    world.run_until(lambda: world.is_even(group))

    assert world[3].node.metadata.applied_index == world[1].node.metadata.applied_index
    assert 0 not in world[3].disk.damage_marks


def test_entries_that_contradict_the_log_cost_one_replica_its_files_and_nothing_else(
    world: World, client: Client, group: int
) -> None:
    leader, follower = world.lead(group), follower_of(world, group)
    held = follower.replica(group).group
    last = held.log.entry_at(held.last_index)
    wrong = Entry(last.index + 1, last.term, EntryKind.RECORDS, last.next_offset + 7, 1, b"seven too far")
    append = Append(group, held.term, leader.member, follower.member, last.index, last.term, 0, [wrong], 0, 0)

    follower.receive(leader.member, RAFT + b"".join(wire.encode([append])))
    world.run(1)
    was_damaged = follower.replica(group).group.damaged and group in follower.disk.damage_marks
    world.run_until(lambda: world.is_even(group) and is_whole(follower, group))
    client.produce(b"more", group=group)
    world.run_until(lambda: world.is_even(group))

    assert was_damaged
    assert follower.replica(group).high_watermark == 11


# -- below the log start


def drop_old_segments(world: World, client: Client, group: int) -> None:
    """Fill some segments and move the log start, so that the leader's log begins later."""
    for _ in range(40):
        client.produce(bytes(2_000), group=group)
    checkpoint_all(world)
    client.delete_records(35, group=group)
    world.run(1_000)


def test_a_replica_below_the_leaders_log_start_gets_a_start_and_then_follows(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic(configs=SMALL_SEGMENTS)
    follower = follower_of(world, group)
    client.produce_many(3, group=group)
    world.crash(follower.broker_id)
    drop_old_segments(world, client, group)
    assert world.lead(group).replica(group).group.log.start_index > 10

    world.start(follower.broker_id)
    world.run_until(lambda: world.is_even(group))
    client.produce(b"more", group=group)
    world.run_until(lambda: world.is_even(group))

    replica = follower.replica(group)
    assert replica.log_start_offset == world.lead(group).replica(group).log_start_offset
    assert replica.high_watermark == 44


def test_a_replica_refilled_from_a_later_start_leads_as_any_other(world: World, client: Client) -> None:
    (group,) = client.create_topic(configs=SMALL_SEGMENTS)
    follower = follower_of(world, group)
    world.crash(follower.broker_id)
    drop_old_segments(world, client, group)
    world.start(follower.broker_id)
    world.run_until(lambda: world.is_even(group))
    old = world.lead(group)

    old.replica(group).group.transfer(follower.member, world.now_ms)
    old.wake()
    world.run_until(lambda: world.leader_of(group) is follower and world.is_led(group))

    assert len(client.read_all(to=follower, offset=35)) == 5
    assert client.fetch(34, to=follower).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    world.restart(follower.broker_id)
    world.run_until(lambda: world.is_even(group))


@pytest.mark.parametrize("after_ms", range(1, 30, 3))
def test_a_start_that_a_crash_interrupts_is_taken_again(after_ms: int) -> None:
    world = World()
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic(configs=SMALL_SEGMENTS)
    follower = follower_of(world, group)
    world.crash(follower.broker_id)
    drop_old_segments(world, client, group)

    world.start(follower.broker_id)
    world.run(after_ms)
    world.restart(follower.broker_id)
    world.run_until(lambda: world.is_even(group))

    assert follower.replica(group).high_watermark == 40


# -- one replica alone


def damaged_alone(world: World, client: Client, *, is_running: bool) -> int:
    (group,) = client.create_topic("alone", assignments=((2,),))
    client.produce_many(10, group=group, topic="alone")
    checkpoint_all(world)
    client.produce_many(3, group=group, topic="alone")
    if is_running:
        world[2].damage(group)
    else:
        world.crash(2)
        world[2].disk.damage_marks.add(group)
        world.start(2)
        world.run_until(world.is_serving)
    return group


@pytest.mark.parametrize("is_running", [True, False], ids=["while it runs", "at the start"])
def test_a_damaged_partition_of_one_replica_serves_what_it_has_and_takes_nothing(
    world: World, client: Client, is_running: bool
) -> None:
    group = damaged_alone(world, client, is_running=is_running)
    leader = world.lead(group)

    refused = produced(client.wait(client.send_values(b"no", to=leader, topic="alone")))

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(client.read_all(to=leader, topic="alone")) == 13


def test_a_damaged_partition_of_one_replica_keeps_its_files_and_does_not_hold_the_log_for_ever(
    world: World, client: Client
) -> None:
    group = damaged_alone(world, client, is_running=False)
    (other,) = client.create_topic("other")
    before = world[2].disk.groups[group].entries()

    for _ in range(6):
        client.produce_many(40, group=other, topic="other")
        checkpoint_all(world)
    world.restart(2)
    world.run_until(world.is_serving)

    log = world[2].disk.log
    assert log.newest_file - log.oldest_file <= 8
    assert world[2].disk.groups[group].entries() == before
    assert group in world[2].disk.damage_marks
    assert len(client.read_all(to=world.lead(group), topic="alone")) == 13


# -- one broker alone


def test_a_broker_alone_whose_metadata_is_damaged_serves_what_it_has_and_takes_no_change() -> None:
    world = World(broker_count=1)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic(assignments=((1,),))
    client.produce_many(5, group=group)
    checkpoint_all(world)
    world.crash(1)
    world[1].disk.damage_marks.update({0, group})

    world.start(1)
    world.run_until(world.is_serving)
    refused = client.wait(client.send_create_topic("more", assignments=((1,),)))

    assert refused.answer(CreateTopicsResponse).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(client.read_all(to=world.lead(group))) == 5
    assert world[1].disk.damage_marks == {0, group}
    assert world[1].events.count("replica_read_only") == 2


def test_a_broker_alone_that_can_read_nothing_of_its_metadata_does_not_begin_anew() -> None:
    world = World(broker_count=1)
    client = Client(world)
    world.run_until(world.is_serving)
    client.create_topic(assignments=((1,),))
    checkpoint_all(world)
    world.crash(1)
    disk = world[1].disk
    del disk.groups[0]
    disk.log.begin_life({0: (9, 1)})
    disk.log.cut(disk.log.newest_file)

    world.start(1)
    world.run(5_000)

    assert not world[1].is_registered
    assert world.leader_of(0) is None
