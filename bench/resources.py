"""Resources: memory and processor time of brokers, as the operating system counts them.

The one rule: of several brokers the dearest one is reported. Must not know: what the brokers are doing.
Tests: tests/bench/test_resources.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Final

import psutil

SAMPLE_PAUSE_S: Final = 0.2


def memory_mb(pids: Iterable[int]) -> float:
    """The largest resident set, in MB of 1,000,000 bytes."""
    return max(psutil.Process(pid).memory_info().rss for pid in pids) / 1e6


def processor_percent(pids: Iterable[int], *, seconds: float) -> float:
    """The busiest process's share of one core over the next `seconds`."""
    observed = [psutil.Process(pid) for pid in pids]
    before_s = [_processor_s(process) for process in observed]
    begin = time.perf_counter()
    time.sleep(seconds)
    elapsed_s = time.perf_counter() - begin
    used_s = [_processor_s(process) - spent_s for process, spent_s in zip(observed, before_s, strict=True)]
    return max(used_s) / elapsed_s * 100.0


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


class PeakMemory:
    """The largest resident set seen while the context is open."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bench-memory")
        self.peak_mb = 0.0

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, memory_mb(self._pids))
            if self._ended.wait(SAMPLE_PAUSE_S):
                return
