"""Murmur2: where Kafka's Java client puts a key, computed from the hash's published definition.

The one rule: it depends on no client. Must not know: who compares. Checked against values that Kafka's own
tests name, in test_partitioners.py, and against the Java client itself.
"""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
SHIFT: Final = 24
WORD: Final = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash, unsigned (Austin Appleby's MurmurHash2, with Kafka's seed)."""
    state = SEED ^ len(key)
    whole = len(key) - len(key) % 4
    for begin in range(0, whole, 4):
        word = int.from_bytes(key[begin : begin + 4], "little") * MULTIPLIER & WORD
        word = (word ^ word >> SHIFT) * MULTIPLIER & WORD
        state = state * MULTIPLIER & WORD ^ word
    if whole < len(key):
        state = (state ^ int.from_bytes(key[whole:], "little")) * MULTIPLIER & WORD
    state = (state ^ state >> 13) * MULTIPLIER & WORD
    return state ^ state >> 15


def partition(key: bytes, partition_count: int) -> int:
    """Java clears the sign bit and takes the remainder."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
