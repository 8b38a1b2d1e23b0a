"""Freshness: making sure that the leaders a client is about to be told of are alive now, not a moment ago.

A killed broker's clients ask the others for its partitions' new leaders within a millisecond, often before
those have noticed the death; told the old leader, a client waits up to a second before it asks again. So each
leader's broker is pinged first, and where one is gone the answer waits for the election, which takes some
milliseconds.

Its one rule: an answer is put off, never withheld: the deadline gives what is known then. Tests:
tests/node/test_freshness.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tidings.node.messages import Ping, Pong
from tidings.node.timers import Alarm, Timers


class FreshnessOwner(Protocol):
    """What freshness asks of its node."""

    timers: Timers

    def first_unled(self, groups: Sequence[int]) -> int | None: ...
    def leading_members(self, groups: Sequence[int]) -> set[int]: ...
    def send_to(self, member: int, frame: bytes) -> None: ...


class _Waiting:
    """A question that is put off."""

    __slots__ = ("alarm", "groups", "members", "then", "unled")

    def __init__(
        self, groups: tuple[int, ...], members: set[int], alarm: Alarm, then: Callable[[], None]
    ) -> None:
        self.groups = groups
        self.members = members  # leaders' brokers that have not answered
        self.alarm = alarm
        self.then = then
        self.unled: int | None = None  # one of the groups that had no leader when it was last looked


class Freshness:
    """Questions that wait for living leaders."""

    def __init__(self, owner: FreshnessOwner) -> None:
        self._owner = owner
        self._next_context = 1
        self._waiting: dict[int, _Waiting] = {}

    def when_fresh(self, groups: Sequence[int], at_ms_max: int, then: Callable[[], None]) -> None:
        """Call `then` once each group has a leader whose broker has answered since; at `at_ms_max` at the
        latest."""
        context = self._next_context
        self._next_context += 1
        members = self._owner.leading_members(groups)
        alarm = self._owner.timers.call_at(at_ms_max, lambda _: self._finish(context))
        self._waiting[context] = _Waiting(tuple(groups), members, alarm, then)
        ping = Ping(context).encode()
        for member in members:
            self._owner.send_to(member, ping)
        if not members:
            self._owner.timers.call_at(0, lambda _: self._check(context))

    def answered(self, member: int, pong: Pong) -> None:
        waiting = self._waiting.get(pong.context)
        if waiting is not None:
            waiting.members.discard(member)
            self._check(pong.context)

    def member_gone(self, member: int) -> None:
        """Its groups have no leader from now on, until another one is known; that may be so already."""
        for waiting in self._waiting.values():
            waiting.members.discard(member)
        self.check()

    def check(self) -> None:
        """Leaders became known."""
        for context in list(self._waiting):
            self._check(context)

    def _check(self, context: int) -> None:
        waiting = self._waiting.get(context)
        if waiting is None or waiting.members:
            return
        if waiting.unled is not None and self._owner.first_unled((waiting.unled,)) is not None:
            return  # as before; the other groups need not be looked at
        waiting.unled = self._owner.first_unled(waiting.groups)
        if waiting.unled is None:
            self._finish(context)

    def _finish(self, context: int) -> None:
        waiting = self._waiting.pop(context, None)
        if waiting is not None:
            waiting.alarm.cancel()
            waiting.then()
