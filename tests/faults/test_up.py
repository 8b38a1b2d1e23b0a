"""`tidings up`: a broker started by hand with the command that it names takes its place in the cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench import processes
from tests.clients import wire
from tests.faults.cluster import EXIT_S_MAX, READY_S_MAX, wait_until
from tests.faults.traffic import running_traffic


@contextmanager
def up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:  # any: JSON
    """The supervisor's process and its ready line."""
    argv = [
        sys.executable,
        "-m",
        "tidings",
        "up",
        "--data",
        str(folder / "data"),
        "--kafka-port",
        "0",
        "--json",
    ]
    argv += ["--set", "leader_balance_interval_ms=1000"]
    log, said = folder / "up.log", folder / "up.out"
    with said.open("w") as out, log.open("w") as err:
        supervisor = subprocess.Popen([*argv, *options], stdout=out, stderr=err, text=True)
    try:
        processes.wait_until(
            lambda: said.read_text().endswith("\n"), seconds_max=READY_S_MAX, what="the ready line"
        )
        yield supervisor, json.loads(said.read_text())
    finally:
        processes.end(supervisor)


@pytest.mark.parametrize("restarts", [False, True], ids=["by hand", "by itself"])
def test_a_killed_broker_takes_its_place_again(tmp_path: Path, restarts: bool) -> None:
    with up(tmp_path, "--restart" if restarts else "--no-restart") as (supervisor, ready):
        first = ready["brokers"][0]
        with running_traffic(ready["kafka"], "events", 1) as traffic:
            psutil.Process(first["pid"]).kill()
            traffic.wait_for_progress()
            by_hand = (
                None if restarts else processes.start(first["argv"], log=tmp_path / "hand", environment={})
            )
            try:
                wait_until(lambda: 1 in leaders(first["kafka"]), "the broker serving again")
                traffic.wait_for_progress()
                traffic.settle()
            finally:
                if by_hand is not None:
                    processes.end(by_hand)
        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(EXIT_S_MAX) == 0


def leaders(address: str) -> list[int]:
    try:
        return wire.leaders(address, "events")
    except (OSError, wire.Hung):
        return []
