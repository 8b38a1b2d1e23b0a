"""CreatePartitions (key 37), versions 0-3: raise a topic's number of partitions (KIP-195).

Answered when every living broker knows them and their leaders. Records stay where they are, so keys hash to
other partitions from then on.
Left out: quotas (KIP-599).
The one rule: each topic is judged alone. Tests: tests/broker/handlers/test_create_partitions.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidings.broker.changes import Change, make_changes
from tidings.broker.commands import CreatePartitions
from tidings.broker.outcome import Outcome
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.broker.topic_creation import PartitionRoom, TopicRefused, candidates, check_assignments
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tidings.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class _Planned:
    """A topic that may grow, and the place of its answer."""

    command: CreatePartitions
    result: CreatePartitionsTopicResult


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, CreatePartitionsRequest), body
    name_counts = Counter(topic.name for topic in body.topics)
    response = CreatePartitionsResponse()
    planned = []
    room = PartitionRoom(site)
    for topic in body.topics:
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if name_counts[topic.name] > 1:
                raise TopicRefused(ErrorCode.INVALID_REQUEST, "the request names the topic twice")
            planned.append(_Planned(_plan(site, topic, room), result))
        except TopicRefused as refused:
            result.error_code = refused.code
            result.error_message = str(refused)
        response.results.append(result)
    if not planned or body.validate_only:
        return response

    def tell(outcomes: list[Outcome]) -> None:
        for plan, outcome in zip(planned, outcomes, strict=True):
            plan.result.error_code = outcome.code
            plan.result.error_message = outcome.message
        request.answer(response)

    changes = [Change(command=plan.command) for plan in planned]
    make_changes(site, changes, now_ms=now_ms, timeout_ms=body.timeout_ms, then=tell)
    return None


def _plan(site: Site, topic: CreatePartitionsTopic, room: PartitionRoom) -> CreatePartitions:
    row = site.cluster.topics.get(topic.name)
    if row is None:
        raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic with this name")
    count = len(row.partitions)
    if topic.count <= count:
        text = f"the topic has {count} partition(s); {topic.count} would not be an increase"
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS, text)
    replication_factor = len(row.partitions[0].replicas)
    assignments = tuple(tuple(assignment.broker_ids) for assignment in topic.assignments or ())
    if assignments and len(assignments) != topic.count - count:
        text = f"{len(assignments)} assignments for {topic.count - count} new partitions"
        raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    check_assignments(site, assignments, replication_factor)
    able = candidates(site)
    if not assignments and len(able) < replication_factor:
        text = f"the topic has {replication_factor} replicas of each partition, {len(able)} brokers are alive"
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    room.take(topic.count - count)
    return CreatePartitions(
        topic_id=row.topic_id,
        partition_count=topic.count,
        candidates=able,
        assignments=assignments,
        partitions_max=room.partitions_max,
    )
