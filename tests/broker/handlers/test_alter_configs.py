"""Tests of broker/handlers/alter_configs.py: settings replaced as a whole or changed one by one."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.config.topics import VALUE_BYTES_MAX
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages import alter_configs, incremental_alter_configs

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)

Wish = tuple[str, int, str | None]


def change(
    world: World, *wishes: Wish, kind: int = TOPIC, name: str = "t", validate_only: bool = False
) -> ErrorCode:
    """Change single settings of one resource."""
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in wishes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    body = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    kind_of_answer = incremental_alter_configs.IncrementalAlterConfigsResponse
    (answer,) = world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body, kind_of_answer).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return ErrorCode(answer.error_code)


def resource_of(name: str, **configs: str | None) -> alter_configs.AlterConfigsResource:
    return alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def replace_all(
    world: World,
    *resources: alter_configs.AlterConfigsResource,
    version: int = 2,
    validate_only: bool = False,
) -> list[int]:
    body = alter_configs.AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = world.ask(ApiKey.ALTER_CONFIGS, version, body, alter_configs.AlterConfigsResponse)
    return [answer.error_code for answer in response.responses]


def configs_of(world: World, name: str = "t") -> dict[str, str]:
    return dict(world.broker.cluster.topics[name].configs)


@pytest.fixture
def world() -> World:
    world = World()
    world.create_topic("t", configs={"retention.ms": "5", "segment.ms": "6"})
    world.create_topic("u")
    return world


# Single settings


def test_settings_are_set_and_deleted_one_by_one(world: World) -> None:
    code = change(world, ("retention.ms", SET, "7"), ("segment.ms", DELETE, None))

    assert code is ErrorCode.NONE
    assert configs_of(world) == {"retention.ms": "7"}
    assert world.settling.asked == [()]


def test_lists_are_added_to_and_taken_from(world: World) -> None:
    change(world, ("cleanup.policy", APPEND, "compact"))
    assert configs_of(world)["cleanup.policy"] == "delete,compact"
    change(world, ("cleanup.policy", APPEND, "compact"))
    assert configs_of(world)["cleanup.policy"] == "delete,compact"
    change(world, ("cleanup.policy", SUBTRACT, "delete"))

    assert configs_of(world)["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (("no.such.setting", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("no.such.setting", DELETE, None), ErrorCode.INVALID_CONFIG),
        (("no.such.setting", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", SUBTRACT, "delete"), ErrorCode.INVALID_CONFIG),
        (("min.insync.replicas", SET, "3"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_wish_that_cannot_be_met_leaves_the_resource_as_it_is(
    world: World, wish: Wish, code: ErrorCode
) -> None:
    assert change(world, ("segment.bytes", SET, "20000"), wish) is code
    assert configs_of(world) == {"retention.ms": "5", "segment.ms": "6"}


def test_a_setting_is_changed_once(world: World) -> None:
    code = change(world, ("retention.ms", SET, "7"), ("retention.ms", DELETE, None))

    assert code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_resources_are_refused(world: World, kind: int, name: str, code: ErrorCode) -> None:
    assert change(world, ("retention.ms", SET, "7"), kind=kind, name=name) is code


def test_settings_of_all_brokers_reach_the_topics_without_their_own(world: World) -> None:
    code = change(world, ("log.retention.ms", SET, "9"), kind=BROKER, name="")

    assert code is ErrorCode.NONE
    own, others = (world.broker.partition(group) for group in (1, 2))
    assert own is not None
    assert others is not None
    assert (own.settings.retention_ms, others.settings.retention_ms) == (5, 9)


def test_only_validating_changes_nothing(world: World) -> None:
    assert change(world, ("retention.ms", SET, "7"), validate_only=True) is ErrorCode.NONE
    assert not world.controller.proposed


def test_a_change_that_is_not_made_in_time(world: World) -> None:
    world.controller.is_reachable = False

    assert change(world, ("retention.ms", SET, "7")) is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("operation", [SET, APPEND, SUBTRACT])
def test_a_list_is_not_looked_into_beyond_its_limit(world: World, operation: int) -> None:
    entries = ",".join(str(number) for number in range(VALUE_BYTES_MAX))

    code = change(world, ("leader.replication.throttled.replicas", operation, entries))

    assert code is ErrorCode.INVALID_CONFIG


def test_the_text_of_a_refusal_fits_every_version(world: World) -> None:
    body = alter_configs.AlterConfigsRequest(resources=[resource_of("t", **{"x" * 40_000: "1"})])

    answer = world.ask(ApiKey.ALTER_CONFIGS, 0, body, alter_configs.AlterConfigsResponse).responses[0]

    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert len(answer.error_message or "") < 1_000


# As a whole


@pytest.mark.parametrize("version", range(3))
def test_settings_that_are_not_named_are_removed(world: World, version: int) -> None:
    assert replace_all(world, resource_of("t", segment_bytes="20000"), version=version) == [0]
    assert configs_of(world) == {"segment.bytes": "20000"}


def test_each_resource_is_changed_alone(world: World) -> None:
    codes = replace_all(
        world, resource_of("t", retention_ms="soon"), resource_of("x"), resource_of("u", retention_ms="8")
    )

    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert configs_of(world) == {"retention.ms": "5", "segment.ms": "6"}
    assert configs_of(world, "u") == {"retention.ms": "8"}


def test_a_resource_is_named_once(world: World) -> None:
    codes = replace_all(world, resource_of("t"), resource_of("t", retention_ms="8"))

    assert codes == [ErrorCode.INVALID_REQUEST] * 2


def test_a_value_is_given(world: World) -> None:
    assert replace_all(world, resource_of("t", retention_ms=None)) == [ErrorCode.INVALID_REQUEST]


def test_only_validating_a_whole_changes_nothing(world: World) -> None:
    assert replace_all(world, resource_of("t"), validate_only=True) == [0]
    assert configs_of(world) == {"retention.ms": "5", "segment.ms": "6"}
