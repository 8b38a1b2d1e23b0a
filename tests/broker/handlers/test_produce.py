"""Tests of broker/handlers/produce.py: when a batch is acknowledged, and why one is refused."""

from __future__ import annotations

import pytest

from tests.fakes.world import Asked, World, make_batch
from tidings.broker.partition import Partition
from tidings.protocol.apis import ApiKey
from tidings.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TIMEOUT_MS = 30_000


def body_of(*batches: bytes, topic: str = "t", index: int = 0, acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=memoryview(batch)) for batch in batches]
    return ProduceRequest(
        acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def send(world: World, batch: bytes, *, acks: int = -1, index: int = 0, topic: str = "t") -> Asked:
    return world.send(ApiKey.PRODUCE, 9, body_of(batch, acks=acks, index=index, topic=topic))


def only(asked: Asked) -> PartitionProduceResponse:
    """The answer of the only partition."""
    response = asked.answer(ProduceResponse)
    assert len(response.responses) == 1
    assert len(response.responses[0].partition_responses) == 1
    return response.responses[0].partition_responses[0]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    return world.create_topic("t")[0]


def test_acks_all_is_answered_when_the_high_watermark_has_passed_the_batch(
    world: World, partition: Partition
) -> None:
    asked = send(world, make_batch(b"a", b"b"))
    assert not asked.is_answered

    world.commit(partition.group)

    answer = only(asked)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 0, 0)
