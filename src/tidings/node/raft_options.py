"""Raft options: what the options of a broker say to the raft room, which imports nothing.

Its one rule: every option is handed over by name, none is made up. Tests: tests/node/test_raft_options.py
"""

from __future__ import annotations

from tidings.config.options import Config
from tidings.raft.config import RaftConfig


def raft_config(config: Config) -> RaftConfig:
    """The raft room's own value of these options."""
    return RaftConfig(
        election_timeout_ms_min=config.election_timeout_ms_min,
        election_timeout_ms_max=config.election_timeout_ms_max,
        beat_interval_ms=config.beat_interval_ms,
        append_bytes_max=config.append_bytes_max,
        inflight_bytes_max=config.inflight_bytes_max,
        uncommitted_bytes_max=config.uncommitted_bytes_max,
        start_piece_bytes=config.start_piece_bytes,
        transfer_timeout_ms=config.transfer_timeout_ms,
    )
