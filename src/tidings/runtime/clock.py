"""The broker's clock: milliseconds since 1970 that never go back, and jump only over the time in which the
machine slept.

Its one rule: it advances with the monotonic clock, and drifts towards the wall clock by at most one part in a
hundred, so that a corrected or tampered wall clock starts no election and expires no session. A machine that
slept has not had its wall clock set: to the broker it is a process that was stopped for as long. Tests:
tests/runtime/test_clock.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

_SLEW_PARTS = 100  # of the time that passed, one part is the most that the clock is corrected by
# More time than this counts as so much: after a long sleep, too, the clock is corrected little by little.
_SLEW_OVER_S_MAX = 10.0


class SteadyClock:
    """One per broker, read by its loop only."""

    def __init__(
        self,
        monotonic_s: Callable[[], float] | None = None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        monotonic_s = monotonic_s or sleepless_clock()
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s
        self._offset_ms = (wall_s() - monotonic_s()) * 1000
        self._corrected_at_s = monotonic_s()
        self._told_ms = 0

    def now_ms(self) -> int:
        now_ms = int(self._monotonic_s() * 1000 + self._offset_ms)
        if now_ms < self._told_ms:
            return self._told_ms  # corrected backwards since: it stands still for a moment
        self._told_ms = now_ms
        return now_ms

    def correct(self) -> None:
        """Drift a little towards the wall clock; called now and then."""
        monotonic_s = self._monotonic_s()
        passed_s = min(monotonic_s - self._corrected_at_s, _SLEW_OVER_S_MAX)
        slew_ms_max = passed_s * 1000 / _SLEW_PARTS
        error_ms = (self._wall_s() - monotonic_s) * 1000 - self._offset_ms
        self._offset_ms += max(-slew_ms_max, min(slew_ms_max, error_ms))
        self._corrected_at_s = monotonic_s


def sleepless_clock() -> Callable[[], float]:
    """The monotonic clock that goes on while the machine sleeps, where the system has one in reach. With one
    that stands still, eight hours of sleep would take a month to be drifted away."""
    name = "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME"
    clock = getattr(time, name, None)
    if clock is None:
        return time.monotonic
    read = partial(time.clock_gettime, clock)
    try:
        read()
    except OSError:
        return time.monotonic  # the name is known here, the clock is not
    return read
