"""Tests of broker/handlers/delete_records.py: the log start moves when a majority has agreed, not before."""

from __future__ import annotations

import pytest

from tests.fakes.world import Asked, World, make_batch
from tidings.broker.partition import Partition
from tidings.broker.ports import LogFull
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

TIMEOUT_MS = 5_000


def send(world: World, *offsets: int, version: int = 2, topic: str = "t") -> Asked:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in enumerate(offsets)
    ]
    body = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=TIMEOUT_MS
    )
    return world.send(ApiKey.DELETE_RECORDS, version, body)


def results_of(asked: Asked) -> list[DeleteRecordsPartitionResult]:
    return [result for topic in asked.answer(DeleteRecordsResponse).topics for result in topic.partitions]


def only(asked: Asked) -> DeleteRecordsPartitionResult:
    (result,) = results_of(asked)
    return result


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    partition = world.create_topic("t")[0]
    world.fill(partition, *[make_batch(b"a")] * 5)
    return partition


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(("offset", "start"), [(3, 3), (5, 5), (-1, 5)])
def test_the_new_log_start_is_told_when_it_is_in_force(
    world: World, partition: Partition, offset: int, start: int, version: int
) -> None:
    log = world.logs[partition.group]
    asked = send(world, offset, version=version)
    partition.advanced(world.now_ms)
    assert not asked.is_answered
    assert log.asked_log_starts == [start]

    log.log_start_offset = start
    partition.advanced(world.now_ms)

    assert (only(asked).error_code, only(asked).low_watermark) == (ErrorCode.NONE, start)


def test_what_is_deleted_already_is_told_at_once(world: World, partition: Partition) -> None:
    log = world.logs[partition.group]
    log.log_start_offset = 3

    assert only(send(world, 2)).low_watermark == 3
    assert log.asked_log_starts == []


@pytest.mark.parametrize("offset", [6, -2])
def test_offsets_that_do_not_exist(world: World, partition: Partition, offset: int) -> None:
    result = only(send(world, offset))

    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_follower_refuses(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=2)

    assert only(send(world, 1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_compacted_topic_refuses(world: World) -> None:
    world.create_topic("t", configs={"cleanup.policy": "compact"})

    assert only(send(world, 0)).error_code == ErrorCode.POLICY_VIOLATION


def test_a_full_log_refuses(world: World, partition: Partition) -> None:
    world.logs[partition.group].refusal = LogFull("full")

    assert only(send(world, 1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_what_is_not_in_force_in_time_timed_out(world: World, partition: Partition) -> None:
    asked = send(world, 1)

    world.timers.advance(TIMEOUT_MS)

    assert only(asked).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_who_waits_when_leadership_goes_is_told(world: World, partition: Partition) -> None:
    asked = send(world, 1)

    world.follow(partition.group, 2, epoch=2)

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_unknown_partitions_do_not_hold_back_the_others(world: World, partition: Partition) -> None:
    asked = send(world, 2, 2)
    world.logs[partition.group].log_start_offset = 2
    partition.advanced(world.now_ms)

    assert [result.error_code for result in results_of(asked)] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_is_named_once(world: World, partition: Partition) -> None:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (1, 2)]
    body = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=partitions)], timeout_ms=TIMEOUT_MS
    )
    asked = world.send(ApiKey.DELETE_RECORDS, 2, body)

    world.logs[partition.group].log_start_offset = 1
    partition.advanced(world.now_ms)

    assert [result.error_code for result in results_of(asked)] == [0, ErrorCode.INVALID_REQUEST]
    assert world.logs[partition.group].asked_log_starts == [1]
