"""Asking: requests to one broker by hand, for what a client would never show: what that very broker answers.

The one rule: as tests/clients/wire.py, bytes only, nothing of ours and no client. Must not know: faults.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from tests.clients import wire
from tests.clients.wire import Connection, Fields

LIST_OFFSETS: Final = 2
LATEST: Final = -1
NONE: Final = 0
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
KAFKA_STORAGE_ERROR: Final = 56
OFFSET_NOT_AVAILABLE: Final = 78
RETRIABLE: Final = frozenset(
    {
        NOT_LEADER_OR_FOLLOWER,
        REQUEST_TIMED_OUT,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KAFKA_STORAGE_ERROR,
        OFFSET_NOT_AVAILABLE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a broker says is the end of a partition."""

    error: int
    offset: int


def list_end_body(topic: str, *, partition: int = 0) -> bytes:
    """ListOffsets 1: replica, topics of partitions of (number, timestamp)."""
    place = struct.pack(">iiq", 1, partition, LATEST)
    return struct.pack(">ii", -1, 1) + wire.text(topic) + place


def listed(answer: Fields) -> Listed:
    """ListOffsets 1's answer: topics of partitions of (number, error, timestamp, offset)."""
    assert len(answer.count()) == 1
    answer.text()
    assert len(answer.count()) == 1
    answer.int32()
    error, _, offset = answer.int16(), answer.int64(), answer.int64()
    return Listed(error=error, offset=offset)


def list_end(address: str, topic: str, *, partition: int = 0) -> Listed:
    with Connection(address) as connection:
        return listed(connection.ask(LIST_OFFSETS, 1, list_end_body(topic, partition=partition)))


def produce_once(address: str, topic: str, value: bytes, *, partition: int = 0) -> wire.Produced:
    """One message with acks=all; the broker may take up to 30 s to answer."""
    with Connection(address) as connection:
        return wire.produce(connection, topic, wire.batch([value]), partition=partition)
