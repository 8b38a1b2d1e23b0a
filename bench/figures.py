"""Figures: what a measurement yields and how several become one.

The one rule: a figure is computed from samples and printed; nothing here measures, waits or knows a system.
Tests: tests/bench/test_figures.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of all samples do not exceed (nearest rank)."""
    assert samples, share
    assert 0.0 < share <= 1.0, share
    ordered = sorted(samples)
    return ordered[math.ceil(share * len(ordered)) - 1]


def median(samples: Sequence[float]) -> float:
    """The middle sample, or the mean of the two in the middle."""
    assert samples
    ordered = sorted(samples)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many messages in how long."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    def __str__(self) -> str:
        return f"{self.per_second:,.0f} msg/s ({self.count:,} in {self.seconds:.2f} s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long single messages took."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, samples_ms: Sequence[float]) -> Latency:
        return cls(
            count=len(samples_ms),
            p50_ms=quantile(samples_ms, 0.50),
            p99_ms=quantile(samples_ms, 0.99),
            max_ms=max(samples_ms),
        )

    def __str__(self) -> str:
        quantiles = f"p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f} ms, max {self.max_ms:.1f} ms"
        return f"{quantiles} ({self.count:,} messages)"
