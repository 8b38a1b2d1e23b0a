"""Events: what a process decides, one line each on stderr: JSON for machines, text where a person watches.

Rule: one line per decision, none per record, and never more per second and name than a limit: no client can
fill the disk. Must not know: what the events mean. Tests: tests/telemetry/test_events.py
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Protocol, TextIO

# Values come from clients too; what they send is quoted, escaped and cut.
FIELD_CHARACTERS_MAX = 300
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/,+@[]")


class Level(IntEnum):
    """How much an event matters; the lowest that is written is an option."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class Limiter:
    """Lets at most `events_per_second_max` events of a name through per second, and counts the others."""

    __slots__ = ("_events_per_second_max", "_let_through", "_second", "_suppressed")

    def __init__(self, events_per_second_max: int) -> None:
        self._events_per_second_max = events_per_second_max
        self._second = 0
        self._let_through: dict[str, int] = {}
        self._suppressed: dict[str, int] = {}

    def admit(self, name: str, now_s: float) -> bool:
        second = int(now_s)
        if second != self._second:
            self._second = second
            self._let_through.clear()
        let_through = self._let_through.get(name, 0)
        if let_through >= self._events_per_second_max:
            self._suppressed[name] = self._suppressed.get(name, 0) + 1
            return False
        self._let_through[name] = let_through + 1
        return True

    def take_suppressed(self, name: str) -> int:
        """How many of this name were held back since the last one that went through."""
        return self._suppressed.pop(name, 0)


class EventLog:
    """Writes events to a stream. `bind` gives a log whose every event knows more; limits are shared."""

    def __init__(
        self,
        *,
        stream: TextIO,
        is_json: bool,
        level: Level,
        events_per_second_max: int,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._stream = stream
        self._render = _render_json if is_json else _render_text
        self._level = level
        self._clock_s = clock_s
        self._limiter = Limiter(events_per_second_max)
        self._bound: Mapping[str, object] = {}

    def bind(self, **facts: object) -> EventLog:
        bound = object.__new__(EventLog)
        bound.__dict__.update(self.__dict__)
        bound._bound = {**self._bound, **facts}
        return bound

    def event(self, name: str, /, *, level: Level = Level.INFO, **facts: object) -> None:
        """Writes one event. `name` is a past participle phrase of the domain: `leader_elected`."""
        if level < self._level:
            return
        now_s = self._clock_s()
        if not self._limiter.admit(name, now_s):
            return
        suppressed = self._limiter.take_suppressed(name)
        if suppressed:
            facts["suppressed"] = suppressed
        line = self._render(now_s, level, name, {**self._bound, **facts})
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # nobody reads the log any more; the broker's work goes on

    def warning(self, name: str, /, **facts: object) -> None:
        self.event(name, level=Level.WARNING, **facts)

    def error(self, name: str, /, **facts: object) -> None:
        self.event(name, level=Level.ERROR, **facts)


class LogOptions(Protocol):
    """The options that concern the log, as config/options.py has them."""

    @property
    def log_format(self) -> str: ...

    @property
    def log_level(self) -> str: ...

    @property
    def log_events_per_second_max(self) -> int: ...


def open_log(options: LogOptions, stream: TextIO | None = None) -> EventLog:
    """The log that the options ask for, on stderr unless told otherwise."""
    target = stream or sys.stderr
    return EventLog(
        stream=target,
        is_json=options.log_format == "json" or (options.log_format == "auto" and not target.isatty()),
        level=Level[options.log_level.upper()],
        events_per_second_max=options.log_events_per_second_max,
    )


def _render_json(now_s: float, level: Level, name: str, facts: Mapping[str, object]) -> str:
    head = {"time": _timestamp(now_s), "level": level.name.lower(), "event": name}
    return json.dumps(head | {key: _plain_value(value) for key, value in facts.items()})


def _render_text(now_s: float, level: Level, name: str, facts: Mapping[str, object]) -> str:
    clock = _timestamp(now_s)[11:23]
    said = "".join(f" {key}={_quoted(_plain_value(value))}" for key, value in facts.items())
    return f"{clock} {level.name.lower():7} {name}{said}"


def _timestamp(now_s: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    milliseconds = int(now_s * 1000)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{whole}.{milliseconds % 1000:03d}Z"


def _plain_value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    text = str(value)
    return text if len(text) <= FIELD_CHARACTERS_MAX else text[:FIELD_CHARACTERS_MAX] + "…"


def _quoted(value: object) -> str:
    if isinstance(value, str) and value and _PLAIN.issuperset(value):
        return value
    return json.dumps(value)
