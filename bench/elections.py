"""Elections: how often leaders change while a cluster is loaded to the full and nothing is wrong with it.

The one rule: leader epochs are read as any client can read them, before and after. Must not know: brokers or
processes. Tests: none of its own; clients.leader_epochs is what it trusts (tests/bench/test_clients.py).
"""

from __future__ import annotations

import time
from typing import Final

from bench import clients, loads

PIECE_S_MAX: Final = 30.0
"""How long a topic lives before the next one is loaded: minutes of full load would fill the disk."""


def elections_under_load(bootstrap: str, *, minutes: float) -> int:
    """Leader changes among the loaded topics and one idle topic that is there from beginning to end."""
    idle_topic = clients.create_topic(bootstrap)
    idle_before = clients.leader_epochs(bootstrap, idle_topic)
    count = 0
    deadline = time.perf_counter() + minutes * 60.0
    while (rest_s := deadline - time.perf_counter()) > 0:
        topic = clients.create_topic(bootstrap)
        before = clients.leader_epochs(bootstrap, topic)
        loads.produce_batched(bootstrap, topic, message_bytes=1024, seconds=min(rest_s, PIECE_S_MAX))
        count += clients.leader_epochs(bootstrap, topic) - before
        clients.delete_topic(bootstrap, topic)
    clients.write_once_everywhere(clients.producer(bootstrap), idle_topic, clients.PARTITIONS)
    return count + clients.leader_epochs(bootstrap, idle_topic) - idle_before
