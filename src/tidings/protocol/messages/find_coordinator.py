"""FindCoordinator (key 10), versions 0-6: the broker that looks after a group or a transactional id.

1 adds the key's type (0 group, 1 transaction, 2 share group from version 6, KIP-932) and an error message.
3 is flexible. 4 asks for several keys at once (KIP-699). 5 may answer TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from tidings.protocol.schema import Message, Struct, array, int8, int16, int32, string, string_array


class FindCoordinatorRequest(Message):
    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = string_array(since=4)


class Coordinator(Struct):
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=4)


class FindCoordinatorResponse(Message):
    throttle_time_ms: int = int32(since=1)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable_since=1)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)
