"""Produce (key 0), versions 3-13: append record batches to partitions.

3 brought record batches of format 2 and the transactional id, 7 allows Zstandard. The response gained the log
start offset in 5, errors of single records and a message in 8 (KIP-467). 9 is flexible. From 10 the response
names the new leader (KIP-951). 12 adds the partitions to a transaction implicitly (KIP-890). 13 speaks of
topics by id (KIP-516). Versions 0-2 are advertised but not served: old librdkafka switches compression off
unless it sees them.
"""

from __future__ import annotations

from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    record_slice,
    string,
    tagged_struct,
    uuid,
)


class PartitionProduceData(Struct):
    index: int = int32()
    records: memoryview | None = record_slice()


class TopicProduceData(Struct):
    name: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message):
    transactional_id: str | None = string(nullable_since=3, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable_since=8, default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, since=8)
    error_message: str | None = string(since=8, nullable_since=8, default=None)
    current_leader: LeaderIdAndEpoch | None = tagged_struct(LeaderIdAndEpoch, tag=0, since=10)


class TopicProduceResponse(Struct):
    name: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=10, default=None)


class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, since=10)
