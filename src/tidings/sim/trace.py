"""Trace: what happened in a run, as lines for a reader and as one number to compare runs by.

Its one rule: tracing changes nothing; a run with and without it is the same run.
It must not know where the lines go. Tests: tests/sim/test_determinism.py
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from tidings.sim.clock import MS, Agenda


class Trace:
    """Collects lines. Callers look at `is_on` first, so that no line is composed in vain."""

    __slots__ = ("_agenda", "_states", "_write", "digest", "is_on", "line_count")

    def __init__(self, agenda: Agenda, *, is_on: bool, write: Callable[[str], None] | None = None) -> None:
        self.is_on = is_on
        self.digest = 0
        self.line_count = 0
        self._agenda = agenda
        self._write = write
        self._states: dict[tuple[int, int], str] = {}

    def line(self, who: object, text: str) -> None:
        line = f"{self._agenda.now_us / MS:10.3f} ms  {who!s:>4}  {text}"
        self.digest = crc32(line.encode(), self.digest)
        self.line_count += 1
        if self._write is not None:
            self._write(line)

    def state(self, member: int, group: int, text: str) -> None:
        """A line about a replica, if it is another one than before."""
        if self._states.get((member, group)) != text:
            self._states[member, group] = text
            self.line(member, f"   group {group}: {text}")
