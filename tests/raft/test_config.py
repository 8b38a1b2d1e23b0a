"""The limits of consensus hold together."""

from __future__ import annotations

import pytest

from tidings.raft.config import RaftConfig


def test_the_defaults_are_consistent() -> None:
    config = RaftConfig()

    assert config.beat_interval_ms * 6 < config.election_timeout_ms_min


def test_beats_that_do_not_fit_into_an_election_timeout_are_refused() -> None:
    with pytest.raises(AssertionError):
        RaftConfig(election_timeout_ms_min=200, election_timeout_ms_max=400, beat_interval_ms=150)


def test_a_shortest_timeout_above_the_longest_is_refused() -> None:
    with pytest.raises(AssertionError):
        RaftConfig(election_timeout_ms_min=3000)
