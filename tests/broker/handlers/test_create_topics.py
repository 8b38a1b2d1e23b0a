"""Tests of broker/handlers/create_topics.py: topics judged one by one, told when every broker knows them."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

SOURCE_TOPIC, SOURCE_DEFAULT = 1, 5


def body_of(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=5_000, validate_only=validate_only)


def topic(name: str, *, partitions: int = 2, replicas: int = 3, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in configs.items()
        ],
    )


def ask(world: World, body: CreateTopicsRequest, *, version: int = 7) -> list[CreatableTopicResult]:
    return world.ask(ApiKey.CREATE_TOPICS, version, body, CreateTopicsResponse).topics


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("version", range(2, 8))
def test_a_created_topic_is_described(world: World, version: int) -> None:
    (result,) = ask(world, body_of(topic("t")), version=version)

    created = world.broker.cluster.topics["t"]
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    assert result.topic_id == created.topic_id
    assert [len(row.replicas) for row in created.partitions] == [3, 3]


def test_the_answer_comes_when_every_broker_knows_the_leaders(world: World) -> None:
    asked = world.send(ApiKey.CREATE_TOPICS, 7, body_of(topic("a"), topic("b")))
    assert not asked.is_answered

    world.settle()

    assert [result.error_code for result in asked.answer(CreateTopicsResponse).topics] == [0, 0]
    assert world.settling.asked == [(1, 2, 3, 4)]


def test_settings_in_force_are_told_with_their_source(world: World) -> None:
    (result,) = ask(world, body_of(topic("t", retention_ms="5")))

    told = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert told["retention.ms"] == ("5", SOURCE_TOPIC)
    assert told["cleanup.policy"] == ("delete", SOURCE_DEFAULT)
    assert world.broker.cluster.topics["t"].configs == {"retention.ms": "5"}


def test_an_even_replication_factor_is_taken_with_a_warning(world: World) -> None:
    (result,) = ask(world, body_of(topic("t", replicas=2)))

    assert result.error_code == ErrorCode.NONE
    assert "2 replicas survive the loss of 0" in (result.error_message or "")


def test_a_refused_topic_does_not_hold_back_the_others(world: World) -> None:
    results = ask(world, body_of(topic("a b"), topic("t"), topic("u", replicas=9)))

    assert [(result.name, result.error_code) for result in results] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]
    assert all(result.configs == [] for result in results if result.error_code)
    assert list(world.broker.cluster.topics) == ["t"]


def test_a_name_given_twice_creates_nothing(world: World) -> None:
    results = ask(world, body_of(topic("t"), topic("t"), topic("u")))

    assert [(result.name, result.error_code) for result in results] == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]
    assert list(world.broker.cluster.topics) == ["u"]


def test_only_validating_makes_nothing(world: World) -> None:
    results = ask(world, body_of(topic("t"), topic("a b"), validate_only=True))

    assert [result.error_code for result in results] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert not world.controller.proposed
    assert not world.broker.cluster.topics


def test_a_name_taken_by_another_broker_in_the_meantime(world: World) -> None:
    asked = world.send(ApiKey.CREATE_TOPICS, 7, body_of(topic("t")))
    world.create_topic("t")

    world.settle()

    (result,) = asked.answer(CreateTopicsResponse).topics
    assert (result.error_code, result.topic_id) == (ErrorCode.TOPIC_ALREADY_EXISTS, bytes(16))
    assert (result.num_partitions, result.configs) == (-1, [])


def test_a_topic_that_is_not_made_in_time(world: World) -> None:
    asked = world.send(ApiKey.CREATE_TOPICS, 7, body_of(topic("t")))

    world.timers.advance(5_000)

    (result,) = asked.answer(CreateTopicsResponse).topics
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("validate_only", [True, False])
def test_the_topics_of_one_request_share_the_room_for_partitions(validate_only: bool) -> None:
    world = World(config=Config(partitions_max=5))
    topics = [topic(name, partitions=2) for name in ("a", "b", "c")]

    results = ask(world, body_of(*topics, validate_only=validate_only))

    assert [result.error_code for result in results] == [0, 0, ErrorCode.POLICY_VIOLATION]
