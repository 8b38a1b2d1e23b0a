"""A loop in a thread of its own: calls with deadlines, and an end that never hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tidings.testing.loop_thread import LoopThread

SECONDS_MAX = 10.0


@pytest.fixture
def errors() -> list[dict[str, Any]]:  # any: what asyncio tells of an exception
    return []


@pytest.fixture
def thread(errors: list[dict[str, Any]]) -> Iterator[LoopThread]:  # any: as above
    running = LoopThread("a-loop", on_error=errors.append)
    running.start()
    yield running
    assert running.stop(timeout_s=SECONDS_MAX)


async def forever() -> None:
    await asyncio.Event().wait()


async def divide(number: int, by: int) -> float:
    return number / by


def test_a_call_gives_its_result_or_its_error(thread: LoopThread) -> None:
    assert thread.call(divide(6, 3), timeout_s=SECONDS_MAX) == 2
    with pytest.raises(ZeroDivisionError):
        thread.call(divide(1, 0), timeout_s=SECONDS_MAX)


def test_a_call_that_takes_too_long_is_cancelled(thread: LoopThread) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await forever()
        finally:
            ended.append("cancelled")

    with pytest.raises(TimeoutError):
        thread.call(work(), timeout_s=0.05)
    thread.call(divide(1, 1), timeout_s=SECONDS_MAX)

    assert ended == ["cancelled"]


def test_what_nobody_waits_for_is_told_when_it_fails(
    thread: LoopThread,
    errors: list[dict[str, Any]],  # any: as above
) -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    thread.call(work(), timeout_s=SECONDS_MAX)

    assert isinstance(errors[0]["exception"], ZeroDivisionError)


def test_the_end_cancels_what_still_runs() -> None:
    thread = LoopThread("a-loop", on_error=lambda _: None)
    thread.start()
    with pytest.raises(TimeoutError):
        thread.call(forever(), timeout_s=0.01)

    assert thread.stop(timeout_s=SECONDS_MAX)
    assert thread.stop(timeout_s=SECONDS_MAX)


def test_a_loop_that_hangs_does_not_hang_who_ends_it() -> None:
    thread = LoopThread("a-loop", on_error=lambda _: None)
    thread.start()
    held = threading.Event()

    async def hang() -> None:
        held.wait(SECONDS_MAX)

    with pytest.raises(TimeoutError):
        thread.call(hang(), timeout_s=0.01)

    assert not thread.stop(timeout_s=0.05)
    held.set()
    assert thread.stop(timeout_s=SECONDS_MAX)
