"""The living cluster as a test describes it: who is alive, who leads what, and when a change is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fakes.calls import Calls
from tests.fakes.timers import FakeTimers
from tidings.broker.ports import NO_LEADER, Leader


class FakeLiveness:
    """Facts that are set by hand; `changed` says that they are others now."""

    def __init__(self) -> None:
        self.version = 1
        self.controller_id = 1
        self.alive_ids: set[int] = {1}
        self.gone_ids: set[int] = set()
        self.leaders: dict[int, Leader] = {}

    def alive(self) -> set[int]:
        return self.alive_ids

    def listed(self) -> set[int]:
        return self.alive_ids | self.gone_ids

    def leader_of(self, group: int) -> Leader:
        return self.leaders.get(group, Leader(broker_id=NO_LEADER, epoch=-1))

    def in_sync(self, group: int, replicas: Sequence[int]) -> list[int]:
        return [broker_id for broker_id in replicas if broker_id in self.alive_ids]

    def changed(self) -> None:
        self.version += 1


class FakeSettling:
    """`is_settled` is what everyone who waits is told; `asked` are the groups that were waited for."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.is_settled = True
        self.asked: list[tuple[int, ...]] = []

    def when_settled(self, groups: Sequence[int], at_ms_max: int, then: Callable[[bool], None]) -> None:
        self.asked.append(tuple(groups))
        self._calls.later(lambda: then(self.is_settled))


class FakeFreshness:
    """Everyone who asks is told at once, or at the last moment (`is_fresh` False); `asked` are the groups."""

    def __init__(self, calls: Calls, timers: FakeTimers) -> None:
        self._calls = calls
        self._timers = timers
        self.is_fresh = True
        self.asked: list[tuple[int, ...]] = []

    def when_fresh(self, groups: Sequence[int], at_ms_max: int, then: Callable[[], None]) -> None:
        self.asked.append(tuple(groups))
        if self.is_fresh:
            self._calls.later(then)
        else:
            self._timers.call_at(at_ms_max, lambda _now_ms: then())


class FakeOffload:
    """Work beside the loop, done in turn."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def run(
        self,
        function: Callable[..., object],
        *arguments: object,
        then: Callable[[object], None],
    ) -> None:
        self._calls.later(lambda: then(function(*arguments)))
