"""Rows: the lines of the comparison, what each must reach, and how samples become its figure.

The one rule: a goal stands beside the figure it judges, and a missed one is printed as missed. Must not
know: how anything is measured. Tests: tests/bench/test_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.figures import median, quantile

KAFKA: Final = "kafka"
KAFKA_FSYNC: Final = "kafka-fsync"
TIDINGS: Final = "tidings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What Tidings' figure must reach: a bound for itself, or for its ratio to another system's."""

    bound: float
    at_least: bool
    against: str | None = None

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{sign} {self.bound:g}x {self.against}" if self.against else f"{sign} {self.bound:g}"

    def verdict(self, figures: Mapping[str, float]) -> str:
        """`met`, `missed`, or nothing when a figure is not there."""
        if TIDINGS not in figures or (self.against is not None and self.against not in figures):
            return ""
        reached = figures[TIDINGS]
        if self.against is not None:
            reached = ratio(reached, figures[self.against])
        met = reached >= self.bound if self.at_least else reached <= self.bound
        return "met" if met else "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line. `combine` makes one figure of the samples of all rounds."""

    name: str
    label: str
    unit: str
    digits: int
    goal: Goal | None = None
    combine: Callable[[Sequence[float]], float] = median

    def shown(self, figure: float) -> str:
        return f"{figure:,.{self.digits}f}"


def ratio(figure: float, other: float) -> float:
    return figure / other if other else float("inf")


def _rate(name: str, label: str, *, times_kafka: float | None = 1.0) -> Row:
    goal = Goal(bound=times_kafka, at_least=True, against=KAFKA) if times_kafka is not None else None
    return Row(name=name, label=label, unit="msg/s", digits=0, goal=goal)


def _at_most(bound: float, against: str | None = None) -> Goal:
    return Goal(bound=bound, at_least=False, against=against)


P99: Final = partial(quantile, share=0.99)

ROWS: Final = (
    _rate("produce-1k", "produce 1 KiB, batched"),
    _rate("produce-100", "produce 100 B, batched"),
    Row(name="one-p50", label="one at a time, p50", unit="ms", digits=2, goal=_at_most(0.9, KAFKA_FSYNC)),
    Row(name="one-p99", label="one at a time, p99", unit="ms", digits=2, goal=_at_most(0.4, KAFKA_FSYNC)),
    _rate("64", "64 outstanding, client's 5 ms linger", times_kafka=1.5),
    _rate("64-no-linger", "64 outstanding, no linger", times_kafka=1.5),
    _rate("500", "500 outstanding, client's 5 ms linger"),
    _rate("500-no-linger", "500 outstanding, no linger"),
    Row(name="end-to-end-p50", label="end to end at 1,000 msg/s, p50", unit="ms", digits=2),
    Row(
        name="end-to-end-p99",
        label="end to end at 1,000 msg/s, p99",
        unit="ms",
        digits=2,
        goal=_at_most(0.5, KAFKA),
    ),
    _rate("consume-1k", "consume 1 KiB"),
    _rate("consume-100", "consume 100 B"),
    _rate("partitions-200", "200 partitions, batches of 10 x 100 B"),
    Row(
        name="kill-p50",
        label="kill -9 of a leader to the next ack, p50",
        unit="s",
        digits=2,
        goal=_at_most(0.5),
    ),
    Row(
        name="kill-p99",
        label="kill -9 of a leader to the next ack, p99",
        unit="s",
        digits=2,
        goal=_at_most(1.0),
        combine=P99,
    ),
    Row(
        name="stop-fresh",
        label="SIGSTOP of a leader to an ack of a fresh producer",
        unit="s",
        digits=2,
        goal=_at_most(4.0),
    ),
    Row(
        name="stop-running",
        label="SIGSTOP of a leader to the next ack, socket.timeout.ms=3000",
        unit="s",
        digits=2,
        goal=_at_most(6.0),
    ),
    Row(
        name="stop-defaults",
        label="SIGSTOP of a leader to the next ack, client's defaults",
        unit="s",
        digits=2,
    ),
    Row(name="first-write", label="command to first acked write", unit="s", digits=2, goal=_at_most(1.0)),
    Row(name="memory-idle", label="memory per broker, idle", unit="MB", digits=0, goal=_at_most(45)),
    Row(
        name="memory-load",
        label="memory per broker, under 1 KiB load",
        unit="MB",
        digits=0,
        goal=_at_most(150),
    ),
    Row(
        name="idle-10", label="idle processor use, 10 topics", unit="% of a core", digits=2, goal=_at_most(1)
    ),
    Row(
        name="idle-1000",
        label="idle processor use, 1,000 partitions",
        unit="% of a core",
        digits=2,
        goal=_at_most(5),
    ),
    Row(
        name="slow-fsync",
        label="500 outstanding, fsync + 5 ms against plain",
        unit="x",
        digits=2,
        goal=Goal(bound=0.5, at_least=True),
    ),
    Row(
        name="elections", label="elections under full load", unit="", digits=0, goal=_at_most(0), combine=sum
    ),
)
