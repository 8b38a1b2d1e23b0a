"""What the raft room is told of a broker's options."""

from __future__ import annotations

from dataclasses import fields

from tidings.config.options import Config
from tidings.node.raft_options import raft_config
from tidings.raft.config import RaftConfig


def test_every_option_of_the_name_is_handed_over() -> None:
    config = Config(election_timeout_ms_min=700, election_timeout_ms_max=900, beat_interval_ms=50)

    options = raft_config(config)

    for each in fields(RaftConfig):
        if hasattr(config, each.name):
            assert getattr(options, each.name) == getattr(config, each.name), each.name
    assert options.election_timeout_ms_min == 700
