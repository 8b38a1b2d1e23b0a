"""Which writes wait in the loop and which go to the thread."""

from __future__ import annotations

from tidings.runtime.pace import COOL_DOWN_WRITES, QUICK_S, SLOW_S, DiskPace


def test_an_unknown_disk_is_not_taken_for_quick() -> None:
    pace = DiskPace()

    assert not pace.is_quick


def test_a_row_of_quick_writes_makes_a_quick_disk() -> None:
    pace = DiskPace()

    for _ in range(10):
        pace.took(QUICK_S / 3)

    assert pace.is_quick


def test_a_disk_that_is_a_little_slow_all_the_time_is_not_quick() -> None:
    pace = DiskPace()

    for _ in range(100):
        pace.took(QUICK_S * 1.5)

    assert not pace.is_quick


def test_one_slow_write_sends_the_next_ones_to_the_thread_for_a_while() -> None:
    pace = DiskPace()
    for _ in range(10):
        pace.took(QUICK_S / 3)

    pace.took(SLOW_S)

    assert not pace.is_quick
    for _ in range(COOL_DOWN_WRITES - 1):
        pace.took(QUICK_S / 3)
        assert not pace.is_quick
    pace.took(QUICK_S / 3)
    assert pace.is_quick
