"""Parked: one partition of a request that waits for more to read, and what has come there since.

The one rule: what was counted is not looked at again: a request that waits for many bytes costs what comes,
however often it is woken.
It must not know requests, nor how much is enough (handlers/fetch.py). Tests: tests/broker/test_parked.py
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.broker.partition import Partition

_ALL_BYTES = 2**31 - 1


class Parked:
    """Fills the port Reader. `moved` is told the bytes that have come and the time; None for the bytes: all
    must be looked at anew."""

    __slots__ = ("_counted_to", "_epoch", "_fetch_offset", "_moved", "_partition")

    def __init__(
        self, partition: Partition, fetch_offset: int, moved: Callable[[int | None, int], None]
    ) -> None:
        """What is readable now counts as known."""
        self._partition = partition
        self._fetch_offset = fetch_offset
        self._counted_to = max(fetch_offset, partition.log.high_watermark)
        self._epoch = partition.log.leader_epoch
        self._moved = moved
        partition.park(self)

    def wake(self, now_ms: int) -> None:
        self._moved(self._count(), now_ms)

    def leave(self) -> None:
        self._partition.unpark(self)

    def _count(self) -> int | None:
        log = self._partition.log
        if not self._partition.is_open or not log.is_leader or log.leader_epoch != self._epoch:
            return None
        if self._fetch_offset < log.log_start_offset:
            return None
        if self._fetch_offset > log.end_offset and log.term_start_committed:
            return None  # now it can be found out whether the offset is out of range
        high_watermark = log.high_watermark
        if high_watermark <= self._counted_to:
            return 0
        batches = log.read(self._counted_to, _ALL_BYTES, high_watermark)
        if batches is None:
            return None
        self._counted_to = high_watermark
        return sum(map(len, batches))
