"""A TCP transport that keeps what is written to it, so that a test can be the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class FakeTransport(asyncio.Transport):
    """`sent` is what the other side has taken; with `is_stuck` it takes nothing, and bytes wait."""

    def __init__(self, protocol: asyncio.Protocol, host: str = "127.0.0.1") -> None:
        super().__init__(extra={"peername": (host, 50_000)})
        self.sent = b""
        self.is_reading_paused = False
        self.is_stuck = False
        self.was_aborted = False
        self._protocol = protocol
        self._waiting = b""
        self._waiting_bytes_high = 64 * 1024
        self._is_writing_paused = False
        self._is_closing = False
        self._is_lost = False
        protocol.connection_made(self)

    # -- what the other side does

    def receive(self, data: bytes) -> None:
        """Bytes arrive."""
        assert not self.is_reading_paused, "nobody reads"
        self._protocol.data_received(data)

    def take(self, count: int | None = None) -> None:
        """The other side takes waiting bytes: all, or so many."""
        count = len(self._waiting) if count is None else count
        self.sent += self._waiting[:count]
        self._waiting = self._waiting[count:]
        if self._is_writing_paused and len(self._waiting) <= self._waiting_bytes_high // 4:
            self._is_writing_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not self._waiting:
            self._lose()

    # -- what a protocol calls

    def writelines(self, list_of_data: Iterable[Any]) -> None:  # any: bytes of all kinds, as asyncio has it
        self.write(b"".join(list_of_data))

    def write(self, data: Any) -> None:  # any: as above
        assert not self._is_closing, "written after the close"
        if not self.is_stuck:
            self.sent += bytes(data)
            return
        self._waiting += bytes(data)
        if len(self._waiting) > self._waiting_bytes_high and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self._waiting_bytes_high = high

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        if not self._waiting:
            self._lose()

    def abort(self) -> None:
        self.was_aborted = True
        self._is_closing = True
        self._waiting = b""
        self._lose()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(None)
