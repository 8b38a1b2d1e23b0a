"""A thread with an event loop, for a caller that has none.

Its one rule: every call has a deadline, and so has the end; a loop that hangs never hangs its caller. It must
not know what runs on it. Tests: tests/testing/test_loop_thread.py
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidings.runtime.loop import new_loop

T = TypeVar("T")


class LoopThread:
    """Begins with `start`, and can be used once."""

    def __init__(
        self,
        name: str,
        *,
        on_error: Callable[[dict[str, Any]], None],  # any: what asyncio tells of an exception
    ) -> None:
        self._on_error = on_error
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()
        assert self._loop is not None, "the thread could not make a loop; its traceback says why"

    def call(
        self,
        work: Coroutine[Any, Any, T],  # any: what a coroutine yields to its loop is the loop's matter
        *,
        timeout_s: float,
    ) -> T:
        """Run it on the loop and wait for its result. Raises TimeoutError, and then it is cancelled."""
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:  # nobody waits for it any more; raised again
            future.cancel()
            raise

    def stop(self, *, timeout_s: float) -> bool:
        """End the loop and all its tasks; whether that was done in time. Never called by the loop itself."""
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._until_stopped())
        finally:
            self._is_ready.set()

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self._on_error(context))
        self._end = asyncio.Event()
        self._is_ready.set()
        await self._end.wait()
