"""Tests of murmur2.py, the reference for where keys go."""

from __future__ import annotations

import pytest

from tests.clients.murmur2 import murmur2, partition

# The signed results that Apache Kafka's own tests of its hash name.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", KNOWN)
def test_the_hash_is_kafkas(key: bytes) -> None:
    assert murmur2(key) == KNOWN[key] % 2**32


def test_a_partition_is_the_hash_without_its_sign() -> None:
    assert partition(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
