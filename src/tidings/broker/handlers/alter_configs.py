"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1: change settings.

The first replaces all settings of a resource by those given; it is deprecated, but KafkaJS uses it. The
second sets, deletes, appends to or subtracts from single ones (KIP-339). Answered when every living broker
has taken the change up.
Left out: the options of one broker, loggers, client metrics, groups, quotas (INVALID_REQUEST).
The one rule: a resource is changed as a whole or not at all.
Tests: tests/broker/handlers/test_alter_configs.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidings.broker.changes import Change, make_changes
from tidings.broker.commands import ALL_BROKERS, Command, SetBrokerConfigs, SetTopicConfigs
from tidings.broker.outcome import Outcome
from tidings.broker.requests import Request
from tidings.broker.resources import (
    ResourceRefused,
    ResourceType,
    check_setting,
    check_setting_name,
    known_configs,
    options_of,
)
from tidings.broker.site import Site
from tidings.broker.topic_creation import TopicRefused, check_min_insync
from tidings.config.topics import OptionType, TopicOptionError, check_length
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages import alter_configs, incremental_alter_configs
from tidings.protocol.schema import Message

SET, DELETE, APPEND, SUBTRACT = range(4)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is wanted of one setting."""

    name: str
    operation: int
    value: str | None


@dataclass(slots=True)
class _Resource:
    """One resource, what is wanted of it, and what came of it."""

    kind: int
    name: str
    wishes: Sequence[_Wish]
    replaces: bool
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None

    def refuse(self, code: ErrorCode, message: str | None) -> None:
        self.code = code
        self.message = message


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, alter_configs.AlterConfigsRequest), body
    resources = [
        _Resource(
            asked.resource_type,
            asked.resource_name,
            [_Wish(config.name, SET, config.value) for config in asked.configs],
            replaces=True,
        )
        for asked in body.resources
    ]
    return _alter(site, request, resources, _respond, validate_only=body.validate_only, now_ms=now_ms)


def handle_incremental(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, incremental_alter_configs.IncrementalAlterConfigsRequest), body
    resources = [
        _Resource(
            asked.resource_type,
            asked.resource_name,
            [_Wish(config.name, config.config_operation, config.value) for config in asked.configs],
            replaces=False,
        )
        for asked in body.resources
    ]
    return _alter(
        site, request, resources, _respond_incremental, validate_only=body.validate_only, now_ms=now_ms
    )


def _alter(
    site: Site,
    request: Request,
    resources: list[_Resource],
    respond: Callable[[Sequence[_Resource]], Message],
    *,
    validate_only: bool,
    now_ms: int,
) -> Message | None:
    counts = Counter((resource.kind, resource.name) for resource in resources)
    planned: list[_Resource] = []
    changes: list[Change] = []
    for resource in resources:
        try:
            if counts[resource.kind, resource.name] > 1:
                raise ResourceRefused(ErrorCode.INVALID_REQUEST, "the request names the resource twice")
            command = _plan(site, resource)
        except (ResourceRefused, TopicRefused) as refused:
            resource.refuse(refused.code, str(refused))
            continue
        planned.append(resource)
        changes.append(Change(command=command, awaits_leaders=False))
    if not planned or validate_only:
        return respond(resources)

    def tell(outcomes: list[Outcome]) -> None:
        for resource, outcome in zip(planned, outcomes, strict=True):
            resource.refuse(outcome.code, outcome.message)
        request.answer(respond(resources))

    timeout_ms = site.config.controller_timeout_ms  # the request names none
    make_changes(site, changes, now_ms=now_ms, timeout_ms=timeout_ms, then=tell)
    return None


def _plan(site: Site, resource: _Resource) -> Command:
    """The command that does what is wanted, or ResourceRefused or TopicRefused."""
    known = known_configs(site, resource.kind, resource.name)
    values: dict[str, str] = {}
    removed: list[str] = []
    for wish in resource.wishes:
        check_setting_name(resource.kind, wish.name)
        if wish.name in values or wish.name in removed:
            raise ResourceRefused(ErrorCode.INVALID_REQUEST, f"{wish.name} is changed twice")
        if wish.operation == DELETE:
            if wish.name not in options_of(resource.kind):
                raise ResourceRefused(ErrorCode.INVALID_CONFIG, f"there is no setting {wish.name}")
            removed.append(wish.name)
        else:
            values[wish.name] = check_setting(resource.kind, wish.name, _wanted(resource, wish, known))
    if resource.kind == ResourceType.BROKER:
        return SetBrokerConfigs(
            broker_id=ALL_BROKERS, values=values, removed=tuple(removed), replaces=resource.replaces
        )
    topic = site.cluster.topics[resource.name]
    check_min_insync(values, len(topic.partitions[0].replicas))
    return SetTopicConfigs(
        topic_id=topic.topic_id, values=values, removed=tuple(removed), replaces=resource.replaces
    )


def _wanted(resource: _Resource, wish: _Wish, known: Mapping[str, str]) -> str:
    """The value that a wish leads to; lists may be added to and taken from."""
    if wish.value is None:
        raise ResourceRefused(ErrorCode.INVALID_REQUEST, f"{wish.name} has no value")
    if wish.operation == SET:
        return wish.value
    if wish.operation not in (APPEND, SUBTRACT):
        text = f"operation {wish.operation} is unknown"
        raise ResourceRefused(ErrorCode.INVALID_REQUEST, text)
    option = options_of(resource.kind)[wish.name]
    if option.kind is not OptionType.LIST:
        text = f"{wish.name} is no list: it can be set, nothing can be added to it or taken from it"
        raise ResourceRefused(ErrorCode.INVALID_CONFIG, text)
    try:
        check_length(wish.name, wish.value)
    except TopicOptionError as error:
        raise ResourceRefused(ErrorCode.INVALID_CONFIG, str(error)) from error
    present = [part for part in known.get(wish.name, option.default).split(",") if part]
    given = [part.strip() for part in wish.value.split(",")]
    if wish.operation == SUBTRACT:
        return ",".join(part for part in present if part not in given)
    return ",".join([*present, *(part for part in given if part not in present)])


def _respond(resources: Sequence[_Resource]) -> Message:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=resource.code,
                error_message=resource.message,
                resource_type=resource.kind,
                resource_name=resource.name,
            )
            for resource in resources
        ]
    )


def _respond_incremental(resources: Sequence[_Resource]) -> Message:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=resource.code,
                error_message=resource.message,
                resource_type=resource.kind,
                resource_name=resource.name,
            )
            for resource in resources
        ]
    )
