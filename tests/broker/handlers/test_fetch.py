"""Tests of broker/handlers/fetch.py: what a reader gets, what it waits for, and what it is never told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.fakes.world import Asked, World, make_batch, topic_id_of
from tidings.broker.partition import Partition
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from tidings.protocol.records import read_header

MAX_WAIT_MS = 500
BATCH = make_batch(b"a", b"b")


def want(offset: int, index: int = 0, *, bytes_max: int = 1_000_000, epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=bytes_max, current_leader_epoch=epoch
    )


def body_of(
    *parts: FetchPartition,
    topic: str = "t",
    min_bytes: int = 1,
    max_bytes: int = 10_000_000,
    max_wait_ms: int = MAX_WAIT_MS,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=list(parts))],
    )


def send(world: World, *parts: FetchPartition, version: int = 12, min_bytes: int = 1) -> Asked:
    return world.send(ApiKey.FETCH, version, body_of(*parts, min_bytes=min_bytes))


def datas_of(asked: Asked) -> list[PartitionData]:
    response = asked.answer(FetchResponse)
    return [data for topic in response.responses for data in topic.partitions]


def only(asked: Asked) -> PartitionData:
    (data,) = datas_of(asked)
    return data


def offsets_in(records: Sequence[bytes | memoryview]) -> list[int]:
    """Base offsets of the batches in an answer."""
    return [read_header(batch).base_offset for batch in records]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    """Three batches of two records each, committed."""
    partition = world.create_topic("t")[0]
    world.fill(partition, BATCH, BATCH, BATCH)
    return partition


# What a reader gets


def test_a_reader_gets_the_batches_from_its_offset_on(world: World, partition: Partition) -> None:
    data = only(send(world, want(2)))

    assert offsets_in(data.records) == [2, 4]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (6, 6, 0)
    assert (data.preferred_read_replica, data.aborted_transactions) == (-1, [])


def test_an_offset_within_a_batch_gets_the_whole_batch(world: World, partition: Partition) -> None:
    assert offsets_in(only(send(world, want(3))).records) == [2, 4]


def test_a_reader_sees_nothing_above_the_high_watermark(world: World, partition: Partition) -> None:
    world.logs[partition.group].high_watermark = 4

    assert offsets_in(only(send(world, want(0))).records) == [0, 2]


def test_the_first_batch_comes_even_if_it_is_larger_than_every_limit(
    world: World, partition: Partition
) -> None:
    asked = world.send(ApiKey.FETCH, 12, body_of(want(0, bytes_max=1), max_bytes=1))

    assert offsets_in(only(asked).records) == [0]


def test_only_the_first_partition_with_data_may_break_the_limit(world: World) -> None:
    for partition in world.create_topic("t", partition_count=3):
        if partition.index:
            world.fill(partition, BATCH)
    body = body_of(*(want(0, index, bytes_max=1) for index in range(3)))

    datas = datas_of(world.send(ApiKey.FETCH, 12, body))

    assert [len(data.records) for data in datas] == [0, 1, 0]


def test_the_limit_of_the_whole_answer_is_shared_by_its_partitions(world: World) -> None:
    for partition in world.create_topic("t", partition_count=3):
        world.fill(partition, BATCH, BATCH)
    body = body_of(*(want(0, index) for index in range(3)), max_bytes=3 * len(BATCH))

    datas = datas_of(world.send(ApiKey.FETCH, 12, body))

    assert [len(data.records) for data in datas] == [2, 1, 0]


def test_an_answer_is_never_larger_than_the_broker_allows() -> None:
    world = World(config=Config(fetch_bytes_max=1_024))
    partition = world.create_topic("t")[0]
    large = make_batch(b"x" * 400)
    world.fill(partition, large, large, large)

    assert len(only(send(world, want(0))).records) == 2


def test_an_answer_fits_the_memory_that_is_left_but_for_its_first_batch(
    world: World, partition: Partition
) -> None:
    world.answer_room_bytes = len(BATCH) * 2
    assert offsets_in(only(send(world, want(0))).records) == [0, 2]

    world.answer_room_bytes = 1
    assert offsets_in(only(send(world, want(0))).records) == [0]


def test_memory_is_kept_for_what_is_read_from_disk(world: World, partition: Partition) -> None:
    world.logs[partition.group].memory_start = 4

    from_memory = send(world, want(4))
    from_disk = send(world, want(0, bytes_max=1_000))

    assert from_memory.reserved_bytes == []
    assert from_disk.reserved_bytes == [1_000]


def test_topics_can_be_named_by_id(world: World, partition: Partition) -> None:
    body = FetchRequest(min_bytes=1, topics=[FetchTopic(topic_id=topic_id_of("t"), partitions=[want(4)])])

    response = world.send(ApiKey.FETCH, 16, body).answer(FetchResponse)

    assert response.responses[0].topic_id == topic_id_of("t")
    assert offsets_in(response.responses[0].partitions[0].records) == [4]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_served_version_is_answered(world: World, partition: Partition, version: int) -> None:
    by_name = version < 13
    topic = FetchTopic(
        topic="t" if by_name else "",
        topic_id=bytes(16) if by_name else topic_id_of("t"),
        partitions=[want(0)],
    )

    data = only(world.send(ApiKey.FETCH, version, FetchRequest(min_bytes=1, topics=[topic])))

    assert (data.error_code, len(data.records)) == (ErrorCode.NONE, 3)


# From disk


def test_batches_that_are_not_in_memory_come_from_disk(world: World, partition: Partition) -> None:
    world.logs[partition.group].memory_start = 4
    asked = send(world, want(2))
    assert not asked.is_answered

    world.settle()

    assert offsets_in(only(asked).records) == [2, 4]


def test_an_answer_waits_for_all_that_comes_from_disk(world: World) -> None:
    partitions = world.create_topic("t", partition_count=3)
    for partition in partitions:
        world.fill(partition, BATCH)
        world.logs[partition.group].memory_start = 2 if partition.index != 1 else 0
    asked = world.send(ApiKey.FETCH, 12, body_of(*(want(0, index) for index in range(3))))

    world.settle()

    assert [offsets_in(data.records) for data in datas_of(asked)] == [[0], [0], [0]]


def test_disk_reads_share_the_limit_of_the_answer(world: World) -> None:
    for partition in world.create_topic("t", partition_count=3):
        world.fill(partition, BATCH)
        world.logs[partition.group].memory_start = 2
    body = body_of(*(want(0, index, bytes_max=len(BATCH)) for index in range(3)), max_bytes=2 * len(BATCH))
    asked = world.send(ApiKey.FETCH, 12, body)

    world.settle()

    assert [len(data.records) for data in datas_of(asked)] == [1, 1, 0]


def test_what_was_removed_while_it_was_looked_for_is_out_of_range(world: World, partition: Partition) -> None:
    log = world.logs[partition.group]
    log.memory_start = 4
    asked = send(world, want(2))
    log.log_start_offset = 4

    world.settle()

    assert only(asked).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_damage_on_the_disk_is_told(world: World, partition: Partition) -> None:
    log = world.logs[partition.group]
    log.memory_start, log.is_damaged = 4, True
    asked = send(world, want(2))

    world.settle()

    assert only(asked).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert only(asked).records == []


# Waiting


def test_a_reader_at_the_end_waits_for_the_next_commit(world: World, partition: Partition) -> None:
    asked = send(world, want(6))
    assert not asked.is_answered

    world.fill(partition, BATCH)

    assert offsets_in(only(asked).records) == [6]
    assert world.timers.pending_count == 0


def test_a_reader_waits_no_longer_than_it_asked_to(world: World, partition: Partition) -> None:
    asked = send(world, want(6))

    world.timers.advance(MAX_WAIT_MS - 1)
    assert not asked.is_answered
    world.timers.advance(1)

    data = only(asked)
    assert (data.error_code, data.records, data.high_watermark) == (ErrorCode.NONE, [], 6)


def test_a_reader_that_does_not_wait_is_answered_at_once(world: World, partition: Partition) -> None:
    asked = world.send(ApiKey.FETCH, 12, body_of(want(6), max_wait_ms=0))

    assert only(asked).records == []


def test_a_reader_waits_for_as_many_bytes_as_it_asked_for(world: World, partition: Partition) -> None:
    asked = send(world, want(6), min_bytes=2 * len(BATCH))

    world.fill(partition, BATCH)
    assert not asked.is_answered
    world.fill(partition, BATCH)

    assert offsets_in(only(asked).records) == [6, 8]


def test_fewer_bytes_than_asked_for_are_given_when_time_is_up(world: World, partition: Partition) -> None:
    asked = send(world, want(4), min_bytes=2 * len(BATCH))

    world.timers.advance(MAX_WAIT_MS)

    assert offsets_in(only(asked).records) == [4]


def test_any_of_the_partitions_wakes_a_reader(world: World) -> None:
    first, second = world.create_topic("t", partition_count=2)
    asked = send(world, want(0), want(0, 1))

    world.fill(second, BATCH)
    world.fill(first, BATCH)

    assert [len(data.records) for data in datas_of(asked)] == [0, 1]


def test_an_offset_between_the_high_watermark_and_the_end_waits(world: World, partition: Partition) -> None:
    world.logs[partition.group].high_watermark = 2
    asked = send(world, want(6))
    assert not asked.is_answered

    world.commit(partition.group)
    assert not asked.is_answered
    world.fill(partition, BATCH)

    assert offsets_in(only(asked).records) == [6]


def test_nobody_waits_for_longer_than_a_minute(world: World, partition: Partition) -> None:
    asked = world.send(ApiKey.FETCH, 12, body_of(want(6), max_wait_ms=2**31 - 1))

    world.timers.advance(60_000)

    assert only(asked).records == []


def test_a_request_for_nothing_is_answered_at_once(world: World) -> None:
    asked = world.send(ApiKey.FETCH, 12, FetchRequest(max_wait_ms=500, min_bytes=1))

    assert asked.answer(FetchResponse).responses == []


# Errors


@pytest.mark.parametrize("offset", [-1, 3])
def test_below_the_log_start_is_out_of_range(world: World, partition: Partition, offset: int) -> None:
    world.logs[partition.group].log_start_offset = 4

    data = only(send(world, want(offset)))

    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (data.high_watermark, data.log_start_offset, data.records) == (6, 4, [])


def test_above_the_end_is_out_of_range_once_a_majority_has_confirmed_the_leader(
    world: World, partition: Partition
) -> None:
    asked = send(world, want(7))
    assert not asked.is_answered

    world.settle()

    data = only(asked)
    assert (data.error_code, data.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, 6)


def test_a_leader_that_was_replaced_never_calls_an_offset_out_of_range(
    world: World, partition: Partition
) -> None:
    world.logs[partition.group].is_confirmed = False
    asked = send(world, want(7))

    world.settle()

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_was_appended_meanwhile_is_not_out_of_range(world: World, partition: Partition) -> None:
    asked = send(world, want(7))
    world.fill(partition, BATCH)

    world.settle()

    assert (only(asked).error_code, only(asked).records) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("version", "code"), [(12, ErrorCode.OFFSET_NOT_AVAILABLE), (10, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
def test_a_new_leader_does_not_judge_an_offset_above_its_end(
    world: World, partition: Partition, version: int, code: ErrorCode
) -> None:
    world.logs[partition.group].term_start_committed = False
    asked = send(world, want(7), version=version)
    assert not asked.is_answered

    world.timers.advance(MAX_WAIT_MS)

    assert only(asked).error_code == code


def test_a_reader_above_the_end_of_a_new_leader_is_answered_when_that_may_tell(
    world: World, partition: Partition
) -> None:
    log = world.logs[partition.group]
    log.term_start_committed = False
    partition.became_leader([], world.now_ms)
    asked = send(world, want(8))

    log.term_start_committed = True
    world.fill(partition, BATCH, BATCH)
    world.settle()

    assert offsets_in(only(asked).records) == [8]


def test_unknown_topics_and_partitions_are_told_at_once(world: World, partition: Partition) -> None:
    by_name = world.send(ApiKey.FETCH, 12, body_of(want(0), topic="x"))
    by_id = world.send(
        ApiKey.FETCH, 13, FetchRequest(topics=[FetchTopic(topic_id=b"?" * 16, partitions=[want(0)])])
    )

    assert only(by_name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(send(world, want(0, 1))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(by_id).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_follower_names_the_leader_and_where_it_is(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=4)
    topic = FetchTopic(topic_id=topic_id_of("t"), partitions=[want(0)])

    asked = world.send(ApiKey.FETCH, 16, FetchRequest(topics=[topic]))

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(asked).current_leader == LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    (endpoint,) = asked.answer(FetchResponse).node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "host2", 9_092)


def test_who_waits_when_leadership_goes_is_sent_to_the_next_leader(
    world: World, partition: Partition
) -> None:
    asked = send(world, want(6))

    world.follow(partition.group, 3, epoch=2)

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(asked).current_leader == LeaderIdAndEpoch(leader_id=3, leader_epoch=2)


def test_who_waits_when_the_topic_is_deleted_is_told(world: World, partition: Partition) -> None:
    asked = send(world, want(6))

    world.broker.close_partition(partition.group, world.now_ms)

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH), (2, ErrorCode.NONE)],
)
@pytest.mark.parametrize("leads", [True, False])
def test_readers_of_another_leader_epoch_are_fenced(
    world: World, partition: Partition, epoch: int, code: ErrorCode, leads: bool
) -> None:
    if leads:
        world.lead(partition.group, epoch=2)
    else:
        world.follow(partition.group, 2, epoch=2)
        code = code or ErrorCode.NOT_LEADER_OR_FOLLOWER

    assert only(send(world, want(0, epoch=epoch))).error_code == code


def test_one_error_does_not_wait_for_the_other_partitions(world: World, partition: Partition) -> None:
    datas = datas_of(send(world, want(6), want(0, 1)))

    assert [data.error_code for data in datas] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_reader_whose_log_was_cut_is_told_where_it_diverges(world: World, partition: Partition) -> None:
    world.lead(partition.group, epoch=5)
    world.fill(partition, BATCH)
    asked_for = want(7)
    asked_for.last_fetched_epoch = 3

    data = only(send(world, asked_for))

    assert data.diverging_epoch == EpochEndOffset(epoch=1, end_offset=6)
    assert data.records == []


def test_a_reader_of_the_same_log_is_told_no_divergence(world: World, partition: Partition) -> None:
    asked_for = want(4)
    asked_for.last_fetched_epoch = 1

    data = only(send(world, asked_for))

    assert data.diverging_epoch is None
    assert offsets_in(data.records) == [4]


def test_an_epoch_older_than_the_log_is_out_of_range(world: World, partition: Partition) -> None:
    asked_for = want(4)
    asked_for.last_fetched_epoch = 0

    assert only(send(world, asked_for)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# Sessions


@pytest.mark.parametrize(("session_id", "epoch"), [(0, -1), (0, 0), (7, 0), (7, -1)])
def test_whoever_asks_for_a_session_gets_a_full_answer_without_one(
    world: World, partition: Partition, session_id: int, epoch: int
) -> None:
    body = body_of(want(0))
    body.session_id, body.session_epoch = session_id, epoch

    response = world.send(ApiKey.FETCH, 12, body).answer(FetchResponse)

    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    assert len(response.responses[0].partitions[0].records) == 3


def test_nobody_can_go_on_with_a_session(world: World, partition: Partition) -> None:
    body = body_of(want(0))
    body.session_id, body.session_epoch = 7, 1

    response = world.send(ApiKey.FETCH, 12, body).answer(FetchResponse)

    assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])
