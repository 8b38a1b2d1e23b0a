"""The broker's clock: milliseconds since 1970 that never go back and never jump.

Its one rule: it advances with the monotonic clock, and drifts towards the wall clock by at most one part in a
hundred, so that a corrected or tampered wall clock starts no election and expires no session. Tests:
tests/runtime/test_clock.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

_SLEW_PARTS = 100  # of the time that passed, one part is the most that the clock is corrected by


class SteadyClock:
    """One per broker, read by its loop only."""

    def __init__(
        self,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s
        self._offset_ms = (wall_s() - monotonic_s()) * 1000
        self._corrected_at_s = monotonic_s()

    def now_ms(self) -> int:
        return int(self._monotonic_s() * 1000 + self._offset_ms)

    def correct(self) -> None:
        """Drift a little towards the wall clock; called now and then."""
        monotonic_s = self._monotonic_s()
        slew_ms_max = (monotonic_s - self._corrected_at_s) * 1000 / _SLEW_PARTS
        error_ms = (self._wall_s() - monotonic_s) * 1000 - self._offset_ms
        self._offset_ms += max(-slew_ms_max, min(slew_ms_max, error_ms))
        self._corrected_at_s = monotonic_s
