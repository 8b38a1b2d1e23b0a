"""Confirmations: who waits for a majority's word that a group's leader still leads (ReadIndex).

Its one rule: every question gets one answer; a group that loses its leadership answers no. Tests:
tests/node/test_confirmations.py
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.raft.group import Group


class Confirmations:
    """Open questions by group and context."""

    def __init__(self) -> None:
        self._next_context = 1
        self._open: dict[tuple[int, int], Callable[[bool], None]] = {}

    def ask(self, group: Group, then: Callable[[bool], None], now_ms: int) -> None:
        context = self._next_context
        self._next_context += 1
        self._open[group.group, context] = then
        group.read_index(context, now_ms)

    def answer(self, group: int, context: int, *, leads: bool) -> None:
        then = self._open.pop((group, context), None)
        if then is not None:
            then(leads)

    def leadership_lost(self, group: int) -> None:
        for key in [key for key in self._open if key[0] == group]:
            self._open.pop(key)(False)
