"""Metadata (key 3), versions 0-13: brokers, topics, and who leads which partition.

Request: 0 asks for all topics with an empty array; from 1 null asks for all, empty for none. 4 may forbid
creation. 8 asks for authorized operations, the cluster's until 10 (DescribeCluster took it over). 10 adds
topic ids, which are to be used from 12. Response: 1 controller, internal flag and rack, 2 cluster id, 3
throttle time, 5 offline replicas, 7 leader epoch, 8 authorized operations, 10 topic id, 12 a null name for an
unknown id, 13 an error of the whole. 9 is flexible.
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
    uuid,
)

AUTHORIZED_OPERATIONS_UNKNOWN = -(2**31)


class MetadataRequestTopic(Struct):
    topic_id: bytes = uuid(since=10)
    name: str | None = string(nullable_since=10)


class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = nullable_array(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


class MetadataResponseBroker(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable_since=1, default=None)


class MetadataResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1)
    replica_nodes: list[int] = int32_array()
    isr_nodes: list[int] = int32_array()
    offline_replicas: list[int] = int32_array(since=5)


class MetadataResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string(nullable_since=12)
    topic_id: bytes = uuid(since=10)
    is_internal: bool = boolean(since=1)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=AUTHORIZED_OPERATIONS_UNKNOWN)


class MetadataResponse(Message):
    throttle_time_ms: int = int32(since=3)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable_since=2, default=None)
    controller_id: int = int32(since=1, default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=AUTHORIZED_OPERATIONS_UNKNOWN)
    error_code: int = int16(since=13)
