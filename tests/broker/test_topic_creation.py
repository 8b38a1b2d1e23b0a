"""Tests of broker/topic_creation.py: what a topic must be like, and with which words another is refused."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.world import World
from tidings.broker.commands import CreateTopic
from tidings.broker.site import Site
from tidings.broker.topic_creation import PartitionRoom, TopicRefused, new_topic_id, plan_topic, warning_of
from tidings.config.options import Config
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)


def make_site(*, broker_count: int = 3, config: Config | None = None) -> Site:
    world = World(broker_count=broker_count, config=config)
    world.create_topic("taken")
    return Site(config=world.config, cluster=world.broker.cluster, ports=world.ports)


@pytest.fixture
def site() -> Site:
    return make_site()


def topic(
    name: str = "t", *, partitions: int = 3, replicas: int = 3, configs: dict[str, str | None] | None = None
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def assigned(*replicas: tuple[int, ...], first_index: int = 0) -> CreatableTopic:
    return CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
            for index, broker_ids in enumerate(replicas, start=first_index)
        ],
    )


def planned(site: Site, asked: CreatableTopic) -> CreateTopic:
    return plan_topic(site, asked, PartitionRoom(site))


def refusal(site: Site, asked: CreatableTopic) -> TopicRefused:
    with pytest.raises(TopicRefused) as raised:
        planned(site, asked)
    return raised.value


def test_a_plan_names_the_living_brokers_as_candidates(site: Site) -> None:
    command = planned(site, topic(configs={"retention.ms": "1000"}))

    assert (command.partition_count, command.replication_factor) == (3, 3)
    assert command.candidates == (1, 2, 3)
    assert command.configs == {"retention.ms": "1000"}


@pytest.mark.parametrize("name", ["a", "A-1_2.x", "x" * 249, "__mine"])
def test_good_names(site: Site, name: str) -> None:
    assert planned(site, topic(name)).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n", "__consumer_offsets"])
def test_bad_names(site: Site, name: str) -> None:
    assert refusal(site, topic(name)).code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_that_is_taken(site: Site) -> None:
    assert refusal(site, topic("taken")).code is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(("broker_count", "replicas"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_by_default_a_topic_has_three_replicas_or_as_many_as_there_are_brokers(
    broker_count: int, replicas: int
) -> None:
    command = planned(make_site(broker_count=broker_count), topic(partitions=-1, replicas=-1))

    assert (command.partition_count, command.replication_factor) == (1, replicas)


def test_defaults_can_be_configured() -> None:
    site = make_site(config=Config(default_partitions=4, default_replication_factor=2))

    command = planned(site, topic(partitions=-1, replicas=-1))

    assert (command.partition_count, command.replication_factor) == (4, 2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(replicas=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(replicas=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(partitions=1_000_000), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_impossible_counts(site: Site, asked: CreatableTopic, code: ErrorCode) -> None:
    assert refusal(site, asked).code is code


def test_brokers_that_do_not_answer_are_no_candidates() -> None:
    world = World()
    world.liveness.alive_ids.discard(2)
    site = Site(config=world.config, cluster=world.broker.cluster, ports=world.ports)

    assert planned(site, topic(replicas=2)).candidates == (1, 3)
    assert refusal(site, topic(replicas=3)).code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_chosen_assignments_are_taken(site: Site) -> None:
    command = planned(site, assigned((1, 2), (3, 1)))

    assert command.assignments == ((1, 2), (3, 1))
    assert (command.partition_count, command.replication_factor) == (2, 2)


@pytest.mark.parametrize(
    "asked",
    [
        assigned((1, 2), (3,)),
        assigned((1, 1)),
        assigned((1, 9)),
        assigned(()),
        assigned((1,), first_index=1),
    ],
    ids=["of two lengths", "a broker twice", "an unknown broker", "empty", "not from 0 on"],
)
def test_impossible_assignments(site: Site, asked: CreatableTopic) -> None:
    assert refusal(site, asked).code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_assignments_go_with_neither_count_nor_factor(site: Site) -> None:
    asked = assigned((1, 2))
    asked.num_partitions = 1

    assert refusal(site, asked).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such.setting", "1"),
        ("retention.ms", None),
        ("retention.ms", "soon"),
        ("compression.type", "gzip"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_settings_that_would_not_be_kept_are_refused(site: Site, name: str, value: str | None) -> None:
    assert refusal(site, topic(configs={name: value})).code is ErrorCode.INVALID_CONFIG


def test_a_setting_is_given_once(site: Site) -> None:
    asked = topic()
    asked.configs = [CreatableTopicConfig(name="retention.ms", value="1")] * 2

    assert refusal(site, asked).code is ErrorCode.INVALID_REQUEST


def test_more_replicas_in_sync_than_a_majority_are_refused_with_the_reason(site: Site) -> None:
    assert planned(site, topic(configs={"min.insync.replicas": "2"}))

    refused = refusal(site, topic(configs={"min.insync.replicas": "3"}))

    assert refused.code is ErrorCode.INVALID_CONFIG
    assert "more than 2, the majority of 3 replicas" in str(refused)


@pytest.mark.parametrize(("replication_factor", "warns"), [(1, False), (2, True), (3, False), (4, True)])
def test_even_replication_factors_are_warned_of(replication_factor: int, warns: bool) -> None:
    assert (warning_of(replication_factor) is not None) == warns


def test_topic_ids_are_random_uuids(site: Site) -> None:
    site.random = Random(7)
    ids = {new_topic_id(site) for _ in range(100)}

    assert len(ids) == 100
    assert all(drawn[6] >> 4 == 4 and drawn[8] >> 6 == 2 for drawn in ids)


def test_partitions_beyond_the_limit_are_refused_though_they_come_topic_by_topic() -> None:
    site = make_site(config=Config(partitions_max=7))
    room = PartitionRoom(site)

    first = plan_topic(site, topic("a", partitions=3), room)
    with pytest.raises(TopicRefused) as refused:
        plan_topic(site, topic("b", partitions=4), room)
    third = plan_topic(site, topic("c", partitions=3), room)

    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert (first.partitions_max, third.partitions_max) == (7, 7)
