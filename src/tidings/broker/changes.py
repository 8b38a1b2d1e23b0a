"""Changes: several commands for one request, answered when what they changed can be seen everywhere.

The one rule: "done" means that every living broker has applied the change and knows leaders for what is new,
so that a client which asks any broker right after the answer finds it. What is not known to be done in time
is told as timed out, though it may still happen.
It must not know what the commands are. Tests: tests/broker/test_changes.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tidings.broker.commands import Command, encode_command
from tidings.broker.outcome import Outcome
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode

UNKNOWN = Outcome(
    code=ErrorCode.REQUEST_TIMED_OUT, message="the cluster has not agreed on the change in time"
)
UNSETTLED = Outcome(
    code=ErrorCode.REQUEST_TIMED_OUT,
    message="the change is made, but not every broker has been seen to know of it yet",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A command, and whether the groups of its outcome must have leaders before it is told."""

    command: Command
    awaits_leaders: bool = True


def make_changes(
    site: Site,
    changes: Sequence[Change],
    *,
    now_ms: int,
    timeout_ms: int,
    then: Callable[[list[Outcome]], None],
) -> None:
    """Propose all, and call `then` once with their outcomes in the same order. At least one change."""
    assert changes
    at_ms_max = now_ms + min(max(0, timeout_ms), site.config.controller_timeout_ms)
    _Changes(site, changes, at_ms_max, then).start(now_ms)


class _Changes:
    """Changes under way."""

    def __init__(
        self,
        site: Site,
        changes: Sequence[Change],
        at_ms_max: int,
        then: Callable[[list[Outcome]], None],
    ) -> None:
        self._site = site
        self._changes = changes
        self._at_ms_max = at_ms_max
        self._then = then
        self._outcomes: list[Outcome] = [UNKNOWN] * len(changes)
        self._missing_count = len(changes)
        self._is_told = False
        self._timer = site.timers.call_at(at_ms_max, self._time_is_up)

    def start(self, now_ms: int) -> None:
        for place, change in enumerate(self._changes):
            self._site.controller.propose(
                encode_command(change.command), partial(self._proposed, place), now_ms
            )

    def _proposed(self, place: int, outcome: Outcome | None) -> None:
        if self._is_told:
            return
        if outcome is not None:
            self._outcomes[place] = outcome
        self._missing_count -= 1
        if self._missing_count > 0:
            return
        made = [place for place, outcome in enumerate(self._outcomes) if outcome.code is ErrorCode.NONE]
        if not made:
            self._tell()
            return
        groups = [
            group
            for place in made
            if self._changes[place].awaits_leaders
            for group in self._outcomes[place].groups
        ]
        self._site.settling.when_settled(groups, self._at_ms_max, self._settled)

    def _settled(self, is_settled: bool) -> None:
        if is_settled:
            self._tell()
        else:
            self._time_is_up(self._at_ms_max)

    def _time_is_up(self, _now_ms: int) -> None:
        self._outcomes = [
            UNSETTLED if outcome.code is ErrorCode.NONE else outcome for outcome in self._outcomes
        ]
        self._tell()

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            self._timer.cancel()
            self._then(self._outcomes)
