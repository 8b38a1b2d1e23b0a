"""CreateTopics (key 19), versions 2-7: topics with partitions, replicas and settings.

Answered when every living broker knows the topics and their leaders: a client may go on with any broker. With
validate_only nothing is made. An even replication factor is taken, with a warning in the message of an answer
without error.
Left out: quotas (KIP-599), and Kafka's refusal of names that differ only in '.' and '_', which its metrics
need.
The one rule: each topic is judged alone; one that is refused does not hold back the others.
Tests: tests/broker/handlers/test_create_topics.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidings.broker.changes import Change, make_changes
from tidings.broker.commands import CreateTopic
from tidings.broker.outcome import Outcome
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.broker.topic_creation import PartitionRoom, TopicRefused, plan_topic, warning_of
from tidings.config.topics import TOPIC_OPTIONS, effective
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidings.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class _Planned:
    """A topic that may be created, and the place of its answer."""

    command: CreateTopic
    result: CreatableTopicResult


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, CreateTopicsRequest), body
    response = CreateTopicsResponse()
    planned = []
    room = PartitionRoom(site)
    name_counts = Counter(topic.name for topic in body.topics)
    for topic in {topic.name: topic for topic in body.topics}.values():
        if name_counts[topic.name] > 1:
            text = "Duplicate topic name."
            response.topics.append(_refusal(topic.name, ErrorCode.INVALID_REQUEST, text))
            continue
        try:
            command = plan_topic(site, topic, room)
        except TopicRefused as refused:
            response.topics.append(_refusal(topic.name, refused.code, str(refused)))
            continue
        planned.append(_Planned(command, _result(site, command)))
        response.topics.append(planned[-1].result)
    if not planned or body.validate_only:
        return response

    def tell(outcomes: list[Outcome]) -> None:
        for plan, outcome in zip(planned, outcomes, strict=True):
            _complete(plan.result, outcome)
        request.answer(response)

    changes = [Change(command=plan.command) for plan in planned]
    make_changes(site, changes, now_ms=now_ms, timeout_ms=body.timeout_ms, then=tell)
    return None


def _result(site: Site, command: CreateTopic) -> CreatableTopicResult:
    """The topic as it will be; the settings are those in force, by name."""
    configs = []
    for option in TOPIC_OPTIONS.values():
        value = effective(option, site.config, site.cluster.cluster_configs(), command.configs)[0]
        configs.append(CreatableTopicConfigs(name=option.name, value=value.value, config_source=value.source))
    return CreatableTopicResult(
        name=command.name,
        topic_id=command.topic_id,
        error_code=ErrorCode.NONE,
        error_message=warning_of(command.replication_factor),
        num_partitions=command.partition_count,
        replication_factor=command.replication_factor,
        configs=configs,
    )


def _complete(result: CreatableTopicResult, outcome: Outcome) -> None:
    if outcome.code is ErrorCode.NONE:
        return
    refused = _refusal(result.name, outcome.code, outcome.message)
    result.topic_id = refused.topic_id
    result.error_code = refused.error_code
    result.error_message = refused.error_message
    result.num_partitions = refused.num_partitions
    result.replication_factor = refused.replication_factor
    result.configs = refused.configs


def _refusal(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])
