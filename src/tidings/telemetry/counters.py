"""Counters: what a broker has done since it started, as plain numbers.

Rule: counting is one addition to an attribute, cheap enough for every request; readers take a copy.
Must not know: who counts, or how it is shown. Tests: tests/telemetry/test_counters.py
"""

from dataclasses import asdict, dataclass


@dataclass(slots=True, kw_only=True)
class Counters:
    """All only grow."""

    connections_opened: int = 0
    connections_closed: int = 0
    connections_refused: int = 0
    requests: int = 0
    request_bytes: int = 0
    answer_bytes: int = 0
    requests_malformed: int = 0
    reads_paused: int = 0
    flushes: int = 0
    flush_bytes: int = 0
    elections_won: int = 0

    def snapshot(self) -> dict[str, int]:
        return asdict(self)
