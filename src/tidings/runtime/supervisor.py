"""Supervisor: keeps the broker processes of `tidings up` alive, and ends them together.

Rule: one thread decides. Processes, signals and timers only put messages in its mailbox; `handle` and
`tick` take them one by one, and everything about a broker's place stands in its `_Place`.
Must not know: how a process is started (children.py), or what a broker does. Tests:
tests/runtime/test_supervisor.py

    starting --ready--> serving --exit--> pausing --pause over--> starting
        |                  |                 ^
        |                  +--exit, no restart, or a lasting reason--> empty
        +--exit FOLDER_LOCKED--> taken (someone started this broker by hand) --holder gone--> starting
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from tidings.config.exits import LASTING, Exit
from tidings.config.options import Config
from tidings.telemetry.events import EventLog

# After SIGKILL the kernel needs no longer than this to say that a process is gone.
KILL_MS_MAX = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    """One broker of the cluster: who it is, and the command that runs it, by us or by hand."""

    broker_id: int
    kafka: str
    peer: str
    data: Path
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A process said that its broker has joined and knows a controller."""

    broker_id: int
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """A process ended; `code` is negative where a signal ended it."""

    broker_id: int
    pid: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked:
    """Somebody wants the cluster to stop."""


Message = Ready | Exited | StopAsked


class Child(Protocol):
    """A broker's process. Ready and Exited come from it by mail."""

    @property
    def pid(self) -> int: ...

    def ask_to_stop(self) -> None: ...

    def kill(self) -> None: ...


class Mailbox(Protocol):
    """Where messages wait; `queue.SimpleQueue`, whose `put` a signal handler may call."""

    def put(self, message: Message, /) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Message: ...


Spawn = Callable[[BrokerPlan], Child]
HolderIsAlive = Callable[[Path], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A broker that serves: its plan and its process."""

    plan: BrokerPlan
    pid: int


class BrokerFailed(Exception):
    """A broker ended before the cluster was ready, for a reason that a restart does not mend."""

    def __init__(self, plan: BrokerPlan, code: int) -> None:
        super().__init__(f"broker {plan.broker_id} ended with exit code {code}")
        self.plan = plan
        self.code = code


class NotReady(Exception):
    """The time is up and some brokers have not said that they are ready."""

    def __init__(self, plans: Sequence[BrokerPlan]) -> None:
        super().__init__(", ".join(f"broker {plan.broker_id}" for plan in plans))
        self.plans = plans


class MajorityLost(Exception):
    """So few brokers are left, and none will be started again, that the cluster can do nothing any more."""

    def __init__(self, left: int, count: int) -> None:
        super().__init__(f"{left} of {count} brokers {'is' if left == 1 else 'are'} left")


class _State(Enum):
    STARTING = "starting"
    SERVING = "serving"
    PAUSING = "pausing"
    TAKEN = "taken"
    EMPTY = "empty"


class _Place:
    """A broker's place in the cluster, and what is in it."""

    __slots__ = ("child", "plan", "retry_at_ms", "retry_pause_ms", "started_ms", "state")

    def __init__(self, plan: BrokerPlan) -> None:
        self.plan = plan
        self.state = _State.EMPTY
        self.child: Child | None = None
        self.started_ms = 0
        self.retry_pause_ms = 0  # the last one; 0: none since the broker proved itself
        self.retry_at_ms = 0  # in PAUSING and TAKEN only


class Supervisor:
    """Runs the brokers of `plans` until it is asked to stop."""

    def __init__(
        self,
        plans: Sequence[BrokerPlan],
        *,
        config: Config,
        spawn: Spawn,
        mailbox: Mailbox,
        log: EventLog,
        holder_is_alive: HolderIsAlive,
        now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self._places = {plan.broker_id: _Place(plan) for plan in plans}
        self._config = config
        self._spawn = spawn
        self._mailbox = mailbox
        self._log = log
        self._holder_is_alive = holder_is_alive
        self._now_ms = now_ms
        self._was_ready = False
        self._is_stopping = False

    def run(self, on_ready: Callable[[list[Running]], None]) -> None:
        """Starts all at once, calls `on_ready` when every broker is, and returns when asked to stop."""
        ready_by_ms = self._now_ms() + self._config.ready_ms_max
        try:
            for place in self._places.values():
                self._start(place)
            while not self._is_stopping:
                self._take_mail(ready_by_ms if not self._was_ready else None)
                if not self._was_ready and self._all_serve():
                    self._was_ready = True
                    on_ready(
                        [Running(plan=p.plan, pid=p.child.pid) for p in self._places.values() if p.child]
                    )
                elif not self._was_ready and self._now_ms() >= ready_by_ms:
                    raise NotReady([p.plan for p in self._places.values() if p.state is not _State.SERVING])
        finally:
            self._stop_all()

    def _all_serve(self) -> bool:
        return all(place.state is _State.SERVING for place in self._places.values())

    def _take_mail(self, until_ms: int | None) -> None:
        """Waits for one message, at most until the next timer or `until_ms`, and runs the timers that are
        due.
        """
        waiting = (place for place in self._places.values() if place.state in (_State.PAUSING, _State.TAKEN))
        deadlines_ms = [place.retry_at_ms for place in waiting]
        if until_ms is not None:
            deadlines_ms.append(until_ms)
        timeout_s = max(0, min(deadlines_ms) - self._now_ms()) / 1000 if deadlines_ms else None
        with suppress(queue.Empty):
            self._handle(self._mailbox.get(timeout=timeout_s))
        if not self._is_stopping:
            self._run_timers()

    def _handle(self, message: Message) -> None:
        if isinstance(message, StopAsked):
            self._is_stopping = True
            return
        place = self._places[message.broker_id]
        if place.child is None or place.child.pid != message.pid:
            return  # the last word of a process that has been replaced
        if isinstance(message, Ready):
            place.state = _State.SERVING
            self._log.event("broker_ready", broker=message.broker_id, pid=message.pid)
        else:
            self._on_exit(place, message)

    def _on_exit(self, place: _Place, exited: Exited) -> None:
        place.child = None
        if self._is_stopping:
            place.state = _State.EMPTY
            return
        if exited.code == Exit.FOLDER_LOCKED:
            self._log.warning("broker_place_taken", broker=exited.broker_id, folder=place.plan.data)
            self._pause(place, _State.TAKEN)
            return
        self._log.warning("broker_died", broker=exited.broker_id, pid=exited.pid, code=exited.code)
        if not self._was_ready and exited.code >= 0:
            raise BrokerFailed(place.plan, exited.code)
        if exited.code in LASTING or not self._config.restart:
            place.state = _State.EMPTY
            self._log.error("broker_given_up", broker=exited.broker_id, code=exited.code)
            self._require_majority(place.plan, exited.code)
            return
        if self._now_ms() - place.started_ms >= self._config.restart_reset_ms:
            place.retry_pause_ms = 0
        self._pause(place, _State.PAUSING)

    def _require_majority(self, plan: BrokerPlan, code: int) -> None:
        """A place that we gave up counts where somebody has started its broker by hand."""
        left = sum(
            place.state is not _State.EMPTY or self._holder_is_alive(place.plan.data)
            for place in self._places.values()
        )
        if 2 * left > len(self._places):
            return
        if code in LASTING:
            raise BrokerFailed(plan, code)
        raise MajorityLost(left, len(self._places))

    def _pause(self, place: _Place, state: _State) -> None:
        """Each pause is twice the one before, within the bounds of the options."""
        grown_ms = max(2 * place.retry_pause_ms, self._config.restart_pause_ms_min)
        place.retry_pause_ms = min(grown_ms, self._config.restart_pause_ms_max)
        place.retry_at_ms = self._now_ms() + place.retry_pause_ms
        place.state = state

    def _run_timers(self) -> None:
        now_ms = self._now_ms()
        for place in self._places.values():
            if place.state not in (_State.PAUSING, _State.TAKEN) or place.retry_at_ms > now_ms:
                continue
            if place.state is _State.TAKEN and self._holder_is_alive(place.plan.data):
                place.retry_at_ms = now_ms + self._config.restart_pause_ms_min
            else:
                self._start(place)

    def _start(self, place: _Place) -> None:
        try:
            place.child = self._spawn(place.plan)
        except OSError as error:
            if not self._was_ready:
                raise
            # Out of processes or memory: a cluster that serves is not stopped for it.
            self._log.error("broker_not_started", broker=place.plan.broker_id, reason=error.strerror)
            self._pause(place, _State.PAUSING)
            return
        place.state = _State.STARTING
        place.started_ms = self._now_ms()
        self._log.event("broker_started", broker=place.plan.broker_id, pid=place.child.pid)

    def _stop_all(self) -> None:
        """Asks every process to end, and ends by force those that have not when the time is up."""
        self._is_stopping = True
        for place in self._places.values():
            if place.child:
                place.child.ask_to_stop()
        self._await_exits(self._now_ms() + self._config.stop_ms_max)
        for place in self._places.values():
            if place.child:
                self._log.warning("broker_killed", broker=place.plan.broker_id, pid=place.child.pid)
                place.child.kill()
        self._await_exits(self._now_ms() + KILL_MS_MAX)

    def _await_exits(self, until_ms: int) -> None:
        while any(place.child for place in self._places.values()) and self._now_ms() < until_ms:
            try:
                self._handle(self._mailbox.get(timeout=max(0, until_ms - self._now_ms()) / 1000))
            except queue.Empty:
                return
