"""When each group wants its tick.

The one rule: a group is never ticked later than it asked for, and putting its deadline off costs nothing: an
alarm that comes too early finds that out and is set again. Tests: tests/raft/test_schedule.py
"""

from __future__ import annotations

from heapq import heappop, heappush


class Schedule:
    """A heap of (time, group), at most a few per group."""

    __slots__ = ("_alarm_ms", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._alarm_ms: dict[int, int] = {}  # by group: the earliest of its alarms that counts

    def wake(self, group: int, at_ms: int) -> None:
        """Have `due` name the group at `at_ms`, or earlier if it was asked for."""
        alarm_ms = self._alarm_ms.get(group)
        if alarm_ms is None or at_ms < alarm_ms:
            self._alarm_ms[group] = at_ms
            heappush(self._heap, (at_ms, group))

    def due(self, now_ms: int) -> list[int]:
        """The groups whose alarm rang, each once; their alarms are gone."""
        heap = self._heap
        groups: list[int] = []
        while heap and heap[0][0] <= now_ms:
            at_ms, group = heappop(heap)
            if self._alarm_ms.get(group) == at_ms:
                del self._alarm_ms[group]
                groups.append(group)
        return groups

    def forget(self, group: int) -> None:
        self._alarm_ms.pop(group, None)

    def next_ms(self) -> int | None:
        """When the next alarm may ring."""
        return self._heap[0][0] if self._heap else None
