"""Alarms go off in the order of their times, never early, and once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidings.node.timers import Timers


@pytest.fixture
def rung() -> list[str]:
    return []


@pytest.fixture
def timers() -> Timers:
    return Timers()


def ring(rung: list[str], name: str) -> Callable[[int], None]:
    return lambda now_ms: rung.append(f"{name} at {now_ms}")


def test_alarms_ring_when_they_are_due_and_once(timers: Timers, rung: list[str]) -> None:
    timers.call_at(20, ring(rung, "b"))
    timers.call_at(10, ring(rung, "a"))

    timers.run(9)
    assert rung == []
    timers.run(15)
    assert rung == ["a at 15"]
    timers.run(30)
    timers.run(30)
    assert rung == ["a at 15", "b at 30"]


def test_of_one_time_the_first_set_rings_first(timers: Timers, rung: list[str]) -> None:
    for name in "abc":
        timers.call_at(5, ring(rung, name))

    timers.run(5)

    assert rung == ["a at 5", "b at 5", "c at 5"]


def test_a_cancelled_alarm_is_silent(timers: Timers, rung: list[str]) -> None:
    alarm = timers.call_at(5, ring(rung, "a"))

    alarm.cancel()
    alarm.cancel()
    timers.run(5)

    assert rung == []
    assert timers.next_ms() is None


def test_an_alarm_that_is_cancelled_by_one_before_it_is_silent(timers: Timers, rung: list[str]) -> None:
    timers.call_at(5, lambda _: second.cancel())
    second = timers.call_at(6, ring(rung, "second"))

    timers.run(10)

    assert rung == []


def test_what_is_set_while_alarms_ring_waits_for_the_next_time(timers: Timers, rung: list[str]) -> None:
    def set_another(now_ms: int) -> None:
        timers.call_at(now_ms, ring(rung, "set meanwhile"))

    timers.call_at(5, set_another)

    timers.run(5)
    assert rung == []
    timers.run(5)
    assert rung == ["set meanwhile at 5"]


def test_the_next_alarm_is_known(timers: Timers, rung: list[str]) -> None:
    first = timers.call_at(5, ring(rung, "a"))
    timers.call_at(7, ring(rung, "b"))

    assert timers.next_ms() == 5
    first.cancel()
    assert timers.next_ms() == 7


def test_thousands_of_cancelled_alarms_take_no_room(timers: Timers, rung: list[str]) -> None:
    timers.call_at(1, ring(rung, "kept"))

    for _ in range(10_000):
        timers.call_at(9, ring(rung, "never")).cancel()

    assert len(timers._alarms) < 2_500
    timers.run(10)
    assert rung == ["kept at 10"]
