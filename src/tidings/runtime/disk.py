"""Disk threads: each runs what it is given, one call after the other, and tells the event loop what came of
it.

Its one rule: an outcome is told on the loop's thread, in the order of the calls. A thread knows nothing of
what its calls mean; whether an error stops the broker is decided by the one who asked. Tests:
tests/runtime/test_disk.py
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple


class _Call(NamedTuple):
    function: Callable[..., Any]  # any signature: it is called with `arguments` only
    arguments: tuple[Any, ...]  # as above
    then: Callable[[Any, Exception | None], None]  # the result's type is the function's


class DiskThread:
    """One thread with a queue. `submit` never blocks; bounds are kept by those who submit."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self,
        function: Callable[..., Any],  # any: see _Call
        *arguments: Any,  # any: see _Call
        then: Callable[[Any, Exception | None], None],  # any: see _Call
    ) -> None:
        self._calls.put(_Call(function, arguments, then))

    def end(self) -> None:
        """Have the thread end after the call that it is at: what has not begun never does."""
        self._is_ending = True
        self._calls.put(None)

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None and not self._is_ending:
            result, failure = None, None
            try:
                result = call.function(*call.arguments)
            except Exception as error:  # noqa: BLE001 - told to the one who asked, who decides
                failure = error
            try:
                self._loop.call_soon_threadsafe(call.then, result, failure)
            except RuntimeError:
                return  # the loop is closed: nobody waits for the outcome
