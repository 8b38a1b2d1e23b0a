"""DeleteTopics (key 20), versions 1-6.

2 answers before throttling, 3 may answer TOPIC_DELETION_DISABLED. 4 is flexible. 5 adds an error message and
may answer THROTTLING_QUOTA_EXCEEDED (KIP-599). 6 names topics by name or by id (KIP-516).
"""

from __future__ import annotations

from tidings.protocol.schema import Message, Struct, array, int16, int32, string, string_array, uuid


class DeleteTopicState(Struct):
    name: str | None = string(nullable_since=6, default=None)
    topic_id: bytes = uuid()


class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = string_array(until=5)
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    name: str | None = string(nullable_since=6)
    topic_id: bytes = uuid(since=6)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable_since=5, default=None)


class DeleteTopicsResponse(Message):
    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
