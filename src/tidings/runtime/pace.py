"""Pace: whether the disk is so quick that waiting for it costs less than handing a write to a thread.

A hand-over to a thread and back costs some 100 microseconds of processor time and as much delay; a virtual or
solid-state disk with a safe cache takes a small flush in less. A spinning or busy one takes milliseconds, and
the event loop must not stand still for those.

Its one rule: one slow write sends the next ones to the thread, and only a row of quick ones brings them back.
It reads no clock and knows no files. Tests: tests/runtime/test_pace.py
"""

from __future__ import annotations

QUICK_S = 0.000_3  # on average: about what the hand-over costs in delay
SLOW_S = 0.003  # once: a pause of the loop that a client would notice among its others
COOL_DOWN_WRITES = 500  # after a slow one, in the thread
_WEIGHT = 0.1  # of the newest write in the average


class DiskPace:
    """Fed with how long each small write took, wherever it was made."""

    def __init__(self) -> None:
        self._average_s = QUICK_S  # unknown: the first writes go to the thread
        self._cool_down = 0

    @property
    def is_quick(self) -> bool:
        return self._cool_down == 0 and self._average_s < QUICK_S

    def took(self, seconds: float) -> None:
        self._average_s += _WEIGHT * (seconds - self._average_s)
        if seconds >= SLOW_S:
            self._cool_down = COOL_DOWN_WRITES
        elif self._cool_down:
            self._cool_down -= 1
