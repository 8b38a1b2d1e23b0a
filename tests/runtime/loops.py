"""Running a test's coroutine on the loop that brokers use.

The one rule: it ends within a deadline, and what surfaces on the loop unhandled fails the test. It must not
know what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidings.runtime.loop import new_loop

SECONDS_MAX = 20.0

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:  # any: what a coroutine yields to its loop is the loop's matter
    unhandled: list[dict[str, Any]] = []  # any: asyncio's facts

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
        return await asyncio.wait_for(work, SECONDS_MAX)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        result = runner.run(watched())
    assert unhandled == []
    return result


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Waits for something that happens on this loop."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + SECONDS_MAX / 2
    while not is_so():
        assert loop.time() < deadline_s, f"{what}: not in time"
        await asyncio.sleep(0.001)
