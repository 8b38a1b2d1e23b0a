"""Virtual time: the agenda of what will happen, and the clocks of machines that read it wrongly.

Its one rule: events happen in the order (time, order of planning), so the same plans give the same run.
It must not know what an event does. Tests: tests/sim/test_clock.py
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

# An event is a method and its one argument; what the argument is, the method knows.
Action = Callable[[Any], None]  # any argument: only the action itself looks at it
MS = 1_000  # virtual time is counted in whole microseconds, so that no rounding differs between machines


class Agenda:
    """What will happen, by time."""

    __slots__ = ("_heap", "_planned", "event_count", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.event_count = 0
        self._heap: list[tuple[int, int, Action, object]] = []
        self._planned = 0

    def after(self, delay_us: int, action: Action, argument: object = None) -> None:
        self.at(self.now_us + delay_us, action, argument)

    def at(self, at_us: int, action: Action, argument: object = None) -> None:
        assert at_us >= self.now_us, (at_us, self.now_us)
        self._planned += 1
        heappush(self._heap, (at_us, self._planned, action, argument))

    def run_until(self, end_us: int) -> None:
        """Lets everything happen that is planned up to the time."""
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            self.now_us, _, action, argument = heappop(heap)
            self.event_count += 1
            action(argument)
        self.now_us = end_us


class DriftingClock:
    """A machine's monotonic clock: it starts anywhere, runs up to some per cent fast or slow, and may jump
    ahead."""

    __slots__ = ("_agenda", "_base_us", "_rate_permille", "_since_us")

    def __init__(self, agenda: Agenda, *, start_ms: int, rate_permille: int) -> None:
        self._agenda = agenda
        self._base_us = start_ms * MS
        self._since_us = agenda.now_us
        self._rate_permille = rate_permille

    @property
    def now_ms(self) -> int:
        elapsed_us = (self._agenda.now_us - self._since_us) * self._rate_permille // 1_000
        return (self._base_us + elapsed_us) // MS

    def jump(self, ahead_ms: int) -> None:
        self._base_us += ahead_ms * MS
