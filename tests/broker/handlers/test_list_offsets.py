"""Tests of broker/handlers/list_offsets.py: starts, ends and times, and answers that would be too old."""

from __future__ import annotations

import pytest

from tests.fakes.world import Asked, World, make_batch, topic_id_of
from tidings.broker.commands import CreateTopic
from tidings.broker.partition import Partition
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, EARLIEST, NEWEST = -1, -2, -3


def send(
    world: World, *timestamps: int, version: int = 11, topic: str = "t", epoch: int = -1, first: int = 0
) -> Asked:
    """One partition after the other, each with its timestamp."""
    asked = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index, timestamp in enumerate(timestamps, start=first)
    ]
    body = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    return world.send(ApiKey.LIST_OFFSETS, version, body)


def answers_of(asked: Asked) -> list[ListOffsetsPartitionResponse]:
    response = asked.answer(ListOffsetsResponse)
    return [answer for topic in response.topics for answer in topic.partitions]


def only(world: World, asked: Asked) -> ListOffsetsPartitionResponse:
    world.settle()
    (answer,) = answers_of(asked)
    return answer


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    """Times 10, 30, 20 | 40, 40 | 15: not in order, as producers send them."""
    partition = world.create_topic("t")[0]
    world.fill(
        partition,
        make_batch(b"a", b"b", b"c", timestamps=(10, 30, 20)),
        make_batch(b"d", b"e", timestamps=(40, 40)),
        make_batch(b"f", timestamps=(15,)),
    )
    return partition


def test_the_latest_offset_is_the_high_watermark_confirmed_by_a_majority(
    world: World, partition: Partition
) -> None:
    world.logs[partition.group].high_watermark = 5
    asked = send(world, LATEST)
    assert not asked.is_answered

    answer = only(world, asked)

    assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (0, 5, -1, 1)


def test_the_earliest_offset_is_the_log_start(world: World, partition: Partition) -> None:
    world.logs[partition.group].log_start_offset = 2

    assert only(world, send(world, EARLIEST)).offset == 2
    assert only(world, send(world, -4)).offset == 2


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(0, 0, 10), (10, 0, 10), (11, 1, 30), (30, 1, 30), (31, 3, 40), (40, 3, 40)],
)
def test_a_time_is_found_exactly_to_the_record(
    world: World, partition: Partition, timestamp: int, offset: int, found: int
) -> None:
    answer = only(world, send(world, timestamp))

    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, found)
    assert answer.leader_epoch == 1


def test_a_time_after_the_last_record_finds_nothing_without_an_error(
    world: World, partition: Partition
) -> None:
    answer = only(world, send(world, 41))

    assert (answer.error_code, answer.offset, answer.timestamp) == (0, -1, -1)


def test_records_that_are_not_committed_are_not_found(world: World, partition: Partition) -> None:
    world.logs[partition.group].high_watermark = 3

    assert only(world, send(world, 31)).offset == -1
    assert only(world, send(world, NEWEST)).offset == 1


def test_the_newest_record_is_the_first_of_the_largest_time(world: World, partition: Partition) -> None:
    answer = only(world, send(world, NEWEST))

    assert (answer.offset, answer.timestamp) == (3, 40)


@pytest.mark.parametrize("timestamp", [0, NEWEST])
def test_a_time_that_cannot_be_looked_up_is_not_answered_by_another(
    world: World, partition: Partition, timestamp: int
) -> None:
    world.logs[partition.group].is_damaged = True

    answer = only(world, send(world, timestamp))

    assert (answer.error_code, answer.offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_an_empty_partition_has_no_newest_record(world: World) -> None:
    world.create_topic("t")

    assert only(world, send(world, NEWEST)).offset == -1
    assert only(world, send(world, LATEST)).offset == 0


def test_a_batch_that_cannot_be_read_is_found_by_its_start(world: World) -> None:
    partition = world.create_topic("t")[0]
    garbled = bytearray(make_batch(b"a", b"b", timestamps=(10, 20)))
    garbled[61:] = b"\xff" * len(garbled[61:])
    world.fill(partition, bytes(garbled))

    answer = only(world, send(world, 15))

    assert (answer.error_code, answer.offset, answer.timestamp) == (0, 0, 20)


@pytest.mark.parametrize("timestamp", [-5, -6])
def test_there_are_no_tiers(world: World, partition: Partition, timestamp: int) -> None:
    answer = only(world, send(world, timestamp))

    assert (answer.error_code, answer.offset) == (0, -1)


@pytest.mark.parametrize(
    ("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-(2**63), 11)]
)
def test_timestamps_that_a_version_does_not_know(
    world: World, partition: Partition, timestamp: int, version: int
) -> None:
    answer = only(world, send(world, timestamp, version=version))

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", range(1, 12))
def test_every_served_version_is_answered(world: World, partition: Partition, version: int) -> None:
    assert only(world, send(world, LATEST, version=version)).offset == 6


def test_an_answer_waits_for_all_its_partitions(world: World, partition: Partition) -> None:
    asked = send(world, LATEST, EARLIEST)

    world.settle()

    assert [answer.error_code for answer in answers_of(asked)] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
)
@pytest.mark.parametrize("timestamp", [LATEST, 0])
def test_a_new_leader_tells_no_end_before_an_entry_of_its_own_is_committed(
    world: World, partition: Partition, timestamp: int, version: int, code: ErrorCode
) -> None:
    world.logs[partition.group].term_start_committed = False

    assert only(world, send(world, timestamp, version=version)).error_code == code
    assert only(world, send(world, EARLIEST)).offset == 0


def test_a_leader_that_was_replaced_tells_no_end(world: World, partition: Partition) -> None:
    world.logs[partition.group].is_confirmed = False

    answer = only(world, send(world, LATEST))

    assert (answer.error_code, answer.offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_leadership_that_goes_while_it_is_asked_for_tells_no_end(world: World, partition: Partition) -> None:
    asked = send(world, LATEST)
    world.follow(partition.group, 2, epoch=2)

    assert only(world, asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_that_is_deleted_while_it_is_asked_for_tells_no_end(
    world: World, partition: Partition
) -> None:
    asked = send(world, LATEST)
    world.broker.close_partition(partition.group, world.now_ms)

    assert only(world, asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_followers_and_brokers_without_a_replica_do_not_answer(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=2)
    world.apply(
        CreateTopic(
            name="far",
            topic_id=topic_id_of("far"),
            partition_count=1,
            replication_factor=1,
            assignments=((2,),),
        )
    )

    assert only(world, send(world, EARLIEST)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(world, send(world, EARLIEST, topic="far")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.NONE), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_clients_of_another_leader_epoch_are_fenced(
    world: World, partition: Partition, epoch: int, code: ErrorCode
) -> None:
    world.lead(partition.group, epoch=5)

    assert only(world, send(world, EARLIEST, epoch=epoch)).error_code == code


def test_a_partition_named_twice(world: World, partition: Partition) -> None:
    twice = [ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)] * 2
    body = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=twice)])

    asked = world.send(ApiKey.LIST_OFFSETS, 7, body)

    assert [answer.error_code for answer in answers_of(asked)] == [0, ErrorCode.INVALID_REQUEST]
