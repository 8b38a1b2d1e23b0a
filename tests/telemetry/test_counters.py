"""Counters are plain numbers; a snapshot does not move with them."""

from tidings.telemetry.counters import Counters


def test_a_snapshot_stays_what_it_was() -> None:
    counters = Counters()
    counters.requests += 2

    snapshot = counters.snapshot()
    counters.requests += 1

    assert snapshot["requests"] == 2
    assert counters.requests == 3
