"""Outcome: what applying one command to the cluster's metadata came to.

The one rule: every broker that applies the same command at the same place of the log comes to the same
outcome.
It must not know the commands (commands.py) nor the state (cluster.py). Tests: tests/broker/test_cluster.py
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`groups` are those whose placement was made, changed or removed: whoever runs the groups looks them up
    again. `changes_settings`: of topics, of `topic_id` alone if there is one. `value` is what the command
    allots: the first producer id of a block; 0 elsewhere."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    value: int = 0
    groups: tuple[int, ...] = ()
    changes_settings: bool = False
    topic_id: bytes | None = None
