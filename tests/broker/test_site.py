"""Tests of broker/site.py: what a broker holds, and why something is not there."""

from __future__ import annotations

import pytest

from tests.fakes.replica_log import FakeReplicaLog
from tests.fakes.world import World, topic_id_of
from tidings.broker.commands import (
    ALL_BROKERS,
    CreateTopic,
    DeleteTopic,
    SetBrokerConfigs,
    SetTopicConfigs,
)
from tidings.broker.site import PartitionTable
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


@pytest.fixture
def world() -> World:
    return World()


def earliest(world: World, topic: str, index: int) -> int:
    """The error code of a simple question about a partition."""
    asked = ListOffsetsTopic(
        name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-2)]
    )
    body = ListOffsetsRequest(topics=[asked])
    response = world.ask(ApiKey.LIST_OFFSETS, 7, body, ListOffsetsResponse)
    return response.topics[0].partitions[0].error_code


def test_a_partition_that_is_elsewhere_is_told_from_one_that_is_not(world: World) -> None:
    world.apply(
        CreateTopic(
            name="far",
            topic_id=topic_id_of("far"),
            partition_count=1,
            replication_factor=1,
            assignments=((2,),),
        )
    )

    assert earliest(world, "far", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert earliest(world, "far", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert earliest(world, "far", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert earliest(world, "nowhere", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_open_partition_takes_up_changed_settings(world: World) -> None:
    partition, other = world.create_topic("t")[0], world.create_topic("other")[0]

    world.apply(SetTopicConfigs(topic_id=topic_id_of("t"), values={"max.message.bytes": "5000"}))
    world.apply(SetBrokerConfigs(broker_id=ALL_BROKERS, values={"message.max.bytes": "6000"}))

    assert partition.settings.batch_bytes_max == 5_000
    assert other.settings.batch_bytes_max == 6_000


def test_a_topics_settings_are_no_work_for_other_topics(world: World) -> None:
    partition, other = world.create_topic("t")[0], world.create_topic("other")[0]
    others_settings = other.settings

    world.apply(SetTopicConfigs(topic_id=topic_id_of("t"), values={"max.message.bytes": "5000"}))

    assert partition.settings.batch_bytes_max == 5_000
    assert other.settings is others_settings


def test_a_topic_created_again_under_its_name_is_another_partition(world: World) -> None:
    old = world.create_topic("t")[0]
    world.apply(DeleteTopic(topic_id=topic_id_of("t")))
    outcome = world.apply(
        CreateTopic(
            name="t", topic_id=b"n" * 16, partition_count=1, replication_factor=1, assignments=((1,),)
        )
    )
    new = world.lead(outcome.groups[0])

    world.broker.close_partition(old.group, world.now_ms)

    assert earliest(world, "t", 0) == ErrorCode.NONE
    assert not old.is_open
    assert new.is_open


def test_a_group_is_opened_once(world: World) -> None:
    partition = world.create_topic("t")[0]

    with pytest.raises(AssertionError):
        world.broker.open_partition(partition.group, FakeReplicaLog(world.calls))


def test_the_table_lists_all_that_is_open(world: World) -> None:
    table = PartitionTable()
    for partition in world.create_topic("t", partition_count=3):
        table.add(partition)

    assert [partition.index for partition in table] == [0, 1, 2]
    table.remove(next(iter(table)).group)
    assert [partition.index for partition in table] == [1, 2]
