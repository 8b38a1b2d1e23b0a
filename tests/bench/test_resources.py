"""Memory and processor time, read of this very process."""

import os

from bench import resources


def test_memory_is_that_of_the_largest_process() -> None:
    own_mb = resources.memory_mb([os.getpid()])

    assert resources.memory_mb([1, os.getpid()]) >= own_mb * 0.9
    assert own_mb > 1.0


def test_the_peak_is_seen_even_of_a_short_moment() -> None:
    with resources.PeakMemory([os.getpid()]) as memory:
        pass

    assert memory.peak_mb > 1.0


def test_processor_use_is_a_share_of_one_core() -> None:
    percent = resources.processor_percent([os.getpid()], seconds=0.005)

    assert percent >= 0.0
