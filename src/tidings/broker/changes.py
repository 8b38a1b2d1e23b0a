"""Changes: proposing several commands for one request, and answering when what they changed can be seen
everywhere.

The one rule: "done" means that every living broker has applied the change and knows leaders for what is new,
so that a client which asks any broker right after the answer finds it.
It must not know what the commands are. Tests: tests/broker/test_changes.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidings.broker.commands import Command, encode_command
from tidings.broker.outcome import Outcome
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode

TIMED_OUT = Outcome(
    code=ErrorCode.REQUEST_TIMED_OUT, message="the cluster has not agreed on the change in time"
)
UNSETTLED = "the change is made, but not every broker has been seen to know of it yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A command and the groups that must have leaders before its outcome is told."""

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
    """Propose all, and call `then` with their outcomes in the same order. At least one change."""
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
        self._outcomes: list[Outcome] = [TIMED_OUT] * len(changes)
        self._missing_count = len(changes)

    def start(self, now_ms: int) -> None:
        for place, change in enumerate(self._changes):
            payload = encode_command(change.command)
            self._site.controller.propose(payload, self._outcome_of(place), now_ms)

    def _outcome_of(self, place: int) -> Callable[[Outcome | None], None]:
        def take(outcome: Outcome | None) -> None:
            if outcome is not None:
                self._outcomes[place] = outcome
            self._missing_count -= 1
            if self._missing_count == 0:
                self._settle()

        return take

    def _settle(self) -> None:
        made = [
            (change, outcome)
            for change, outcome in zip(self._changes, self._outcomes, strict=True)
            if outcome.code is ErrorCode.NONE
        ]
        if not made:
            self._then(self._outcomes)
            return
        groups = [group for change, outcome in made if change.awaits_leaders for group in outcome.groups]
        self._site.settling.when_settled(groups, self._at_ms_max, self._settled)

    def _settled(self, is_settled: bool) -> None:
        if not is_settled:
            self._outcomes = [
                replace(outcome, code=ErrorCode.REQUEST_TIMED_OUT, message=UNSETTLED)
                if outcome.code is ErrorCode.NONE
                else outcome
                for outcome in self._outcomes
            ]
        self._then(self._outcomes)
