"""Tests of broker/handlers/describe_topic_partitions.py: a walk over all partitions, page by page."""

from __future__ import annotations

import pytest

from tests.fakes.world import World, topic_id_of
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)


def ask(
    world: World, *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    body = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
    )
    return world.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, body, DescribeTopicPartitionsResponse)


@pytest.fixture
def world() -> World:
    world = World()
    for name in ("b", "a", "c"):
        world.create_topic(name, partition_count=3)
    return world


def test_a_topic_with_its_partitions(world: World) -> None:
    (topic,) = ask(world, "b").topics

    assert (topic.error_code, topic.name, topic.topic_id) == (0, "b", topic_id_of("b"))
    partition = topic.partitions[1]
    assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (1, 1, 1)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == (
        [1, 2, 3],
        [1, 2, 3],
        [],
    )


def test_lists_that_java_clients_crash_on_when_they_are_null_are_empty(world: World) -> None:
    partition = ask(world, "b").topics[0].partitions[0]

    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_without_names_all_topics_are_told_in_order(world: World) -> None:
    response = ask(world)

    assert [topic.name for topic in response.topics] == ["a", "b", "c"]
    assert response.next_cursor is None


def test_topics_that_do_not_exist(world: World) -> None:
    assert [(topic.name, topic.error_code) for topic in ask(world, "x", "a b").topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9, 10])
@pytest.mark.parametrize("names", [(), ("c", "a", "b")])
def test_pages_hold_every_partition_once(world: World, limit: int, names: tuple[str, ...]) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        page = ask(world, *names, limit=limit, cursor=cursor)
        told = [(topic.name, row.partition_index) for topic in page.topics for row in topic.partitions]
        assert 0 < len(told) <= limit
        seen += told
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == [(name, index) for name in "abc" for index in range(3)]


def test_a_walk_goes_on_when_its_topic_is_gone(world: World) -> None:
    response = ask(world, cursor=Cursor(topic_name="aa", partition_index=2))

    assert [topic.name for topic in response.topics] == ["b", "c"]
    assert len(response.topics[0].partitions) == 3


def test_a_page_has_one_partition_at_least(world: World) -> None:
    response = ask(world, limit=0)

    assert [len(topic.partitions) for topic in response.topics] == [1]
