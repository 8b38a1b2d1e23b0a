"""DescribeConfigs (key 32), versions 1-4: the settings in force, where each comes from, and what it is for.

Topics, any one broker as this one knows it, and ("") what is set for all brokers; resources.py has the
tables.
Left out: loggers, client metrics and groups (INVALID_REQUEST). Nothing is secret, so nothing is hidden.
The one rule: a value that is shown is the one that is acted upon.
Tests: tests/broker/handlers/test_describe_configs.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.broker.requests import Request
from tidings.broker.resources import (
    ALL_BROKERS_NAME,
    BROKER_FACTS,
    ResourceRefused,
    ResourceType,
    known_configs,
    options_of,
)
from tidings.broker.site import Site
from tidings.config.options import Config
from tidings.config.topics import Source, TopicOption, effective
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tidings.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class _Asked:
    """A resource, described once however often it is named, and the settings asked for; None: all."""

    kind: int
    name: str
    keys: set[str] | None


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, DescribeConfigsRequest), body
    results = []
    for resource in _once_each(body.resources):
        result = DescribeConfigsResult(
            error_message=None, resource_type=resource.kind, resource_name=resource.name
        )
        try:
            configs = _describe(site, resource)
        except ResourceRefused as refused:
            result.error_code = refused.code
            result.error_message = str(refused)
        else:
            result.configs = [
                config for config in configs if resource.keys is None or config.name in resource.keys
            ]
            for config in result.configs:
                _leave_out(config, body)
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _once_each(resources: Sequence[DescribeConfigsResource]) -> list[_Asked]:
    asked: dict[tuple[int, str], set[str] | None] = {}
    for resource in resources:
        which = resource.resource_type, resource.resource_name
        known = asked.setdefault(which, set())
        if known is None or resource.configuration_keys is None:
            asked[which] = None
        else:
            known.update(resource.configuration_keys)
    return [_Asked(kind, name, keys) for (kind, name), keys in asked.items()]


def _leave_out(config: DescribeConfigsResourceResult, body: DescribeConfigsRequest) -> None:
    if not body.include_synonyms:
        config.synonyms = []
    if not body.include_documentation:
        config.documentation = None


def _describe(site: Site, resource: _Asked) -> list[DescribeConfigsResourceResult]:
    kind, name = resource.kind, resource.name
    cluster = site.cluster.cluster_configs()
    if kind == ResourceType.BROKER and name != ALL_BROKERS_NAME:
        _check_broker(site, name)
        described = [
            _describe_option(site.config, option, broker_name, cluster, {})
            for broker_name, option in options_of(kind).items()
        ]
        return sorted([*described, *_describe_facts(site.config)], key=lambda config: config.name)
    configs = known_configs(site, kind, name)
    if kind == ResourceType.BROKER:  # Kafka shows of all brokers only what was set for them
        return [
            _describe_option(site.config, option, broker_name, cluster, {})
            for broker_name, option in options_of(kind).items()
            if broker_name in configs
        ]
    return [
        _describe_option(site.config, option, option.name, cluster, configs)
        for option in options_of(kind).values()
    ]


def _check_broker(site: Site, name: str) -> None:
    """As in Kafka, a broker's own options are known to itself only; clients send the question there."""
    if name != str(site.broker_id):
        text = f"this is broker {site.broker_id}, the question is about broker {name}"
        raise ResourceRefused(ErrorCode.INVALID_REQUEST, text)


def _describe_option(
    config: Config,
    option: TopicOption,
    name: str,
    cluster: Mapping[str, str],
    topic: Mapping[str, str],
) -> DescribeConfigsResourceResult:
    values = effective(option, config, cluster, topic)
    return DescribeConfigsResourceResult(
        name=name,
        value=values[0].value,
        config_source=values[0].source,
        synonyms=[
            DescribeConfigsSynonym(
                name=option.name if value.source is Source.TOPIC else option.broker_name or option.name,
                value=value.value,
                source=value.source,
            )
            for value in values
        ],
        config_type=option.kind,
        documentation=option.reason,
    )


def _describe_facts(config: Config) -> list[DescribeConfigsResourceResult]:
    described = []
    for name, fact in BROKER_FACTS.items():
        value = fact.value(config)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        described.append(
            DescribeConfigsResourceResult(
                name=name,
                value=text,
                read_only=True,
                config_source=Source.BROKER,
                synonyms=[DescribeConfigsSynonym(name=name, value=text, source=Source.BROKER)],
                config_type=fact.kind,
                documentation=f"the broker's option {fact.config_field}",
            )
        )
    return described
