"""A disk thread does what it is given, in order, and tells the loop what came of it."""

from __future__ import annotations

import asyncio
import threading

from tests.runtime.loops import SECONDS_MAX, run, until
from tidings.runtime.disk import DiskThread


def test_outcomes_are_told_on_the_loop_s_thread_in_the_order_of_the_calls() -> None:
    async def work() -> None:
        thread = DiskThread(asyncio.get_running_loop(), "disk")
        told: list[tuple[object, Exception | None, bool]] = []

        def tell(result: object, error: Exception | None) -> None:
            told.append((result, error, threading.current_thread() is threading.main_thread()))

        for number in range(10):
            thread.submit(lambda each: each * each, number, then=tell)
        await until(lambda: len(told) == 10, "ten outcomes")
        thread.end()
        thread.join()

        assert told == [(number * number, None, True) for number in range(10)]

    run(work())


def test_an_error_is_told_to_who_asked_and_the_next_call_is_made() -> None:
    async def work() -> None:
        thread = DiskThread(asyncio.get_running_loop(), "disk")
        told: list[object] = []

        thread.submit(lambda: 1 / 0, then=lambda result, error: told.append(type(error)))
        thread.submit(lambda: "fine", then=lambda result, error: told.append(result))
        await until(lambda: len(told) == 2, "two outcomes")
        thread.end()
        thread.join()

        assert told == [ZeroDivisionError, "fine"]

    run(work())


def test_it_ends_after_the_call_that_it_is_at() -> None:
    async def work() -> None:
        thread = DiskThread(asyncio.get_running_loop(), "disk")
        has_begun, may_end = threading.Event(), threading.Event()
        done: list[str] = []

        def first() -> None:
            has_begun.set()
            may_end.wait(SECONDS_MAX)
            done.append("first")

        thread.submit(first, then=lambda result, error: None)
        thread.submit(lambda: done.append("second"), then=lambda result, error: None)
        has_begun.wait(SECONDS_MAX)
        thread.end()
        may_end.set()
        thread.join()

        assert done == ["first"]

    run(work())


def test_an_outcome_that_comes_after_the_loop_is_lost_without_harm() -> None:
    async def make() -> DiskThread:
        return DiskThread(asyncio.get_running_loop(), "disk")

    thread = run(make())

    thread.submit(lambda: "late", then=lambda result, error: None)
    thread.join()
