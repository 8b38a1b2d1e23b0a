"""Tests of node/node.py: what becomes of records, readers and producers when leaders change."""

from __future__ import annotations

import pytest

from tests.fakes.world import make_batch
from tests.node.client import LATEST, Client, fetched, produced
from tests.node.machine import Machine
from tests.node.world import World
from tidings.node.messages import RAFT
from tidings.protocol.errors import ErrorCode
from tidings.protocol.records import read_header
from tidings.raft import wire
from tidings.raft.messages import VoteReply

PRODUCER = 4_000


def idempotent(world: World, value: bytes, sequence: int) -> bytes:
    return make_batch(value, timestamps=(world.now_ms,), producer_id=PRODUCER, epoch=0, sequence=sequence)


def test_every_acknowledged_record_survives_one_leader_after_the_other(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    for number in range(6):
        client.produce(b"%d" % number, group=group)
        leader = world.lead(group)
        world.crash(leader.broker_id)
        world.lead(group)
        world.start(leader.broker_id)
    world.run_until(lambda: world.is_even(group))

    values = client.read_all(to=world.lead(group))

    assert values == [b"%d" % number for number in range(6)]


def test_a_killed_leader_is_replaced_within_a_fraction_of_a_second(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    before_ms = world.now_ms

    world.crash(leader.broker_id)
    client.produce(b"on we go", group=group)

    assert world.now_ms - before_ms <= 300


def test_a_change_of_leader_leaves_no_hole_and_raises_the_epoch(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    first = world.lead(group)
    client.produce(b"before", group=group)
    first_epoch = first.replica(group).leader_epoch

    world.crash(first.broker_id)
    second = world.lead(group)

    assert client.offset_of(LATEST, to=second).offset == 1
    assert client.produce(b"after", group=group) == 1
    headers = [read_header(bytes(batch)) for batch in client.fetch(0, to=second).records]
    assert [header.base_offset for header in headers] == [0, 1]
    assert [header.leader_epoch for header in headers] == [first_epoch, second.replica(group).leader_epoch]
    assert second.replica(group).leader_epoch > first_epoch


def test_all_brokers_at_once_come_back_with_all_that_was_acknowledged(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(20, group=group)

    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)

    leader = world.lead(group)
    assert len(client.read_all(to=leader)) == 20


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "uncommitted"])
def test_a_retry_after_a_failover_is_answered_with_the_first_place(
    world: World, client: Client, is_committed: bool
) -> None:
    (group,) = client.create_topic()
    client.produce(b"another's", group=group)
    leader = world.lead(group)
    batch = idempotent(world, b"once", 0)
    client.send_batch(batch, to=leader)
    if is_committed:
        world.run_until(lambda: leader.replica(group).high_watermark == 2)
    else:
        world.run(3)  # the followers have it on disk, and nobody knows that it is committed

    world.crash(leader.broker_id)
    retried = client.wait(client.send_batch(batch, to=world.lead(group)))

    assert (produced(retried).error_code, produced(retried).base_offset) == (ErrorCode.NONE, 1)
    assert client.read_all(to=world.lead(group)) == [b"another's", b"once"]


def test_a_retry_after_all_brokers_restarted_is_answered_with_the_first_place(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    batch = idempotent(world, b"once", 0)
    client.wait(client.send_batch(batch, to=world.lead(group)))
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)

    retried = client.wait(client.send_batch(batch, to=world.lead(group)))

    assert produced(retried).base_offset == 0
    assert client.read_all(to=world.lead(group)) == [b"once"]


def test_a_batch_that_only_the_old_leader_had_is_gone_and_may_be_sent_again(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    old = world.lead(group)
    world.isolate(old.broker_id)
    batch = idempotent(world, b"x", 0)
    lost = client.send_batch(batch, to=old)
    world.run_until(lambda: world.leader_of(group) is not old and world.is_led(group))
    client.produce(b"meanwhile", group=group)

    world.heal()
    world.run_until(lambda: world.is_even(group))
    retried = client.wait(client.send_batch(batch, to=world.lead(group)))

    assert produced(lost).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produced(retried).base_offset == 1
    assert client.read_all(to=world.lead(group)) == [b"meanwhile", b"x"]


def test_a_leader_that_is_cut_off_stops_answering_as_one(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    old = world.lead(group)
    world.isolate(old.broker_id)

    world.run(old.config.election_timeout_ms_min + 600)
    refused = produced(client.send_values(b"late", to=old))
    read = fetched(client.wait(client.send_fetch(0, to=old)))

    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_cut_off_leader_does_not_tell_the_end_of_its_log(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    old = world.lead(group)
    world.isolate(old.broker_id)

    answer = client.offset_of(LATEST, to=old)

    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_readers_parked_at_a_leader_that_loses_office_are_told_at_once(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    asked = client.send_fetch(0, to=leader, wait_ms=30_000)
    home = leader.replica(group).group.membership.voters
    heir = next(member for member in home if member != leader.member)

    leader.replica(group).group.transfer(heir, world.now_ms)
    leader.wake()
    client.wait(asked)

    assert fetched(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_broker_cut_off_from_all_serves_again_when_it_is_back(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce(b"one", group=group)
    cut_off = world.lead(group)
    world.isolate(cut_off.broker_id)
    world.run_until(lambda: world.leader_of(group) is not cut_off and world.is_led(group))
    client.produce(b"two", group=group)

    world.heal()
    world.run_until(lambda: world.is_even(group))

    assert cut_off.replica(group).high_watermark == 2


def test_a_follower_far_behind_is_fed_from_the_leaders_disk() -> None:
    world = World(recent_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    leader = world.lead(group)
    follower = next(machine for machine in world.running if machine is not leader)
    world.crash(follower.broker_id)
    client.produce_many(40, group=group, size=300)
    world.run(200)
    assert leader.replica(group).group.log.window_first > 20

    world.start(follower.broker_id)
    world.run_until(lambda: world.is_even(group))

    assert follower.replica(group).high_watermark == 40


class LastVote:
    """The frame that makes a candidate the leader is taken off the link, to be handed in by the test."""

    def __init__(self, candidate: Machine, group: int) -> None:
        self._candidate = candidate
        self._group = group
        self.taken: list[tuple[int, bytes]] = []  # (sending member, frame)

    def __call__(self, sender: Machine, receiver: Machine, frame: bytes) -> bool:
        if receiver is not self._candidate or frame[:1] != RAFT:
            return False
        is_vote = any(
            isinstance(message, VoteReply) and message.group == self._group and message.granted
            for message in wire.decode(frame, len(RAFT))
        )
        if is_vote:
            self.taken.append((sender.member, frame))
        return is_vote


def test_a_batch_sent_again_in_the_moment_of_an_election_is_not_taken_twice(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic()
    old = world.lead(group)
    heir, third = (machine for machine in world.running if machine is not old)
    old.holds_flushes = third.holds_flushes = True
    batch = idempotent(world, b"once", 0)
    client.send_batch(batch, to=old)
    world.run(20)
    world.loses = vote = LastVote(heir, group)
    old.replica(group).group.transfer(heir.member, world.now_ms)
    old.wake()
    third.release_flushes()
    world.run_until(lambda: bool(vote.taken))

    heir.node.receive(*vote.taken[0], world.now_ms)
    has_won = heir.replica(group).group.is_leader
    at_once = produced(client.send_batch(batch, to=heir))
    old.release_flushes()
    later = produced(client.wait(client.send_batch(batch, to=world.lead(group))))

    assert has_won
    assert at_once.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (later.error_code, later.base_offset) == (ErrorCode.NONE, 0)
    assert client.read_all(to=world.lead(group)) == [b"once"]
