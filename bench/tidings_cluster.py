"""Tidings as a measured system: three supervised brokers on loopback, as `tidings up` starts them.

The one rule: it is started by the command that users type, with its defaults. Must not know: measurements, or
anything inside Tidings; the ready line is all it reads. Tests: tests/bench/test_tidings_cluster.py.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import psutil

from bench import processes
from bench.systems import BROKERS, Broker

START_S_MAX: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One broker of the ready line: who it is and the command that starts it again."""

    broker: Broker
    folder: Path
    argv: tuple[str, ...]


def members(ready_line: str) -> dict[int, Member]:
    """The brokers that `tidings up --json` announces in its one line."""
    try:
        ready = json.loads(ready_line)
        assert ready["event"] == "ready", ready
        found = [
            Member(
                broker=Broker(id=entry["id"], pid=entry["pid"], address=entry["kafka"]),
                folder=Path(entry["data"]),
                argv=tuple(entry["argv"]),
            )
            for entry in ready["brokers"]
        ]
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise processes.StartError(f"not a ready line: {ready_line!r}") from error
    return {member.broker.id: member for member in found}


class Tidings:
    """Implements bench.systems.System."""

    name = "tidings"

    def __init__(self, *, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._folder: Path | None = None
        self._supervisor: subprocess.Popen[str] | None = None
        self._members: dict[int, Member] = {}
        self._started: dict[int, psutil.Process] = {}
        self._by_hand: list[subprocess.Popen[str]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(member.broker.address for member in self._members.values())

    def prepare(self) -> None:
        """Nothing to download or format; only a place for the logs."""
        self._folder = Path(tempfile.mkdtemp(prefix="tidings-bench-"))

    def start(self) -> None:
        command = str(Path(sys.executable).with_name("tidings"))
        argv = [
            command,
            "up",
            "--ephemeral",
            "--brokers",
            str(BROKERS),
            "--kafka-port",
            "0",
            "--no-restart",
            "--json",
        ]
        self._supervisor = processes.start(
            argv, log=self._log(), environment=self._environment, stdout_piped=True
        )
        assert self._supervisor.stdout is not None
        line = _line(self._supervisor.stdout, seconds_max=START_S_MAX)
        if not line:
            raise processes.StartError(f"`tidings up` was not ready: {processes.last_lines(self._log())}")
        self._members = members(line)
        self._started = {
            number: psutil.Process(member.broker.pid) for number, member in self._members.items()
        }

    def stop(self) -> None:
        for process in self._by_hand:
            processes.end(process)
        for broker_process in self._started.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                broker_process.resume()
        if self._supervisor is not None:
            processes.end(self._supervisor)
        for broker_process in self._started.values():
            processes.end_stray(broker_process)
        folders = [member.folder for member in self._members.values()]
        for folder in [*folders, self._folder]:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def brokers(self) -> tuple[Broker, ...]:
        return tuple(
            Broker(id=number, pid=self._started[number].pid, address=member.broker.address)
            for number, member in sorted(self._members.items())
        )

    def restart(self, broker_id: int) -> None:
        member = self._members[broker_id]
        with contextlib.suppress(psutil.NoSuchProcess):
            self._started[broker_id].wait(processes.STOP_S_MAX)
        process = processes.start(member.argv, log=self._log(), environment=self._environment)
        self._by_hand.append(process)
        self._started[broker_id] = psutil.Process(process.pid)
        processes.wait_until(
            lambda: processes.accepts_connections(member.broker.address),
            seconds_max=START_S_MAX,
            what=f"broker {broker_id} at {member.broker.address} after its restart",
        )

    def _log(self) -> Path:
        assert self._folder is not None, "prepare() comes first"
        return self._folder / "up.log"


def _line(stream: IO[str], *, seconds_max: float) -> str:
    """The stream's first line, or nothing when it ended or stayed silent."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline() if selector.select(seconds_max) else ""
