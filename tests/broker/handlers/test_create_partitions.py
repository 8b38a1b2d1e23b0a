"""Tests of broker/handlers/create_partitions.py: topics that grow, and never shrink."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def grown(name: str, count: int, *replicas: tuple[int, ...]) -> CreatePartitionsTopic:
    assignments = [CreatePartitionsAssignment(broker_ids=list(broker_ids)) for broker_ids in replicas]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)


def ask(
    world: World, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    body = CreatePartitionsRequest(topics=list(topics), timeout_ms=5_000, validate_only=validate_only)
    return world.ask(ApiKey.CREATE_PARTITIONS, version, body, CreatePartitionsResponse).results


def replicas_of(world: World, name: str) -> list[tuple[int, ...]]:
    return [row.replicas for row in world.broker.cluster.topics[name].partitions]


@pytest.fixture
def world() -> World:
    world = World()
    world.create_topic("t", partition_count=2)
    return world


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows(world: World, version: int) -> None:
    (result,) = ask(world, grown("t", 5), version=version)

    assert (result.name, result.error_code) == ("t", ErrorCode.NONE)
    assert len(replicas_of(world, "t")) == 5
    assert world.settling.asked == [(3, 4, 5)]


def test_chosen_assignments_are_those_of_the_new_partitions(world: World) -> None:
    ask(world, grown("t", 4, (3, 2, 1), (2, 1, 3)))

    assert replicas_of(world, "t")[2:] == [(3, 2, 1), (2, 1, 3)]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (grown("x", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grown("t", 2), ErrorCode.INVALID_PARTITIONS),
        (grown("t", 1), ErrorCode.INVALID_PARTITIONS),
        (grown("t", -1), ErrorCode.INVALID_PARTITIONS),
        (grown("t", 1_000_000), ErrorCode.POLICY_VIOLATION),
        (grown("t", 4, (1, 2, 3)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, (1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, (1, 2, 9)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_wishes(world: World, asked: CreatePartitionsTopic, code: ErrorCode) -> None:
    (result,) = ask(world, asked)

    assert result.error_code == code
    assert result.error_message
    assert len(replicas_of(world, "t")) == 2


def test_new_partitions_need_as_many_living_brokers_as_they_have_replicas(world: World) -> None:
    world.liveness.alive_ids.discard(3)

    (result,) = ask(world, grown("t", 3))

    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_topic_named_twice_stays_as_it_is(world: World) -> None:
    results = ask(world, grown("t", 3), grown("t", 4))

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert len(replicas_of(world, "t")) == 2


def test_only_validating_changes_nothing(world: World) -> None:
    (result,) = ask(world, grown("t", 3), validate_only=True)

    assert result.error_code == ErrorCode.NONE
    assert not world.controller.proposed


def test_two_who_grow_a_topic_at_the_same_time(world: World) -> None:
    body = CreatePartitionsRequest(topics=[grown("t", 3)], timeout_ms=5_000)
    asked = [world.send(ApiKey.CREATE_PARTITIONS, 3, body) for _ in range(2)]

    world.settle()

    codes = [each.answer(CreatePartitionsResponse).results[0].error_code for each in asked]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS]


def test_the_topics_of_one_request_share_the_room_for_partitions() -> None:
    world = World(config=Config(partitions_max=7))
    world.create_topic("a", partition_count=2)
    world.create_topic("b", partition_count=2)

    results = ask(world, grown("a", 4), grown("b", 4))

    assert [result.error_code for result in results] == [0, ErrorCode.POLICY_VIOLATION]
