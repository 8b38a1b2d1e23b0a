"""Calls: what a fake port does later: never from within the call that asked for it, as ports.py demands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

ROUNDS_MAX = 10_000  # more than any test sets off; then something calls itself for ever


class Calls:
    """Calls that are still to be made, in order."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    def later(self, call: Callable[[], object]) -> None:
        self._calls.append(call)

    def run(self) -> None:
        """Make them all, and those that they set off."""
        for _ in range(ROUNDS_MAX):
            if not self._calls:
                return
            self._calls.popleft()()
        raise AssertionError(f"still calls to make after {ROUNDS_MAX}")
