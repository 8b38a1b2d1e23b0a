"""A clock that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

START_MS = 1_700_000_000_000


@dataclass(eq=False, slots=True)
class FakeTimer:
    """A call that is still to come."""

    at_ms: int
    callback: Callable[[int], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeTimers:
    """Alarms that go off when `advance` passes them."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self._timers: list[FakeTimer] = []

    @property
    def pending_count(self) -> int:
        return sum(not timer.is_cancelled for timer in self._timers)

    def call_at(self, at_ms: int, callback: Callable[[int], None]) -> FakeTimer:
        timer = FakeTimer(at_ms, callback)
        self._timers.append(timer)
        return timer

    def advance(self, by_ms: int) -> None:
        """Move the clock, stopping at each alarm on the way."""
        end_ms = self.now_ms + by_ms
        while due := [timer for timer in self._timers if not timer.is_cancelled and timer.at_ms <= end_ms]:
            timer = min(due, key=lambda timer: timer.at_ms)
            self._timers.remove(timer)
            self.now_ms = max(self.now_ms, timer.at_ms)
            timer.callback(self.now_ms)
        self.now_ms = end_ms
