"""Tests of broker/handlers/describe_configs.py: the values in force and where they come from."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.commands import ALL_BROKERS, SetBrokerConfigs
from tidings.config.options import Config
from tidings.config.topics import TOPIC_OPTIONS
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

TOPIC, BROKER, LOGGER = 2, 4, 8
SOURCE_TOPIC, SOURCE_CLUSTER, SOURCE_BROKER, SOURCE_DEFAULT = 1, 3, 4, 5
INT, LONG = 3, 5


def ask(
    world: World,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    body = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = world.ask(ApiKey.DESCRIBE_CONFIGS, version, body, DescribeConfigsResponse).results
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


@pytest.fixture
def world() -> World:
    world = World(config=Config(segment_bytes=20_000))
    world.create_topic("t", configs={"retention.ms": "5"})
    world.apply(SetBrokerConfigs(broker_id=ALL_BROKERS, values={"message.max.bytes": "6000"}))
    return world


@pytest.mark.parametrize("version", range(1, 5))
def test_every_setting_of_a_topic_is_told(world: World, version: int) -> None:
    configs = by_name(ask(world, TOPIC, "t", version=version))

    assert configs.keys() == TOPIC_OPTIONS.keys()
    assert not any(config.read_only or config.is_sensitive for config in configs.values())


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("retention.ms", "5", SOURCE_TOPIC),
        ("max.message.bytes", "6000", SOURCE_CLUSTER),
        ("segment.bytes", "20000", SOURCE_BROKER),
        ("cleanup.policy", "delete", SOURCE_DEFAULT),
    ],
)
def test_the_value_in_force_and_its_source(world: World, name: str, value: str, source: int) -> None:
    config = by_name(ask(world, TOPIC, "t"))[name]

    assert (config.value, config.config_source) == (value, source)


def test_only_the_settings_asked_for_are_told(world: World) -> None:
    configs = by_name(ask(world, TOPIC, "t", ["retention.ms", "no.such.setting"]))

    assert list(configs) == ["retention.ms"]
    assert by_name(ask(world, TOPIC, "t", [])) == {}


def test_synonyms_type_and_documentation_are_told_on_request(world: World) -> None:
    plain = by_name(ask(world, TOPIC, "t"))["retention.ms"]
    full = by_name(ask(world, TOPIC, "t", synonyms=True, documentation=True))["retention.ms"]

    assert (plain.synonyms, plain.documentation, plain.config_type) == ([], None, LONG)
    assert full.documentation == TOPIC_OPTIONS["retention.ms"].reason
    assert [(synonym.name, synonym.value, synonym.source) for synonym in full.synonyms] == [
        ("retention.ms", "5", SOURCE_TOPIC),
        ("log.retention.ms", "604800000", SOURCE_DEFAULT),
    ]


def test_a_broker_tells_its_options_by_the_names_kafkas_users_know(world: World) -> None:
    configs = by_name(ask(world, BROKER, "1"))

    assert (configs["num.partitions"].value, configs["num.partitions"].read_only) == ("1", True)
    assert configs["auto.create.topics.enable"].value == "true"
    assert (configs["message.max.bytes"].value, configs["message.max.bytes"].read_only) == ("6000", False)
    assert configs["broker.id"].config_type == INT


def test_of_all_brokers_only_what_was_set_is_told(world: World) -> None:
    assert list(by_name(ask(world, BROKER, ""))) == ["message.max.bytes"]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_resources_are_refused(world: World, kind: int, name: str, code: ErrorCode) -> None:
    result = ask(world, kind, name)

    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


@pytest.mark.parametrize(
    ("asked", "told_count"),
    [([["retention.ms"], ["retention.ms", "segment.ms"]], 2), ([["retention.ms"], None], len(TOPIC_OPTIONS))],
)
def test_a_resource_named_often_is_described_once_with_all_that_is_asked(
    world: World, asked: list[list[str] | None], told_count: int
) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=keys)
        for keys in asked
    ]
    body = DescribeConfigsRequest(resources=resources)

    (result,) = world.ask(ApiKey.DESCRIBE_CONFIGS, 4, body, DescribeConfigsResponse).results

    assert len(by_name(result)) == told_count
