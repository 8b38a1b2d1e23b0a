"""Gathering: one answer whose parts become known at different times.

The one rule: the answer leaves when its last part is there, exactly once: as the result of `seal` if nothing
was waited for, else by the request.
It must not know what the parts are. Tests: tests/broker/test_gathering.py
"""

from __future__ import annotations

from tidings.broker.requests import Request
from tidings.protocol.schema import Message


class Gathering:
    """Counts what is still missing of one answer."""

    __slots__ = ("_missing_count", "_request", "_response")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._response: Message | None = None
        self._missing_count = 0

    def expect(self) -> None:
        """One more part will come later."""
        self._missing_count += 1

    def arrived(self) -> None:
        """A part that was expected is in its place in the answer."""
        self._missing_count -= 1
        assert self._missing_count >= 0, self._missing_count
        if self._missing_count == 0 and self._response is not None:
            self._request.answer(self._response)

    def seal(self, response: Message) -> Message | None:
        """All parts are there or expected: the answer if none is missing, None if it will leave later."""
        if self._missing_count == 0:
            return response
        self._response = response
        return None
