"""Tests of broker/handlers/offset_for_leader_epoch.py: where epochs ended, told by the leader only."""

from __future__ import annotations

import pytest

from tests.fakes.world import World, make_batch
from tidings.broker.partition import Partition
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def ask(world: World, epoch: int, *, known: int = -1, index: int = 0, version: int = 4) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=known, leader_epoch=epoch)
    body = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])])
    response = world.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, body, OffsetForLeaderEpochResponse)
    return response.topics[0].partitions[0]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    """Epoch 1 wrote offsets 0 and 1, epoch 4 wrote 2."""
    partition = world.create_topic("t")[0]
    world.fill(partition, make_batch(b"a", b"b"))
    world.lead(partition.group, epoch=4)
    world.fill(partition, make_batch(b"c"))
    return partition


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "known", "end"),
    [(1, 1, 2), (2, 1, 2), (4, 4, 3), (5, -1, -1), (0, -1, -1), (-1, -1, -1)],
)
def test_an_epoch_ends_where_the_next_begins(
    world: World, partition: Partition, epoch: int, known: int, end: int, version: int
) -> None:
    answer = ask(world, epoch, version=version)

    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, known, end)


@pytest.mark.parametrize(
    ("known", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_clients_of_another_leader_epoch_are_fenced(
    world: World, partition: Partition, known: int, code: ErrorCode
) -> None:
    assert ask(world, 1, known=known).error_code == code


def test_a_follower_refuses(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=5)

    assert ask(world, 1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_unknown_partition(world: World, partition: Partition) -> None:
    assert ask(world, 1, index=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_often_is_answered_once(world: World, partition: Partition) -> None:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=1)
    body = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[asked] * 3)] * 2)

    response = world.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, body, OffsetForLeaderEpochResponse)

    assert [len(topic.partitions) for topic in response.topics] == [1, 0]
