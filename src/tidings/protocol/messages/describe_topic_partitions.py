"""DescribeTopicPartitions (key 75), version 0: topics and partitions page by page (KIP-966).

The answer's two lists of eligible leader replicas may be null by the schema, but Java clients crash on that,
Spark's batch reader among them: they are empty here. A cursor is where the next page starts; null starts and
ends the walk.
"""

from __future__ import annotations

from tidings.protocol.messages.metadata import AUTHORIZED_OPERATIONS_UNKNOWN
from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int32_array,
    nullable_int32_array,
    nullable_struct,
    string,
    uuid,
)


class Cursor(Struct):
    topic_name: str = string()
    partition_index: int = int32()


class TopicRequest(Struct):
    name: str = string()


class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2_000)
    cursor: Cursor | None = nullable_struct(Cursor)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = int32_array()
    isr_nodes: list[int] = int32_array()
    eligible_leader_replicas: list[int] | None = nullable_int32_array(nullable_since=0)
    last_known_elr: list[int] | None = nullable_int32_array(nullable_since=0)
    offline_replicas: list[int] = int32_array()


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string(nullable_since=0)
    topic_id: bytes = uuid()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=AUTHORIZED_OPERATIONS_UNKNOWN)


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nullable_struct(Cursor)
