"""DeleteTopics (key 20), versions 1-6: topics with all that is in them, by name or by id.

Answered when every living broker has forgotten them.
Left out: quotas (KIP-599); a switch against deletion (TOPIC_DELETION_DISABLED).
The one rule: each topic is judged alone. Tests: tests/broker/handlers/test_delete_topics.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidings.broker.changes import Change, make_changes
from tidings.broker.commands import DeleteTopic
from tidings.broker.outcome import Outcome
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidings.protocol.schema import ZERO_UUID, Message


@dataclass(frozen=True, slots=True)
class _Planned:
    """A topic that may be deleted, and the place of its answer."""

    command: DeleteTopic
    result: DeletableTopicResult


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, DeleteTopicsRequest), body
    asked = [*body.topics, *(DeleteTopicState(name=name) for name in body.topic_names)]
    results = [_judge(site, state) for state in asked]
    id_counts = Counter(result.topic_id for result in results if result.error_code == ErrorCode.NONE)
    planned = []
    for result in results:
        if result.error_code != ErrorCode.NONE:
            continue
        if id_counts[result.topic_id] > 1:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "the request names the topic twice"
        else:
            planned.append(_Planned(DeleteTopic(topic_id=result.topic_id), result))
    response = DeleteTopicsResponse(responses=results)
    if not planned:
        return response

    def tell(outcomes: list[Outcome]) -> None:
        for plan, outcome in zip(planned, outcomes, strict=True):
            plan.result.error_code = outcome.code
            plan.result.error_message = outcome.message
        request.answer(response)

    changes = [Change(command=plan.command, awaits_leaders=False) for plan in planned]
    make_changes(site, changes, now_ms=now_ms, timeout_ms=body.timeout_ms, then=tell)
    return None


def _judge(site: Site, state: DeleteTopicState) -> DeletableTopicResult:
    """The answer as it will be if nothing more speaks against it."""
    has_id = state.topic_id != ZERO_UUID
    if has_id == (state.name is not None):
        text = "a topic is named by its name or by its id, by one of them"
        return _refusal(state, ErrorCode.INVALID_REQUEST, text)
    if state.name is None:
        row = site.cluster.topics_by_id.get(state.topic_id)
        if row is None:
            return _refusal(state, ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    else:
        row = site.cluster.topics.get(state.name)
        if row is None:
            return _refusal(state, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic with this name")
    return DeletableTopicResult(name=row.name, topic_id=row.topic_id)


def _refusal(state: DeleteTopicState, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=code, error_message=message
    )
