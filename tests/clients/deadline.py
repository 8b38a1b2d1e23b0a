"""Deadline: every wait in these tests ends, and says what did not come."""

from __future__ import annotations

import time


class Missed(AssertionError):
    """What was waited for did not come in time."""


class Deadline:
    """Seconds from now, and what is waited for."""

    def __init__(self, seconds_max: float, what: str) -> None:
        self._seconds_max = seconds_max
        self._what = what
        self._end_s = time.monotonic() + seconds_max

    def left_s(self) -> float:
        """The time that is left, more than nothing; raises Missed when there is none."""
        left = self._end_s - time.monotonic()
        if left <= 0:
            raise Missed(f"{self._what}: not within {self._seconds_max:g} s")
        return left
