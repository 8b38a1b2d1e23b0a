"""CreatePartitions (key 37), versions 0-3: raise a topic's number of partitions (KIP-195).

1 answers before throttling. 2 is flexible. 3 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).
Null assignments leave the placement to the cluster.
"""

from __future__ import annotations

from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int32_array,
    nullable_array,
    string,
)


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = int32_array()


class CreatePartitionsTopic(Struct):
    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = nullable_array(
        CreatePartitionsAssignment, nullable_since=0
    )


class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Struct):
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


class CreatePartitionsResponse(Message):
    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
