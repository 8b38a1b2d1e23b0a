"""The broker's clock follows the wall clock slowly, never goes back, and jumps over a sleep alone."""

from __future__ import annotations

import sys
import time

import pytest

from tidings.runtime.clock import SteadyClock, sleepless_clock

HOUR_S = 3_600


class Hands:
    """The two clocks of a machine, in seconds; time passes on both unless one is set."""

    def __init__(self) -> None:
        self.monotonic_s = 100.0
        self.wall_s = 1_700_000_000.0

    def pass_by(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.monotonic_s, lambda: self.wall_s)


def test_it_begins_with_the_wall_clock_and_runs_with_the_monotonic_one() -> None:
    hands = Hands()
    clock = hands.clock()

    assert clock.now_ms() == 1_700_000_000_000
    hands.pass_by(1.5)
    assert clock.now_ms() == 1_700_000_001_500


def test_a_wall_clock_that_is_set_makes_no_jump() -> None:
    hands = Hands()
    clock = hands.clock()

    hands.wall_s += 3_600
    hands.pass_by(1)
    before_ms = clock.now_ms()
    clock.correct()

    assert before_ms == 1_700_000_001_000
    assert clock.now_ms() == before_ms + 10  # a hundredth of the second that passed


def test_it_never_goes_back_however_far_the_wall_clock_does() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s -= 3_600
    times_ms = []

    for _ in range(100):
        hands.pass_by(0.1)
        clock.correct()
        times_ms.append(clock.now_ms())

    assert times_ms == sorted(times_ms)
    assert times_ms[-1] - times_ms[0] >= 9_700


def test_it_does_not_go_back_in_the_moment_of_a_correction() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s -= 3_600
    hands.pass_by(1)
    before_ms = clock.now_ms()

    clock.correct()

    assert clock.now_ms() == before_ms
    hands.pass_by(1)
    assert clock.now_ms() == before_ms + 990


def test_a_machine_that_slept_wakes_up_on_time() -> None:
    hands = Hands()
    clock = hands.clock()

    hands.pass_by(8 * HOUR_S)

    assert clock.now_ms() == int(hands.wall_s * 1000)


def test_a_long_sleep_is_no_leave_for_a_large_correction() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s += HOUR_S
    hands.pass_by(8 * HOUR_S)
    before_ms = clock.now_ms()

    clock.correct()

    assert clock.now_ms() == before_ms + 100


@pytest.mark.skipif(sys.platform != "linux", reason="the name of the clock that sleeps is this system's")
def test_the_clock_that_goes_on_in_sleep_is_taken_where_there_is_one() -> None:
    before_s = time.clock_gettime(time.CLOCK_BOOTTIME)

    read_s = sleepless_clock()()

    assert before_s <= read_s <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_it_ends_at_the_wall_clock_and_stays_there() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s += 0.5

    for _ in range(100):
        hands.pass_by(1)
        clock.correct()

    assert clock.now_ms() == int(hands.wall_s * 1000)


def test_the_machine_s_own_clocks_are_the_default() -> None:
    clock = SteadyClock()

    assert clock.now_ms() <= clock.now_ms()
