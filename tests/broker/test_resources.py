"""Tests of broker/resources.py: which settings there are, of what."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.commands import ALL_BROKERS, SetBrokerConfigs
from tidings.broker.resources import (
    BROKER_FACTS,
    ResourceRefused,
    ResourceType,
    check_setting,
    known_configs,
    options_of,
)
from tidings.broker.site import Site
from tidings.config.options import Config
from tidings.protocol.errors import ErrorCode


@pytest.fixture
def site() -> Site:
    world = World()
    world.create_topic("t", configs={"retention.ms": "5"})
    world.apply(SetBrokerConfigs(broker_id=ALL_BROKERS, values={"log.retention.ms": "6"}))
    return Site(config=world.config, cluster=world.broker.cluster, ports=world.ports)


def test_what_is_set_is_known_by_resource(site: Site) -> None:
    assert known_configs(site, ResourceType.TOPIC, "t") == {"retention.ms": "5"}
    assert known_configs(site, ResourceType.BROKER, "") == {"log.retention.ms": "6"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ResourceType.TOPIC, "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.BROKER, "1", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (32, "group", ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_resources_cannot_be_changed(site: Site, kind: int, name: str, code: ErrorCode) -> None:
    with pytest.raises(ResourceRefused) as raised:
        known_configs(site, kind, name)

    assert raised.value.code is code


def test_a_setting_goes_by_the_name_of_its_kind_of_resource() -> None:
    assert check_setting(ResourceType.TOPIC, "max.message.bytes", "10") == "10"
    assert check_setting(ResourceType.BROKER, "message.max.bytes", "10") == "10"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (ResourceType.TOPIC, "message.max.bytes", "10"),
        (ResourceType.BROKER, "max.message.bytes", "10"),
        (ResourceType.BROKER, "num.partitions", "10"),
        (ResourceType.BROKER, "log.retention.ms", "-2"),
    ],
)
def test_wrong_names_and_values_are_refused(kind: int, name: str, value: str) -> None:
    with pytest.raises(ResourceRefused) as raised:
        check_setting(kind, name, value)

    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_facts_of_a_broker_are_options_that_exist_and_no_settings_of_topics() -> None:
    for name, fact in BROKER_FACTS.items():
        assert hasattr(Config(), fact.config_field), name
    assert not BROKER_FACTS.keys() & options_of(ResourceType.BROKER).keys()
