"""Tests of broker/parked.py: what has come is counted once, and what else has changed is told apart."""

from __future__ import annotations

import pytest

from tests.fakes.world import World, make_batch
from tidings.broker.parked import Parked
from tidings.broker.partition import Partition

BATCH = make_batch(b"a", b"b")


class Reader:
    """A parked partition and what was told of it."""

    def __init__(self, partition: Partition, fetch_offset: int) -> None:
        self.moves: list[int | None] = []
        self.parked = Parked(partition, fetch_offset, lambda new_bytes, _: self.moves.append(new_bytes))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    """Offsets 0 to 3."""
    partition = world.create_topic("t")[0]
    world.fill(partition, BATCH, BATCH)
    return partition


@pytest.mark.parametrize("fetch_offset", [0, 4])
def test_only_what_is_new_is_counted(world: World, partition: Partition, fetch_offset: int) -> None:
    reader = Reader(partition, fetch_offset)

    world.fill(partition, BATCH)
    world.fill(partition, BATCH, BATCH)

    assert reader.moves == [len(BATCH), 2 * len(BATCH)]


def test_batches_before_the_offset_do_not_count(world: World, partition: Partition) -> None:
    reader = Reader(partition, 6)

    world.fill(partition, BATCH)
    world.fill(partition, BATCH)

    assert reader.moves == [0, len(BATCH)]


def test_another_leader_is_a_reason_to_look_again(world: World, partition: Partition) -> None:
    reader = Reader(partition, 4)

    world.follow(partition.group, 2, epoch=2)

    assert reader.moves == [None]


def test_another_epoch_is_a_reason_to_look_again(world: World, partition: Partition) -> None:
    reader = Reader(partition, 4)

    world.lead(partition.group, epoch=3)
    world.fill(partition, BATCH)

    assert set(reader.moves) == {None}


def test_batches_that_are_in_memory_no_more_are_a_reason_to_look_again(
    world: World, partition: Partition
) -> None:
    reader = Reader(partition, 4)
    world.logs[partition.group].memory_start = 6

    world.fill(partition, BATCH)

    assert reader.moves == [None]


def test_who_has_left_is_told_nothing(world: World, partition: Partition) -> None:
    reader = Reader(partition, 4)

    reader.parked.leave()
    world.fill(partition, BATCH)

    assert reader.moves == []
