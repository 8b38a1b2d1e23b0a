"""A metadata group of one: commands are agreed upon as soon as the test lets them."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.calls import Calls
from tidings.broker.outcome import Outcome


class FakeController:
    """`apply` is called with each command and its index; `is_reachable` False leaves it unknown what becomes
    of them."""

    def __init__(self, calls: Calls, apply: Callable[[bytes, int], Outcome]) -> None:
        self._calls = calls
        self._apply = apply
        self.index = 0
        self.is_reachable = True
        self.proposed: list[bytes] = []

    def propose(self, command: bytes, then: Callable[[Outcome | None], None], now_ms: int) -> None:
        self.proposed.append(command)
        self._calls.later(lambda: then(self.apply(command) if self.is_reachable else None))

    def apply(self, command: bytes) -> Outcome:
        self.index += 1
        return self._apply(command, self.index)
