"""Tests of broker/handlers/metadata.py: who leads what, as this broker knows it; topics made on first use."""

from __future__ import annotations

import pytest

from tests.fakes.world import CLUSTER_ID, World, topic_id_of
from tidings.broker.handlers.metadata import CREATED_TOPICS_MAX
from tidings.broker.ports import NO_LEADER
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

UNKNOWN_OPERATIONS = -(2**31)


def body_of(*names: str, creates: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)


def ask(world: World, body: MetadataRequest, *, version: int = 12) -> MetadataResponse:
    return world.ask(ApiKey.METADATA, version, body, MetadataResponse)


def ask_one(world: World, name: str, *, creates: bool = False, version: int = 12) -> MetadataResponseTopic:
    (topic,) = ask(world, body_of(name, creates=creates), version=version).topics
    return topic


@pytest.fixture
def world() -> World:
    return World()


def test_the_cluster_and_its_living_brokers(world: World) -> None:
    world.add_broker(9, rack="r")
    world.liveness.alive_ids.discard(2)
    world.liveness.changed()

    response = ask(world, body_of())

    assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, 1)
    brokers = [(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers]
    assert brokers == [(1, "host1", 9_091, None), (3, "host3", 9_093, None), (9, "host9", 9_099, "r")]


def test_while_there_is_no_controller_this_broker_takes_its_place(world: World) -> None:
    world.liveness.controller_id = NO_LEADER
    world.liveness.changed()

    assert ask(world, body_of()).controller_id == 1


def test_a_broker_that_died_a_moment_ago_is_still_named_and_leads_nothing(world: World) -> None:
    partition = world.create_topic("t")[0]
    world.set_leader(partition.group, 2, 5)
    world.liveness.alive_ids.discard(2)
    world.liveness.gone_ids.add(2)

    response = ask(world, body_of("t"))

    assert [broker.node_id for broker in response.brokers] == [1, 2, 3]
    assert response.topics[0].partitions[0].leader_id == -1


def test_a_topic_with_its_leaders_and_replicas(world: World) -> None:
    world.create_topic("t", partition_count=2)

    topic = ask_one(world, "t")

    assert (topic.error_code, topic.topic_id, topic.is_internal) == (0, topic_id_of("t"), False)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1]
    partition = topic.partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.error_code) == (1, 1, 0)
    assert partition.replica_nodes == partition.isr_nodes == [1, 2, 3]
    assert partition.offline_replicas == []


def test_the_newest_leader_is_told_wherever_it_is(world: World) -> None:
    partition = world.create_topic("t")[0]
    ask_one(world, "t")

    world.follow(partition.group, 3, epoch=8)

    told = ask_one(world, "t").partitions[0]
    assert (told.leader_id, told.leader_epoch) == (3, 8)


@pytest.mark.parametrize("leader", [-1, 2])
def test_no_leader_or_one_that_does_not_answer(world: World, leader: int) -> None:
    partition = world.create_topic("t")[0]
    world.follow(partition.group, leader, epoch=8)
    world.liveness.alive_ids.discard(2)
    world.liveness.changed()

    told = ask_one(world, "t").partitions[0]

    assert (told.error_code, told.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (told.isr_nodes, told.offline_replicas) == ([1, 3], [2])


@pytest.mark.parametrize(
    ("version", "topics", "count"),
    [(0, [], 2), (1, None, 2), (1, [], 0), (12, None, 2), (12, [], 0)],
)
def test_all_topics_or_none(
    world: World, version: int, topics: list[MetadataRequestTopic] | None, count: int
) -> None:
    world.create_topic("a")
    world.create_topic("b")

    assert len(ask(world, MetadataRequest(topics=topics), version=version).topics) == count


def test_topics_by_id(world: World) -> None:
    world.create_topic("t")
    known, unknown = topic_id_of("t"), b"?" * 16
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in (known, unknown)]

    found, missing = ask(world, MetadataRequest(topics=topics)).topics

    assert (found.name, found.error_code) == ("t", 0)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_id_is_told_without_a_null_name_where_a_version_has_none(world: World) -> None:
    topics = [MetadataRequestTopic(topic_id=b"?" * 16, name=None)]

    (missing,) = ask(world, MetadataRequest(topics=topics), version=11).topics

    assert missing.name == ""


def test_topics_that_do_not_exist(world: World) -> None:
    assert ask_one(world, "x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask_one(world, "a b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask_one(world, "").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", range(14))
def test_every_served_version_is_answered(world: World, version: int) -> None:
    world.create_topic("t")

    assert ask_one(world, "t", version=version).error_code == 0


def test_authorized_operations_are_told_on_request(world: World) -> None:
    world.create_topic("t")
    body = body_of("t", "x")
    body.include_cluster_authorized_operations = body.include_topic_authorized_operations = True

    with_operations = ask(world, body, version=10)
    without = ask(world, body_of("t"), version=10)

    assert with_operations.cluster_authorized_operations == 8_096
    assert [topic.topic_authorized_operations for topic in with_operations.topics] == [
        3_576,
        UNKNOWN_OPERATIONS,
    ]
    assert without.cluster_authorized_operations == UNKNOWN_OPERATIONS


# Answers that are kept


def test_the_same_question_gets_the_same_object_until_something_changes(world: World) -> None:
    world.create_topic("t")
    first = ask(world, body_of("t"))

    assert ask(world, body_of("t")) is first
    assert ask(world, body_of("t"), version=9) is not first
    world.create_topic("u")
    second = ask(world, body_of("t"))
    assert second is not first
    world.liveness.changed()
    assert ask(world, body_of("t")) is not second


def test_an_answer_to_many_names_is_not_kept(world: World) -> None:
    names = [f"t{number}" for number in range(101)]

    assert ask(world, body_of(*names)) is not ask(world, body_of(*names))


# Topics made on first use


def test_an_unknown_topic_is_created_when_client_and_broker_want_it(world: World) -> None:
    asked = world.send(ApiKey.METADATA, 12, body_of("new", creates=True))
    assert not asked.is_answered

    world.settle()

    (topic,) = asked.answer(MetadataResponse).topics
    assert (topic.name, len(topic.partitions)) == ("new", 1)
    assert len(topic.partitions[0].replica_nodes) == 3
    assert world.settling.asked == [(1,)]


def test_clients_older_than_the_choice_want_it(world: World) -> None:
    body = MetadataRequest(topics=[MetadataRequestTopic(name="new")])

    ask(world, body, version=1)

    assert "new" in world.broker.cluster.topics


def test_nothing_is_created_where_the_client_does_not_ask_for_it(world: World) -> None:
    ask_one(world, "new")

    assert not world.broker.cluster.topics


def test_nothing_is_created_where_the_broker_does_not_allow_it() -> None:
    world = World(config=Config(auto_create_topics=False))

    topic = ask_one(world, "new", creates=True)

    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.broker.cluster.topics


def test_a_name_that_cannot_be_created_is_told(world: World) -> None:
    assert ask_one(world, "a b", creates=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not world.controller.proposed


def test_who_comes_second_waits_for_the_leaders_of_what_the_first_created(world: World) -> None:
    first = world.send(ApiKey.METADATA, 12, body_of("new", creates=True))
    second = world.send(ApiKey.METADATA, 12, body_of("new", creates=True))

    world.settle()

    assert first.answer(MetadataResponse).topics == second.answer(MetadataResponse).topics
    assert world.freshness.asked == [(1,)]


def test_a_creation_that_takes_too_long_is_not_waited_for(world: World) -> None:
    asked = world.send(ApiKey.METADATA, 12, body_of("new", creates=True))

    world.timers.advance(1_000)

    (topic,) = asked.answer(MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Leaders that are known to live


def test_who_asks_for_a_topic_is_told_once_its_leaders_are_known_to_live(world: World) -> None:
    world.create_topic("t", partition_count=2)
    asked = world.send(ApiKey.METADATA, 12, body_of("t", "x"))
    assert not asked.is_answered

    world.settle()

    assert asked.is_answered
    assert world.freshness.asked == [(1, 2)]


def test_a_leader_that_does_not_answer_holds_nobody_up_for_long(world: World) -> None:
    world.create_topic("t")
    world.freshness.is_fresh = False
    asked = world.send(ApiKey.METADATA, 12, body_of("t"))

    world.timers.advance(250)

    assert [topic.error_code for topic in asked.answer(MetadataResponse).topics] == [0]


def test_who_asks_for_everything_is_told_what_is_known(world: World) -> None:
    world.create_topic("t")

    assert world.send(ApiKey.METADATA, 12, MetadataRequest(topics=None)).is_answered
    assert world.freshness.asked == []


def test_one_request_creates_only_so_many_topics(world: World) -> None:
    names = [f"t{number}" for number in range(CREATED_TOPICS_MAX + 5)]

    response = ask(world, body_of(*names, creates=True))

    codes = [topic.error_code for topic in response.topics]
    assert len(world.broker.cluster.topics) == CREATED_TOPICS_MAX
    assert codes.count(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) == 5


def test_a_topic_named_often_is_described_once(world: World) -> None:
    world.create_topic("t")

    response = ask(world, body_of("t", "u", "t", "t"))

    assert [topic.name for topic in response.topics] == ["t", "u"]
