"""Positions: where a reader begins, as people write it.

    earliest        the oldest message that is kept
    latest          only what is published from now on
    -10             the last ten messages of the topic
    42              offset 42 of every partition
    10m  2h  7d     so long ago (s, m, h, d)
    2026-11-19T08:30  a time, local unless it says otherwise (Z, +01:00); a date alone is its midnight
    @1763541000     a time in seconds since 1970, as `date +%s` prints it

Rule: pure; the clock and the zone are arguments. Must not know: how a position is found in a log.
Tests: tests/kafka/test_positions.py
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import Enum

LAST_MAX = 100_000  # they are held in memory, to be put in order
_MS_BY_UNIT = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_EPOCH = re.compile(r"@([0-9]+(?:\.[0-9]+)?)")


class Edge(Enum):
    """An end of the log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Last:
    """The last `count` messages of the topic."""

    count: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    """From one offset on, in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class Since:
    """From the first message of this time or later, in every partition."""

    timestamp_ms: int


Position = Edge | Last | AtOffset | Since


class PositionError(ValueError):
    """The text names no position."""


def parse_position(text: str, *, now_ms: int, zone: tzinfo | None = None) -> Position:
    """`zone` is that of times which name none; None is the machine's own."""
    if text in ("earliest", "latest"):
        return Edge(text)
    if re.fullmatch(r"-[0-9]+", text):
        count = -int(text)
        if not 1 <= count <= LAST_MAX:
            raise PositionError(f"'{text}': the last 1 to {LAST_MAX} messages can be asked for")
        return Last(count)
    if re.fullmatch(r"[0-9]+", text):
        return AtOffset(int(text))
    if ago := _AGO.fullmatch(text):
        return Since(max(0, now_ms - int(float(ago[1]) * _MS_BY_UNIT[ago[2]])))
    if epoch := _EPOCH.fullmatch(text):
        return Since(int(float(epoch[1]) * 1000))
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo or zone is None else moment.replace(tzinfo=zone)
        return Since(max(0, int(aware.timestamp() * 1000)))
    except (ValueError, OverflowError, OSError):
        raise PositionError(
            f"'{text}' is none of earliest, latest, -10, an offset, a time (2026-11-19T08:30, @seconds), 10m"
        ) from None
