"""Settling: waiting until every living broker has applied a metadata change and knows the leaders that follow
from it.

Its one rule: a broker that dies is waited for no longer; one that lives answers as soon as it can, not when
asked again. It must not know what changed. Tests: tests/node/test_settling.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tidings.node.messages import Ask, Settled
from tidings.node.timers import Alarm, Timers

_ASKS_MAX = (
    10_000  # of peers, unanswered: each is forgotten with its broker; more than this is no honest peer
)


class SettlingOwner(Protocol):
    """What settling asks of its node."""

    timers: Timers

    def metadata_index(self) -> int: ...
    def first_unled(self, groups: Sequence[int]) -> int | None: ...
    def living_members(self) -> list[int]: ...
    def send_to(self, member: int, frame: bytes) -> None: ...


class _Waiting:
    """A change made here that is not yet visible everywhere."""

    __slots__ = ("alarm", "groups", "index", "is_settled_here", "members", "then")

    def __init__(self, index: int, groups: tuple[int, ...], members: set[int]) -> None:
        self.index = index
        self.groups = groups
        self.members = members  # who has not answered
        self.is_settled_here = False
        self.alarm: Alarm | None = None
        self.then: Callable[[bool], None] | None = None


class Settling:
    """Fills the broker room's port of the same name, and answers the asks of other brokers."""

    def __init__(self, owner: SettlingOwner) -> None:
        self._owner = owner
        self._next_context = 1
        self._waiting: dict[int, _Waiting] = {}
        self._asks: list[tuple[int, Ask]] = []  # (member, what it asked)

    def when_settled(self, groups: Sequence[int], at_ms_max: int, then: Callable[[bool], None]) -> None:
        members = self._owner.living_members()
        context = self._next_context
        self._next_context += 1
        waiting = _Waiting(self._owner.metadata_index(), tuple(groups), set(members))
        waiting.then = then
        waiting.alarm = self._owner.timers.call_at(at_ms_max, lambda _: self._finish(context, settled=False))
        self._waiting[context] = waiting
        frame = Ask(context, waiting.index, waiting.groups).encode()
        for member in members:
            self._owner.send_to(member, frame)
        # Never from within the call: an alarm that is due at once checks whether all is settled already.
        self._owner.timers.call_at(0, lambda _: self._check(context))

    def asked(self, member: int, ask: Ask) -> None:
        if len(self._asks) < _ASKS_MAX:
            self._asks.append((member, ask))
            self.check()

    def answered(self, member: int, settled: Settled) -> None:
        waiting = self._waiting.get(settled.context)
        if waiting is not None:
            waiting.members.discard(member)
            self._check(settled.context)

    def member_gone(self, member: int) -> None:
        self._asks = [(asker, ask) for asker, ask in self._asks if asker != member]
        for context, waiting in list(self._waiting.items()):
            waiting.members.discard(member)
            self._check(context)

    def check(self) -> None:
        """Something was applied, or a leader became known."""
        if not self._asks and not self._waiting:
            return
        unanswered: list[tuple[int, Ask]] = []
        for member, ask in self._asks:
            if self._is_settled_here(ask.index, ask.groups):
                self._owner.send_to(member, Settled(ask.context).encode())
            else:
                unanswered.append((member, ask))
        self._asks = unanswered
        for context in list(self._waiting):
            self._check(context)

    def _check(self, context: int) -> None:
        waiting = self._waiting.get(context)
        if waiting is None:
            return
        if not waiting.is_settled_here:
            waiting.is_settled_here = self._is_settled_here(waiting.index, waiting.groups)
        if waiting.is_settled_here and not waiting.members:
            self._finish(context, settled=True)

    def _finish(self, context: int, *, settled: bool) -> None:
        waiting = self._waiting.pop(context, None)
        if waiting is None:
            return
        assert waiting.alarm is not None
        assert waiting.then is not None
        waiting.alarm.cancel()
        waiting.then(settled)

    def _is_settled_here(self, index: int, groups: Sequence[int]) -> bool:
        return self._owner.metadata_index() >= index and self._owner.first_unled(groups) is None
