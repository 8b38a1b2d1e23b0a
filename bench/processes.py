"""Processes: starting and ending what a benchmark needs, so that nothing outlives it.

The one rule: whatever is started here is ended by its own process group and waited for; nothing is ever
looked up by name. Must not know: Kafka, Tidings, measurements. Tests: tests/bench/test_processes.py.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

STOP_S_MAX: Final = 20.0
"""How long a process may take to end after SIGTERM; then it is killed."""
PORTS: Final = range(20_000, 32_000)
"""Below the range the kernel hands out: a broker that was killed finds its port free when it comes back."""


class StartError(Exception):
    """A process ended or said nothing before it was ready."""


def start(
    argv: Sequence[str], *, log: Path, environment: Mapping[str, str], stdout_piped: bool = False
) -> subprocess.Popen[str]:
    """Starts `argv` in a process group of its own, its words appended to `log`."""
    with log.open("a") as sink:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout_piped else sink,
            stderr=sink,
            env={**os.environ, **environment},
            start_new_session=True,
            text=True,
        )


def end(process: subprocess.Popen[str], *, seconds_max: float = STOP_S_MAX) -> None:
    """Asks the process to end, then kills what is left of its group."""
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds_max)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def end_stray(process: psutil.Process) -> None:
    """Kills a process that its own parent left behind. psutil compares start times, so no stranger is hit."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, below the ephemeral range."""
    found: list[int] = []
    for port in random.sample(PORTS, 50 * count):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise StartError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def wait_until(met: Callable[[], bool], *, seconds_max: float, what: str, pause_s: float = 0.01) -> None:
    """Returns once `met()`; raises StartError naming `what` when it was not in time."""
    deadline = time.perf_counter() + seconds_max
    while not met():
        if time.perf_counter() > deadline:
            raise StartError(f"{what}: not within {seconds_max:g} s")
        time.sleep(pause_s)


def accepts_connections(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except OSError:
        return False


def last_lines(log: Path, count: int = 5) -> str:
    """What a process said before it gave up, for the error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""
