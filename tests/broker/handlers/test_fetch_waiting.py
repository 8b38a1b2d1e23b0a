"""Tests of broker/handlers/fetch.py: requests that wait for many bytes, and name a partition often."""

from __future__ import annotations

import pytest

from tests.broker.handlers.test_fetch import BATCH, body_of, datas_of, offsets_in, only, send, want
from tests.fakes.world import World, make_batch
from tidings.broker.partition import Partition
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    return world.create_topic("t")[0]


def test_what_comes_little_by_little_is_added_up(world: World, partition: Partition) -> None:
    world.fill(partition, BATCH)
    asked = send(world, want(0), min_bytes=10 * len(BATCH))

    for _ in range(8):
        world.fill(partition, BATCH)
    assert not asked.is_answered
    world.fill(partition, BATCH)

    assert len(only(asked).records) == 10


def test_bytes_of_all_partitions_are_added_up(world: World) -> None:
    first, second = world.create_topic("u", partition_count=2)
    body = body_of(want(0), want(0, 1), topic="u", min_bytes=2 * len(BATCH))
    asked = world.send(ApiKey.FETCH, 12, body)

    world.fill(first, BATCH)
    assert not asked.is_answered
    world.fill(second, BATCH)

    assert [len(data.records) for data in datas_of(asked)] == [1, 1]


def test_there_is_no_waiting_for_more_than_an_answer_may_hold(world: World, partition: Partition) -> None:
    body = body_of(want(0), min_bytes=100 * len(BATCH), max_bytes=2 * len(BATCH))
    asked = world.send(ApiKey.FETCH, 12, body)

    world.fill(partition, BATCH)
    assert not asked.is_answered
    world.fill(partition, BATCH)

    assert offsets_in(only(asked).records) == [0, 2]


def test_batches_that_do_not_fit_together_do_not_keep_a_reader_waiting(
    world: World, partition: Partition
) -> None:
    large = make_batch(b"x" * 500)
    asked = send(world, want(0, bytes_max=len(large) + 10), min_bytes=2 * len(large))

    world.fill(partition, large)
    assert not asked.is_answered
    world.fill(partition, large)

    assert offsets_in(only(asked).records) == [0]


def test_a_reader_that_waits_on_hears_of_a_new_leader(world: World, partition: Partition) -> None:
    asked = send(world, want(0), min_bytes=10 * len(BATCH))
    world.fill(partition, BATCH)
    world.lead(partition.group, epoch=2)

    world.fill(partition, BATCH)
    assert not asked.is_answered
    world.follow(partition.group, 2, epoch=3)

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_is_named_often_is_answered_once(world: World, partition: Partition) -> None:
    world.fill(partition, BATCH, BATCH)

    asked = send(world, want(2), want(0), want(2))

    assert offsets_in(only(asked).records) == [2]
