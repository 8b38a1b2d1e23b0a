"""Tests of broker/handlers/produce.py: when a batch is acknowledged, and why one is refused."""

from __future__ import annotations

import pytest

from tests.fakes.timers import START_MS
from tests.fakes.world import Asked, World, make_batch, topic_id_of
from tidings.broker.commands import CreateTopic
from tidings.broker.partition import Partition
from tidings.broker.ports import LogFull, NotLeader, StorageFull
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TIMEOUT_MS = 30_000


def part(batch: bytes, index: int = 0) -> PartitionProduceData:
    return PartitionProduceData(index=index, records=memoryview(batch))


def body_of(
    *parts: PartitionProduceData, topic: str = "t", acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=list(parts))],
    )


def send(
    world: World, batch: bytes, *, acks: int = -1, index: int = 0, topic: str = "t", version: int = 10
) -> Asked:
    return world.send(ApiKey.PRODUCE, version, body_of(part(batch, index), acks=acks, topic=topic))


def answers_of(asked: Asked) -> list[PartitionProduceResponse]:
    response = asked.answer(ProduceResponse)
    return [answer for topic in response.responses for answer in topic.partition_responses]


def only(asked: Asked) -> PartitionProduceResponse:
    """The answer of the only partition."""
    (answer,) = answers_of(asked)
    return answer


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    return world.create_topic("t")[0]


# When a batch is acknowledged


def test_acks_all_is_answered_when_the_high_watermark_has_passed_the_batch(
    world: World, partition: Partition
) -> None:
    asked = send(world, make_batch(b"a", b"b"))
    world.logs[partition.group].durable_offset = 2
    partition.advanced(world.now_ms)
    world.commit(partition.group, 1)
    assert not asked.is_answered

    world.commit(partition.group)

    answer = only(asked)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 0, 0)
    assert answer.log_append_time_ms == -1


def test_acks_of_the_leader_are_answered_when_its_own_disk_has_the_batch(
    world: World, partition: Partition
) -> None:
    asked = send(world, make_batch(b"a"), acks=1)
    partition.advanced(world.now_ms)
    assert not asked.is_answered

    world.logs[partition.group].durable_offset = 1
    partition.advanced(world.now_ms)

    assert only(asked).base_offset == 0


def test_no_acks_means_no_answer_even_later(world: World, partition: Partition) -> None:
    asked = send(world, make_batch(b"a"), acks=0)

    world.commit(partition.group)

    assert asked.answers == asked.closed == []
    assert world.logs[partition.group].end_offset == 1


def test_an_error_without_acks_closes_the_connection(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=2)

    asked = send(world, make_batch(b"a"), acks=0)

    assert asked.answers == []
    assert asked.closed == ["a produce request without acknowledgement failed: NOT_LEADER_OR_FOLLOWER"]


def test_an_answer_waits_for_all_its_partitions(world: World) -> None:
    first, second = world.create_topic("t", partition_count=2)
    body = body_of(part(make_batch(b"a")), part(make_batch(b"b", b"c"), 1), part(make_batch(b"d"), 2))
    asked = world.send(ApiKey.PRODUCE, 9, body)

    world.commit(second.group)
    assert not asked.is_answered
    world.commit(first.group)

    assert [(answer.index, answer.error_code) for answer in answers_of(asked)] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_batches_of_pipelined_requests_stand_in_the_order_in_which_they_came(
    world: World, partition: Partition
) -> None:
    asked = [send(world, make_batch(b"x", producer_id=5, epoch=0, sequence=number)) for number in range(5)]

    world.commit(partition.group)

    assert [only(each).base_offset for each in asked] == [0, 1, 2, 3, 4]


def test_a_repeated_batch_waits_for_the_original_and_has_its_offset(
    world: World, partition: Partition
) -> None:
    batch = make_batch(b"a", b"b", producer_id=5, epoch=0, sequence=0)
    first = send(world, batch)
    send(world, make_batch(b"c", producer_id=5, epoch=0, sequence=2))
    world.logs[partition.group].durable_offset = 3
    again = send(world, batch)
    assert not again.is_answered

    world.commit(partition.group, 2)

    assert only(first).base_offset == only(again).base_offset == 0
    assert world.logs[partition.group].end_offset == 3


def test_a_batch_repeated_after_its_commit_is_answered_at_once(world: World, partition: Partition) -> None:
    batch = make_batch(b"a", producer_id=5, epoch=0, sequence=0)
    send(world, batch)
    world.commit(partition.group)

    assert only(send(world, batch)).error_code == ErrorCode.NONE


def test_topics_can_be_named_by_id(world: World, partition: Partition) -> None:
    topic = TopicProduceData(topic_id=topic_id_of("t"), partition_data=[part(make_batch(b"a"))])
    asked = world.send(ApiKey.PRODUCE, 13, ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic]))

    world.commit(partition.group)

    assert asked.answer(ProduceResponse).responses[0].topic_id == topic_id_of("t")
    assert only(asked).error_code == ErrorCode.NONE


def test_with_log_append_time_the_answer_tells_the_time(world: World) -> None:
    partition = world.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})[0]
    asked = send(world, make_batch(b"a"))

    world.commit(partition.group)

    assert only(asked).log_append_time_ms == START_MS


@pytest.mark.parametrize("version", range(3, 14))
def test_every_served_version_is_answered(world: World, partition: Partition, version: int) -> None:
    topic = TopicProduceData(
        name="t" if version < 13 else "",
        topic_id=topic_id_of("t") if version >= 13 else bytes(16),
        partition_data=[part(make_batch(b"a"))],
    )
    asked = world.send(
        ApiKey.PRODUCE, version, ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
    )

    world.commit(partition.group)

    assert only(asked).error_code == ErrorCode.NONE


# Why one is refused


@pytest.mark.parametrize("acks", [2, -2, 3])
def test_other_acks_are_refused_and_nothing_is_appended(
    world: World, partition: Partition, acks: int
) -> None:
    answer = only(send(world, make_batch(b"a"), acks=acks))

    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert world.logs[partition.group].end_offset == 0


def test_unknown_topics_and_partitions(world: World, partition: Partition) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert only(send(world, make_batch(b"a"), topic="x")).error_code == unknown
    assert only(send(world, make_batch(b"a"), index=1)).error_code == unknown
    assert only(send(world, make_batch(b"a"), index=-1)).error_code == unknown


def test_an_unknown_topic_id(world: World) -> None:
    topic = TopicProduceData(topic_id=b"?" * 16, partition_data=[part(make_batch(b"a"))])

    asked = world.send(ApiKey.PRODUCE, 13, ProduceRequest(acks=-1, topic_data=[topic]))

    assert only(asked).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_follower_names_the_leader_and_where_it_is(world: World, partition: Partition) -> None:
    world.follow(partition.group, 2, epoch=4)

    asked = send(world, make_batch(b"a"))

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(asked).current_leader == LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    (endpoint,) = asked.answer(ProduceResponse).node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "host2", 9_092)


def test_a_broker_without_a_replica_names_the_leader_too(world: World) -> None:
    outcome = world.apply(
        CreateTopic(
            name="far",
            topic_id=topic_id_of("far"),
            partition_count=1,
            replication_factor=1,
            assignments=((3,),),
        )
    )
    world.set_leader(outcome.groups[0], 3, 7)

    asked = send(world, make_batch(b"a"), topic="far")

    assert only(asked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(asked).current_leader == LeaderIdAndEpoch(leader_id=3, leader_epoch=7)
    assert [endpoint.node_id for endpoint in asked.answer(ProduceResponse).node_endpoints] == [3]


def test_a_leader_that_is_unknown_is_not_named(world: World, partition: Partition) -> None:
    world.follow(partition.group, -1, epoch=4)

    asked = send(world, make_batch(b"a"))

    assert only(asked).current_leader is None
    assert asked.answer(ProduceResponse).node_endpoints == []


def test_a_leader_of_several_refused_partitions_stands_once_in_the_answer(world: World) -> None:
    for partition in world.create_topic("t", partition_count=3):
        world.follow(partition.group, 2 + partition.index % 2, epoch=4)
    parts = [part(make_batch(b"a"), index) for index in range(3)]

    asked = world.send(ApiKey.PRODUCE, 10, body_of(*parts))

    assert [endpoint.node_id for endpoint in asked.answer(ProduceResponse).node_endpoints] == [2, 3]


def test_who_waits_when_leadership_goes_is_sent_to_the_next_leader(
    world: World, partition: Partition
) -> None:
    asked = send(world, make_batch(b"a"))

    world.follow(partition.group, 3, epoch=2)

    answer = only(asked)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert answer.current_leader == LeaderIdAndEpoch(leader_id=3, leader_epoch=2)
    assert [endpoint.node_id for endpoint in asked.answer(ProduceResponse).node_endpoints] == [3]


def test_what_is_not_safe_in_time_timed_out(world: World, partition: Partition) -> None:
    asked = send(world, make_batch(b"a"))

    world.timers.advance(TIMEOUT_MS)

    assert (only(asked).error_code, only(asked).base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    world.commit(partition.group)
    assert len(asked.answers) == 1


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (LogFull("the others do not keep up"), ErrorCode.NOT_ENOUGH_REPLICAS),
        (StorageFull("no room"), ErrorCode.KAFKA_STORAGE_ERROR),
        (NotLeader("no more"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_log_that_takes_nothing_is_told_with_an_error_upon_which_producers_try_again(
    world: World, partition: Partition, refusal: Exception, code: ErrorCode
) -> None:
    world.logs[partition.group].refusal = refusal

    assert only(send(world, make_batch(b"a"))).error_code == code


def damaged(position: int) -> bytes:
    batch = bytearray(make_batch(b"value"))
    batch[position] ^= 0xFF
    return bytes(batch)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (damaged(70), ErrorCode.CORRUPT_MESSAGE),
        (make_batch(b"a") + make_batch(b"b"), ErrorCode.INVALID_RECORD),
        (make_batch(b"a" * 5_000), ErrorCode.MESSAGE_TOO_LARGE),
        (make_batch(b"a", timestamps=(START_MS + 3_600_001,)), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["no batch", "wrong CRC", "two batches", "too large", "from the future"],
)
def test_batches_that_are_not_taken(world: World, batch: bytes, code: ErrorCode) -> None:
    partition = world.create_topic("t", configs={"max.message.bytes": "4000"})[0]

    answer = only(send(world, batch))

    assert answer.error_code == code
    assert answer.error_message
    assert world.logs[partition.group].end_offset == 0


def test_a_gap_in_the_sequences(world: World, partition: Partition) -> None:
    send(world, make_batch(b"a", producer_id=5, epoch=0, sequence=0))

    answer = only(send(world, make_batch(b"a", producer_id=5, epoch=0, sequence=2)))

    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_producer_epoch(world: World, partition: Partition) -> None:
    send(world, make_batch(b"a", producer_id=5, epoch=1, sequence=0))

    answer = only(send(world, make_batch(b"a", producer_id=5, epoch=0, sequence=1)))

    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_partition_named_twice_takes_the_first_batch_only(world: World, partition: Partition) -> None:
    asked = world.send(ApiKey.PRODUCE, 9, body_of(part(make_batch(b"a")), part(make_batch(b"b"))))

    world.commit(partition.group)

    assert [answer.error_code for answer in answers_of(asked)] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert world.logs[partition.group].end_offset == 1


def test_transactions_are_refused(world: World, partition: Partition) -> None:
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    batch = make_batch(b"a", producer_id=5, epoch=0, sequence=0, transactional=True)
    by_id = world.send(ApiKey.PRODUCE, 9, body_of(part(make_batch(b"a")), transactional_id="tx"))

    assert only(send(world, batch)).error_code == refused
    assert only(by_id).error_code == refused
    assert world.logs[partition.group].end_offset == 0


def test_one_refused_partition_does_not_hold_back_the_others(world: World) -> None:
    first, _second = world.create_topic("t", partition_count=2)
    body = body_of(part(damaged(70), 1), part(make_batch(b"a"), 0))
    asked = world.send(ApiKey.PRODUCE, 9, body)

    world.commit(first.group)

    assert [answer.error_code for answer in answers_of(asked)] == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE]
