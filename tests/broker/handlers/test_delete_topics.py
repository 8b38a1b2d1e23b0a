"""Tests of broker/handlers/delete_topics.py: topics by name or id, each judged alone."""

from __future__ import annotations

import pytest

from tests.fakes.world import World, topic_id_of
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def ask(world: World, body: DeleteTopicsRequest, *, version: int = 6) -> list[DeletableTopicResult]:
    return world.ask(ApiKey.DELETE_TOPICS, version, body, DeleteTopicsResponse).responses


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


@pytest.fixture
def world() -> World:
    world = World()
    world.create_topic("t")
    world.create_topic("u")
    return world


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_by_name(world: World, version: int) -> None:
    results = ask(world, DeleteTopicsRequest(topic_names=["t", "x"], timeout_ms=5_000), version=version)

    assert [(result.name, result.error_code) for result in results] == [
        ("t", ErrorCode.NONE),
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert list(world.broker.cluster.topics) == ["u"]


def test_topics_by_id(world: World) -> None:
    topics = [by_id(topic_id_of("t")), by_id(b"?" * 16), DeleteTopicState(name="u")]

    results = ask(world, DeleteTopicsRequest(topics=topics, timeout_ms=5_000))

    assert [(result.name, result.topic_id, result.error_code) for result in results] == [
        ("t", topic_id_of("t"), ErrorCode.NONE),
        (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        ("u", topic_id_of("u"), ErrorCode.NONE),
    ]
    assert not world.broker.cluster.topics


def test_the_answer_comes_when_every_broker_has_forgotten_the_topic(world: World) -> None:
    asked = world.send(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000))
    assert not asked.is_answered

    world.settle()

    assert asked.is_answered
    assert world.settling.asked == [()]


def test_a_topic_named_twice_stays(world: World) -> None:
    topics = [by_id(topic_id_of("t")), DeleteTopicState(name="t")]

    results = ask(world, DeleteTopicsRequest(topics=topics, timeout_ms=5_000))

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert "t" in world.broker.cluster.topics


@pytest.mark.parametrize(
    "state", [DeleteTopicState(name="t", topic_id=b"i" * 16), DeleteTopicState(name=None)]
)
def test_a_topic_is_named_in_one_way(world: World, state: DeleteTopicState) -> None:
    (result,) = ask(world, DeleteTopicsRequest(topics=[state], timeout_ms=5_000))

    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_a_topic_that_another_broker_deletes_in_the_meantime(world: World) -> None:
    body = DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000)
    first = world.send(ApiKey.DELETE_TOPICS, 5, body)
    second = world.send(ApiKey.DELETE_TOPICS, 5, body)

    world.settle()

    assert first.answer(DeleteTopicsResponse).responses[0].error_code == ErrorCode.NONE
    assert second.answer(DeleteTopicsResponse).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
