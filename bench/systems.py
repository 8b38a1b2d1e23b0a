"""Systems: what every measured cluster can do, and the signals that are the same for all.

The one rule: a measurement uses a cluster only through this port, so that it cannot favour one. Must not
know: how any cluster is started. Tests: tests/bench/test_apache_kafka.py (marked long).
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Protocol

BROKERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    id: int
    pid: int
    address: str


class System(Protocol):
    """A cluster of BROKERS brokers on loopback. It can be started once; `stop` may be called at any time."""

    @property
    def name(self) -> str: ...

    @property
    def bootstrap(self) -> str:
        """All brokers' addresses, as clients want them."""
        ...

    def prepare(self) -> None:
        """What an installation does once and no start repeats: download, format."""
        ...

    def start(self) -> None:
        """Returns when clients can use the cluster."""
        ...

    def stop(self) -> None:
        """Ends every process and removes every file."""
        ...

    def brokers(self) -> tuple[Broker, ...]: ...

    def restart(self, broker_id: int) -> None:
        """Starts a killed broker again on its old data; returns when it accepts connections."""
        ...


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)


def pause(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGSTOP)


def resume(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGCONT)
