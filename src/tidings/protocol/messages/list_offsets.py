"""ListOffsets (key 2), versions 1-11: the offset of a time, or of a partition's start or end.

2 brought the isolation level and the throttle time, 4 the leader epoch (KIP-320), 5 the error
OFFSET_NOT_AVAILABLE. 6 is flexible. The later ones give meanings to negative timestamps: 7 the newest
record's time (KIP-734), 8 the local log start (KIP-405), 9 the end of tiered storage (KIP-1005), 11 the start
of what is not uploaded yet (KIP-1023). 10 says how long to wait (KIP-1075).
"""

from __future__ import annotations

from tidings.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1)
    timestamp: int = int64()


class ListOffsetsTopic(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message):
    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(since=4, default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message):
    throttle_time_ms: int = int32(since=2)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
