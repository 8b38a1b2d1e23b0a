"""The broker's clock follows the wall clock slowly, and never goes back or jumps."""

from __future__ import annotations

from tidings.runtime.clock import SteadyClock


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
