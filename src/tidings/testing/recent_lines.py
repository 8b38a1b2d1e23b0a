"""The newest lines of a stream, for whoever asks what happened.

Its one rule: however much is written, only so many lines are kept. Tests: tests/testing/test_recent_lines.py
"""

from __future__ import annotations

import io
from collections import deque


class RecentLines(io.StringIO):
    """A stream to write to. Each write is of whole lines."""

    def __init__(self, count_max: int) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=count_max)

    def write(self, text: str) -> int:
        self._lines.extend(text.splitlines())
        return len(text)

    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)
