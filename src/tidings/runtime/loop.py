"""The event loop of a broker's thread: the fast one where the platform has it.

Its one rule: every loop that drives a broker is made here. Tests: tests/runtime/test_loop.py
"""

from __future__ import annotations

import asyncio
import sys


def new_loop() -> asyncio.AbstractEventLoop:
    """For `asyncio.Runner(loop_factory=...)`."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()
