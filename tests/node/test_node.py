"""Tests of node/node.py: whole brokers, asked as clients ask them."""

from __future__ import annotations

import pytest

from tests.fakes.world import make_batch
from tests.node.client import EARLIEST, LATEST, Client, fetched, produced
from tests.node.machine import Machine
from tests.node.world import World
from tidings.node.freshness import Freshness
from tidings.node.messages import RAFT, PeerMessageError
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidings.raft import wire
from tidings.raft.messages import VoteReply


def followers_of(world: World, group: int) -> list[Machine]:
    leader = world.leader_of(group)
    return [machine for machine in world.running if machine is not leader]


def leaders_told_by(client: Client, machine: Machine) -> list[int]:
    """The leaders that the broker names for the topic."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    asked = client.wait(machine.request(ApiKey.METADATA, 9, body))
    (topic,) = asked.answer(MetadataResponse).topics
    return [partition.leader_id for partition in topic.partitions]


def test_a_new_topic_begins_at_zero_with_nothing_to_read(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)

    data = client.fetch(0, to=leader)

    assert (data.high_watermark, data.log_start_offset, data.records) == (0, 0, [])
    assert client.offset_of(LATEST, to=leader).offset == 0
    assert client.offset_of(EARLIEST, to=leader).offset == 0


def test_a_created_topic_is_known_to_every_broker_with_its_leaders_when_that_is_answered(
    world: World, client: Client
) -> None:
    client.create_topic(assignments=((1, 2, 3), (2, 3, 1), (3, 1, 2)))

    for machine in world.running:
        assert min(leaders_told_by(client, machine)) > 0


def test_brokers_without_a_replica_hear_of_its_leader_too(world: World, client: Client) -> None:
    before_ms = world.now_ms

    client.create_topic(assignments=((2,),))

    assert world.now_ms - before_ms < 200
    assert [leaders_told_by(client, machine) for machine in world.running] == [[2], [2], [2]]


def test_brokers_without_a_replica_hear_of_its_next_leader() -> None:
    world = World(broker_count=4)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic(assignments=((1, 2, 3),))
    first = leaders_told_by(client, world[4])

    world.crash(1)
    leader = world.lead(group)
    world.run(100)

    assert first == [1]
    assert leaders_told_by(client, world[4]) == [leader.broker_id]


def test_what_is_produced_is_read_in_order_and_bit_for_bit(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)

    offsets = [client.produce(b"one", b"two", group=group), client.produce(b"three", group=group)]

    assert offsets == [0, 2]
    assert client.read_all(to=leader) == [b"one", b"two", b"three"]


def test_acks_all_is_answered_when_a_majority_has_it_on_disk(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    first, second = followers_of(world, group)
    first.holds_flushes = second.holds_flushes = True

    asked = client.send_values(b"safe", to=leader)
    world.run(300)
    was_answered = asked.is_answered
    first.release_flushes()
    client.wait(asked)

    assert not was_answered
    assert produced(asked).error_code == ErrorCode.NONE


def test_a_leader_whose_own_disk_is_slow_answers_by_the_disks_of_the_others(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    leader.holds_flushes = True

    asked = client.wait(client.send_values(b"safe elsewhere", to=leader))

    assert produced(asked).error_code == ErrorCode.NONE
    assert client.fetch(0, to=leader).high_watermark == 1


def test_acks_one_is_answered_when_the_leaders_disk_has_it(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    for follower in followers_of(world, group):
        follower.holds_flushes = True

    asked = client.wait(client.send_values(b"here", to=leader, acks=1))

    assert produced(asked).error_code == ErrorCode.NONE
    assert client.fetch(0, to=leader).high_watermark == 0


def test_acks_zero_is_never_answered_and_the_batch_is_there(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)

    asked = client.send_values(b"hurry", to=leader, acks=0)
    world.run(100)

    assert not asked.is_answered
    assert not asked.closed
    assert client.read_all(to=leader) == [b"hurry"]


def test_a_produce_request_to_a_follower_is_told_who_leads(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    follower = followers_of(world, group)[0]

    answer = produced(client.send_values(b"lost", to=follower))

    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is not None
    assert answer.current_leader.leader_id == leader.broker_id


def test_a_parked_fetch_is_answered_when_a_batch_is_committed(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    asked = client.send_fetch(0, to=leader, wait_ms=10_000)
    world.run(200)
    was_answered = asked.is_answered
    before_ms = world.now_ms

    client.produce(b"news", group=group)
    client.wait(asked)

    assert not was_answered
    assert fetched(asked).high_watermark == 1
    assert world.now_ms - before_ms <= 20


def test_a_parked_fetch_is_answered_empty_when_its_time_is_up(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)

    asked = client.send_fetch(0, to=leader, wait_ms=500)
    world.run(600)

    assert fetched(asked).error_code == ErrorCode.NONE
    assert fetched(asked).records == []


def test_a_batch_that_is_not_committed_is_not_read(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    for follower in followers_of(world, group):
        follower.holds_flushes = True

    client.send_values(b"not yet", to=leader)
    world.run(100)

    assert client.fetch(0, to=leader).records == []


def test_batches_that_left_memory_are_read_from_disk() -> None:
    world = World(recent_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    client.produce_many(30, group=group, size=200)
    leader = world.lead(group)
    world.run(200)

    window_first = leader.replica(group).group.log.window_first
    values = client.read_all(to=leader)

    assert window_first > 20
    assert [value.rstrip(b"\0") for value in values] == [b"%d" % number for number in range(30)]


def test_times_are_found_in_memory_and_on_disk() -> None:
    world = World(recent_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    times = []
    for number in range(20):
        times.append(world.now_ms)
        client.produce(b"%d" % number + bytes(200), group=group)
        world.run(30)
    leader = world.lead(group)

    found = [client.offset_of(time_ms, to=leader).offset for time_ms in times]

    assert leader.replica(group).group.log.window_first > 10
    assert found == list(range(20))


def test_one_broker_alone_serves() -> None:
    world = World(broker_count=1)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic(assignments=((1,),))

    client.produce_many(3, group=group)
    world.restart(1)
    world.run_until(world.is_serving)

    assert len(client.read_all(to=world.lead(group))) == 3


def test_five_brokers_serve_without_two() -> None:
    world = World(broker_count=5)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic(assignments=((1, 2, 3, 4, 5),))
    client.produce(b"one", group=group)

    world.crash(1)
    world.crash(2)
    client.produce(b"two", group=group)

    assert client.read_all(to=world.lead(group)) == [b"one", b"two"]


def test_batches_of_several_partitions_are_saved_by_one_flush(world: World, client: Client) -> None:
    groups = client.create_topic(assignments=((1, 2, 3), (1, 2, 3)))
    world.run_until(lambda: all(world.is_led(group) for group in groups))
    leader = world.lead(groups[0])
    flush_count = len(leader.flushes)

    for index in range(2):
        client.send_batch(make_batch(b"x", timestamps=(world.now_ms,)), to=leader, index=index)
    world.run(10)

    written = [flush for flush in leader.flushes[flush_count:] if set(flush.last) >= set(groups)]
    assert len(written) == 1


@pytest.mark.parametrize(("sender", "receiver"), [(102, 101), (103, 102)], ids=["for another", "to another"])
def test_a_peer_speaks_for_itself_alone_and_to_this_broker_alone(
    world: World, sender: int, receiver: int
) -> None:
    vote = VoteReply(0, 1, sender, receiver, pre=False, granted=True, asked_term=1)
    frame = RAFT + b"".join(wire.encode([vote]))

    with pytest.raises(PeerMessageError, match=f"member {sender} to member {receiver}"):
        world[1].node.receive(103, frame, world.now_ms)


class CountedFreshness(Freshness):
    """How often those who wait for leaders are looked at."""

    check_count = 0

    def check(self) -> None:
        self.check_count += 1
        super().check()


def test_committed_records_have_nobody_look_for_leaders_but_a_connection_has(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    follower = followers_of(world, group)[0]
    leader.node.freshness = freshness = CountedFreshness(leader.node)

    client.produce_many(10, group=group)
    count_after_records = freshness.check_count
    leader.node.peer_up(follower.member, follower.broker_id, world.now_ms)
    leader.turn()

    assert count_after_records == 0
    assert freshness.check_count == 1
