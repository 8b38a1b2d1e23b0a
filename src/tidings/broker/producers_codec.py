"""Producers codec: the committed part of a producer table as bytes, for checkpoints and start states.

    u8 format = 1 | u32 producer count | per producer, in the order in which they wrote last:
        i64 producer id | i64 time of the last append, ms | i16 epoch | u8 batch count |
        per batch: i32 base sequence | i32 last sequence | i64 last offset | i64 timestamp    (little endian)

The one rule: cheap where little changed: a producer's row is made once per change, and a table is joined from
its rows.
It must not know what the rows are used for. Tests: tests/broker/test_producers_codec.py
"""

from __future__ import annotations

import struct
from collections import deque

from tidings.broker.producers import BATCHES_REMEMBERED, Producer, ProducerTable, WrittenBatch

FORMAT = 1
_HEAD = struct.Struct("<BI")
_PRODUCER = struct.Struct("<qqhB")
_BATCH = struct.Struct("<iiqq")


class ProducersError(Exception):
    """Bytes that are no producer table of this version."""


def encode_producers(table: ProducerTable) -> bytes:
    rows = [_HEAD.pack(FORMAT, len(table))]
    for producer_id, producer in table.producers():
        if producer.row is None:
            producer.row = _encode_row(producer_id, producer)
        rows.append(producer.row)
    return b"".join(rows)


def decode_producers(payload: bytes, *, expiration_ms: int) -> ProducerTable:
    """The table as it was; no bytes at all are an empty one, which is what a new log starts from."""
    table = ProducerTable(expiration_ms=expiration_ms)
    if not payload:
        return table
    if payload[0] != FORMAT:
        raise ProducersError(f"format {payload[0]} of a producer table, known is {FORMAT}")
    try:
        position = _decode_rows(payload, table)
    except struct.error as error:
        raise ProducersError(f"a producer table that ends too early: {error}") from error
    if position != len(payload):
        raise ProducersError(f"{len(payload) - position} bytes behind a producer table")
    return table


def _encode_row(producer_id: int, producer: Producer) -> bytes:
    batches = producer.batches
    start = _PRODUCER.pack(producer_id, producer.appended_ms, batches[-1].epoch, len(batches))
    return start + b"".join(
        [
            _BATCH.pack(batch.base_sequence, batch.last_sequence, batch.last_offset, batch.timestamp)
            for batch in batches
        ]
    )


def _decode_rows(payload: bytes, table: ProducerTable) -> int:
    _format, producer_count = _HEAD.unpack_from(payload)
    position = _HEAD.size
    for _ in range(producer_count):
        producer_id, appended_ms, epoch, batch_count = _PRODUCER.unpack_from(payload, position)
        position += _PRODUCER.size
        if not 0 < batch_count <= BATCHES_REMEMBERED:
            raise ProducersError(f"{batch_count} batches of producer {producer_id}")
        batches: deque[WrittenBatch] = deque(maxlen=BATCHES_REMEMBERED)
        for _ in range(batch_count):
            base_sequence, last_sequence, last_offset, timestamp = _BATCH.unpack_from(payload, position)
            position += _BATCH.size
            batches.append(WrittenBatch(epoch, base_sequence, last_sequence, last_offset, timestamp))
        table.put(producer_id, Producer(batches, appended_ms))
    return position
