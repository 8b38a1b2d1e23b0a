"""Cluster: the brokers that the stock clients talk to, real processes of our own or somebody else's.

The one rule: it is started by the command that users type, and ended by its process id.
Must not know: clients.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import processes
from bench.tidings_cluster import members

BROKERS: Final = 3
READY_S_MAX: Final = 30.0
FOREIGN_CLUSTER: Final = "TIDINGS_TEST_KAFKA"
"""Environment variable: the address of a running cluster, which may be Apache Kafka, to test instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the brokers are. `pids` is empty and `log` is None where they are not ours to look into."""

    bootstrap: str
    pids: Mapping[str, int]
    log: Path | None

    @property
    def addresses(self) -> list[str]:
        return self.bootstrap.split(",")

    def events(self) -> list[dict[str, object]]:
        """What the brokers have logged so far, one event each."""
        if self.log is None:
            return []
        return [json.loads(line) for line in _json_lines(self.log)]


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """The cluster that the environment names, or one of three brokers that lives as long as the block."""
    foreign = os.environ.get(FOREIGN_CLUSTER)
    if foreign:
        yield Cluster(bootstrap=foreign, pids={}, log=None)
        return
    log = folder / "cluster.log"
    argv = [sys.executable, "-m", "tidings", "up", "--ephemeral", "--brokers", str(BROKERS)]
    argv += ["--data", str(folder), "--kafka-port", "0", "--no-restart", "--json"]
    # No event may be held back: tests count them.
    argv += ["--set", "log_format=json", "--set", "log_events_per_second_max=1000000"]
    supervisor = processes.start(argv, log=log, environment={})
    try:
        processes.wait_until(
            lambda: supervisor.poll() is not None or bool(_ready_line(log)),
            seconds_max=READY_S_MAX,
            what="`tidings up` taking writes",
        )
        if not _ready_line(log):
            raise processes.StartError(f"`tidings up` ended: {processes.last_lines(log)}")
        brokers = [member.broker for member in members(_ready_line(log)).values()]
        yield Cluster(
            bootstrap=",".join(broker.address for broker in brokers),
            pids={broker.address: broker.pid for broker in brokers},
            log=log,
        )
    finally:
        processes.end(supervisor)


def _ready_line(log: Path) -> str:
    lines = _json_lines(log)
    return next((line for line in lines if json.loads(line).get("event") == "ready"), "")


def _json_lines(log: Path) -> list[str]:
    """Whole lines of JSON; a line that is still being written has no end yet."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("{") and line.endswith("}")]
