"""Backlog: the entries that the segment thread was handed and has not written yet, in bytes.

Its one rule: what is behind by more than the bound is behind until half of it is written, so that a disk that
is too slow refuses a while at a time and not every other batch. It must not know who is refused, or how.
Tests: tests/runtime/test_backlog.py
"""

from __future__ import annotations

from collections import Counter

from tidings.node.jobs import RemoveGroup, StorageJob, WriteEntries

# As much as the write-ahead log is to hold: some seconds of a disk at work, which a round of checkpoints may
# take.
BACKLOG_BYTES_MAX = 256 * 1024 * 1024
_ENTRY_BYTES = 256  # of memory, beside what the entry carries


class Backlog:
    """Told of each job when it is handed over and when it has ended."""

    def __init__(self, bytes_max: int) -> None:
        self.is_over = False
        self.size_bytes = 0
        self._bytes_max = bytes_max
        self._bytes_by_group: Counter[int] = Counter()

    def handed(self, job: StorageJob) -> None:
        if isinstance(job, WriteEntries):
            self._change(job.group, _size_bytes(job))

    def ended(self, job: StorageJob) -> None:
        """Done or failed. A removed group takes with it what waits for room: nothing more is told of that."""
        if isinstance(job, WriteEntries):
            self._change(job.group, -_size_bytes(job))
        elif isinstance(job, RemoveGroup):
            self._change(job.group, -self._bytes_by_group[job.group])

    def _change(self, group: int, size_bytes: int) -> None:
        self._bytes_by_group[group] += size_bytes
        if not self._bytes_by_group[group]:
            del self._bytes_by_group[group]
        self.size_bytes += size_bytes
        if self.size_bytes > self._bytes_max:
            self.is_over = True
        elif self.size_bytes <= self._bytes_max // 2:
            self.is_over = False


def _size_bytes(job: WriteEntries) -> int:
    return sum(len(entry.payload) + _ENTRY_BYTES for entry in job.entries)
