"""DescribeCluster (key 60), versions 0-2: the cluster's id, controller and brokers (KIP-700).

1 asks for brokers or for controllers (KIP-919), 2 for fenced brokers too (KIP-1073).
All versions are flexible.
"""

from __future__ import annotations

from tidings.protocol.messages.metadata import AUTHORIZED_OPERATIONS_UNKNOWN
from tidings.protocol.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


class DescribeClusterBroker(Struct):
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)
    is_fenced: bool = boolean(since=2)


class DescribeClusterResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=AUTHORIZED_OPERATIONS_UNKNOWN)
