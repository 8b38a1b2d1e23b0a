"""Brokers' processes without processes: a virtual clock, a mailbox that it drives, children that do as told.

Each start of a broker takes the next `Life` of its list, and the last one again and again.
"""

from __future__ import annotations

import heapq
import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tidings.runtime.supervisor import BrokerPlan, Exited, Message, Ready, StopAsked

FOR_EVER_MS = 1_000_000_000
FIRST_PID = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one process does: ready after so long, ended after so long, stopped so long after it was asked."""

    ready_ms: int = 50
    ends_ms: int = FOR_EVER_MS
    code: int = -9
    stop_ms: int = 20


class FakeChild:
    """A process on the virtual clock."""

    def __init__(self, world: FakeProcesses, plan: BrokerPlan, pid: int, life: Life) -> None:
        self.pid = pid
        self.is_living = True
        self.is_killed = False
        self._world = world
        self._broker_id = plan.broker_id
        self._life = life
        if life.ready_ms < life.ends_ms:
            world.at(world.now_ms + life.ready_ms, self._ready)
        world.at(world.now_ms + life.ends_ms, lambda: self.end(life.code))

    def ask_to_stop(self) -> None:
        self._world.at(self._world.now_ms + self._life.stop_ms, lambda: self.end(0))

    def kill(self) -> None:
        self.is_killed = True
        self._world.at(self._world.now_ms, lambda: self.end(-9))

    def end(self, code: int) -> Message | None:
        if not self.is_living:
            return None
        self.is_living = False
        return Exited(broker_id=self._broker_id, pid=self.pid, code=code)

    def _ready(self) -> Message | None:
        return Ready(broker_id=self._broker_id, pid=self.pid) if self.is_living else None


@dataclass
class FakeProcesses:
    """Clock, mailbox and spawner in one."""

    lives: dict[int, list[Life]] = field(default_factory=dict)
    now_ms: int = 0
    started_ms: dict[int, list[int]] = field(default_factory=dict)  # by broker
    children: dict[int, FakeChild] = field(default_factory=dict)  # the last one of each broker
    holders: set[Path] = field(default_factory=set)  # folders whose lock somebody else holds
    refusals: list[OSError] = field(default_factory=list)  # of the next starts

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, Callable[[], Message | None]]] = []
        self._count = 0

    def at(self, at_ms: int, happens: Callable[[], Message | None]) -> None:
        """At that time `happens` is called; what it returns is mailed."""
        self._count += 1
        heapq.heappush(self._events, (at_ms, self._count, happens))

    def stop_at(self, at_ms: int) -> None:
        self.at(at_ms, StopAsked)

    def spawn(self, plan: BrokerPlan) -> FakeChild:
        if self.refusals:
            raise self.refusals.pop(0)
        started_ms = self.started_ms.setdefault(plan.broker_id, [])
        lives = self.lives.get(plan.broker_id, [Life()])
        life = lives[min(len(started_ms), len(lives) - 1)]
        started_ms.append(self.now_ms)
        pid = FIRST_PID + sum(len(times) for times in self.started_ms.values())
        self.children[plan.broker_id] = FakeChild(self, plan, pid, life)
        return self.children[plan.broker_id]

    def put(self, message: Message, /) -> None:
        self.at(self.now_ms, lambda: message)

    def get(self, block: bool = True, timeout: float | None = None) -> Message:
        until_ms = FOR_EVER_MS if timeout is None else self.now_ms + int(timeout * 1000)
        while self._events and self._events[0][0] <= until_ms:
            at_ms, _, happens = heapq.heappop(self._events)
            self.now_ms = max(self.now_ms, at_ms)
            message = happens()
            if message is not None:
                return message
        assert timeout is not None, "waits for ever"
        self.now_ms = until_ms
        raise queue.Empty
