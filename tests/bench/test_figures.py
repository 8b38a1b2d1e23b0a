"""Quantiles, medians and rates of known samples."""

import pytest

from bench.figures import Latency, Rate, median, quantile


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0), (0.01, 1.0)]
)
def test_a_quantile_is_the_smallest_sample_that_covers_its_share(share: float, expected: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == expected


@pytest.mark.parametrize("share", [0.0, 1.1, -0.5])
def test_a_share_outside_its_range_is_our_mistake(share: float) -> None:
    with pytest.raises(AssertionError):
        quantile([1.0], share)


def test_there_is_no_quantile_of_nothing() -> None:
    with pytest.raises(AssertionError):
        quantile([], 0.5)


def test_the_median_is_the_middle_sample_or_between_the_middle_two() -> None:
    assert median([9.0, 1.0, 5.0]) == 5.0
    assert median([9.0, 1.0, 5.0, 6.0]) == 5.5


def test_a_rate_counts_per_second() -> None:
    rate = Rate(count=300, seconds=1.5)

    assert rate.per_second == 200.0
    assert str(rate) == "200 msg/s (300 in 1.50 s)"


def test_a_latency_keeps_the_quantiles_of_its_samples() -> None:
    latency = Latency.of([float(sample) for sample in range(1, 101)])

    assert (latency.count, latency.p50_ms, latency.p99_ms, latency.max_ms) == (100, 50.0, 99.0, 100.0)
