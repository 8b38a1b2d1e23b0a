"""CreateTopics (key 19), versions 2-7.

4 allows -1 for the broker's default number of partitions and replicas (KIP-464). 5 is flexible and tells the
created topic's settings (KIP-525). 6 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599). 7 tells the topic's id.
The settings may be null by the schema, but Java clients crash on that: they are empty here.
"""

from __future__ import annotations

from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int32_array,
    nullable_array,
    string,
    uuid,
)


class CreatableReplicaAssignment(Struct):
    partition_index: int = int32()
    broker_ids: list[int] = int32_array()


class CreatableTopicConfig(Struct):
    name: str = string()
    value: str | None = string(nullable_since=0)


class CreatableTopic(Struct):
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean()


class CreatableTopicConfigs(Struct):
    name: str = string()
    value: str | None = string(nullable_since=5)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()


class CreatableTopicResult(Struct):
    name: str = string()
    topic_id: bytes = uuid(since=7)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    topic_config_error_code: int = int16(tag=0, since=5)
    num_partitions: int = int32(since=5, default=-1)
    replication_factor: int = int16(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = nullable_array(
        CreatableTopicConfigs, since=5, nullable_since=5
    )


class CreateTopicsResponse(Message):
    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
