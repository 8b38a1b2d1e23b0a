"""InitProducerId (key 22), versions 0-5: an identity by which a producer's retries are told from new records.

1 answers before throttling. 2 is flexible. 3 lets a producer go on after INVALID_PRODUCER_EPOCH (KIP-360). 4
may answer PRODUCER_FENCED (KIP-588), 5 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from tidings.protocol.schema import Message, int16, int32, int64, string


class InitProducerIdRequest(Message):
    transactional_id: str | None = string(nullable_since=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)


class InitProducerIdResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
