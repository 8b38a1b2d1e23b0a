"""Fetch (key 1), versions 4-18: read record batches, waiting for them if asked to.

4 brought the isolation level, 5 the log start offset, 7 fetch sessions (KIP-227), 9 the leader epoch
(KIP-320), 10 allows Zstandard, 11 the nearest replica (KIP-392). 12 is flexible and tells of diverging logs.
13 speaks of topics by id (KIP-516). 15 moved the replica's id into a tagged struct (KIP-903), 16 names new
leaders (KIP-951), 17 adds the replica's directory (KIP-853), 18 its high watermark (KIP-1166).
"""

from __future__ import annotations

from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int32_array,
    int64,
    nullable_array,
    record_pieces,
    string,
    tagged_struct,
    uuid,
)

HIGH_WATERMARK_UNSUPPORTED = 2**63 - 1


class ReplicaState(Struct):
    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


class FetchPartition(Struct):
    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(tag=0, since=17)
    high_watermark: int = int64(tag=1, since=18, default=HIGH_WATERMARK_UNSUPPORTED)


class FetchTopic(Struct):
    topic: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    topic: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[int] = int32_array()


class FetchRequest(Message):
    cluster_id: str | None = string(tag=0, since=12, nullable_since=12, default=None)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState | None = tagged_struct(ReplicaState, tag=1, since=15)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1)
    isolation_level: int = int8()
    session_id: int = int32(since=7)
    session_epoch: int = int32(since=7, default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11)


class EpochEndOffset(Struct):
    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class SnapshotId(Struct):
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


class AbortedTransaction(Struct):
    producer_id: int = int64()
    first_offset: int = int64()


class PartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    diverging_epoch: EpochEndOffset | None = tagged_struct(EpochEndOffset, tag=0, since=12)
    current_leader: LeaderIdAndEpoch | None = tagged_struct(LeaderIdAndEpoch, tag=1, since=12)
    snapshot_id: SnapshotId | None = tagged_struct(SnapshotId, tag=2, since=12)
    aborted_transactions: list[AbortedTransaction] | None = nullable_array(
        AbortedTransaction, nullable_since=4
    )
    preferred_read_replica: int = int32(since=11, default=-1)
    records: list[bytes | memoryview] = record_pieces()


class FetchableTopicResponse(Struct):
    topic: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=16, default=None)


class FetchResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16(since=7)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, since=16)
