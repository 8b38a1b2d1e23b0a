"""Waiters: who waits for an offset of one partition, in the order in which they will be done.

The one rule: a waiter leaves the queue before it is settled, and is settled exactly once: what it sets off
may come back here with new ones.
It must not know what is waited for, nor who answers. Tests: tests/broker/test_waiters.py
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from tidings.protocol.errors import ErrorCode

NEVER_MS = 2**63 - 1


class Waiter(Protocol):
    """Waits until the offset of its queue has reached `offset`, but no longer than `deadline_ms`."""

    @property
    def offset(self) -> int: ...
    @property
    def deadline_ms(self) -> int: ...

    def settle(self, code: ErrorCode) -> None:
        """NONE: the offset was reached."""


class WaiterQueue:
    """Waiters ordered by offset."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter) -> None:
        """Nearly always the largest offset yet; a producer's retry waits for the batch it wrote first."""
        waiters = self._waiters
        in_order = not waiters or waiters[-1].offset <= waiter.offset
        waiters.append(waiter)
        if not in_order:
            self._waiters = deque(sorted(waiters, key=_offset_of))

    def reach(self, offset: int) -> None:
        """The offset is reached: settle all who waited for it or for less."""
        while self._waiters and self._waiters[0].offset <= offset:
            self._waiters.popleft().settle(ErrorCode.NONE)

    def expire(self, now_ms: int) -> int:
        """Settle those whose time is up. When the next one's is; NEVER_MS if nobody is left."""
        expired = [waiter for waiter in self._waiters if waiter.deadline_ms <= now_ms]
        if expired:
            self._waiters = deque(waiter for waiter in self._waiters if waiter.deadline_ms > now_ms)
        for waiter in expired:
            waiter.settle(ErrorCode.REQUEST_TIMED_OUT)
        return min((waiter.deadline_ms for waiter in self._waiters), default=NEVER_MS)

    def fail(self, code: ErrorCode) -> None:
        """Settle those who wait now; not those who come while that happens."""
        failed, self._waiters = self._waiters, deque()
        for waiter in failed:
            waiter.settle(code)


def _offset_of(waiter: Waiter) -> int:
    return waiter.offset
