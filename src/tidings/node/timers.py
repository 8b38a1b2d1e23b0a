"""Alarms of one broker: callbacks at times of the clock that is passed in.

Its one rule: alarms go off in the order of their times, then in the order they were set, so a run can be
repeated. It reads no clock. Tests: tests/node/test_timers.py
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

# Cancelled alarms are left in the heap until so many have gathered: a removal each would cost more than it
# frees.
_CANCELLED_MAX = 1024


class Alarm:
    """A call that is still to come, unless it is cancelled."""

    __slots__ = ("_timers", "at_ms", "callback", "order")

    def __init__(self, timers: Timers, at_ms: int, order: int, callback: Callable[[int], None]) -> None:
        self._timers = timers
        self.at_ms = at_ms
        self.order = order
        self.callback: Callable[[int], None] | None = callback

    def __lt__(self, other: Alarm) -> bool:
        return (self.at_ms, self.order) < (other.at_ms, other.order)

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """A heap of alarms."""

    def __init__(self) -> None:
        self._alarms: list[Alarm] = []
        self._set_count = 0
        self._cancelled_count = 0

    def call_at(self, at_ms: int, callback: Callable[[int], None]) -> Alarm:
        self._set_count += 1
        alarm = Alarm(self, at_ms, self._set_count, callback)
        heappush(self._alarms, alarm)
        return alarm

    def next_ms(self) -> int | None:
        """When the next alarm is due; None where none is set."""
        alarms = self._alarms
        while alarms and alarms[0].callback is None:
            heappop(alarms)
            self._cancelled_count -= 1
        return alarms[0].at_ms if alarms else None

    def run(self, now_ms: int) -> None:
        """Let every alarm that is due go off. Those that are set meanwhile wait for the next call."""
        due: list[Alarm] = []
        while self._alarms and self._alarms[0].at_ms <= now_ms:
            due.append(heappop(self._alarms))
        for alarm in due:
            if alarm.callback is None:
                self._cancelled_count -= 1
                continue
            callback, alarm.callback = alarm.callback, None
            callback(now_ms)

    def note_cancelled(self) -> None:
        self._cancelled_count += 1
        if self._cancelled_count > _CANCELLED_MAX and 2 * self._cancelled_count > len(self._alarms):
            self._alarms = [alarm for alarm in self._alarms if alarm.callback is not None]
            heapify(self._alarms)
            self._cancelled_count = 0
