"""What is started is ended with its children; every wait has an end and names what it waited for."""

import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench import processes
from bench.processes import StartError

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_ending_a_process_ends_its_children_too(tmp_path: Path) -> None:
    process = processes.start(
        [sys.executable, "-c", STUBBORN], log=tmp_path / "log", environment={}, stdout_piped=True
    )
    assert process.stdout is not None
    child = psutil.Process(int(process.stdout.readline()))

    processes.end(process, seconds_max=0.1)

    assert process.returncode is not None
    processes.wait_until(lambda: _is_gone(child), seconds_max=10.0, what="the end of the child")


def test_a_process_gets_the_added_environment_and_its_words_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = "import os; print(os.environ['ADDED'])"

    process = processes.start([sys.executable, "-c", program], log=log, environment={"ADDED": "yes"})
    process.wait(30)
    processes.end(process)

    assert processes.last_lines(log) == "yes"


def test_no_log_has_no_last_lines(tmp_path: Path) -> None:
    assert processes.last_lines(tmp_path / "missing") == ""


def test_free_ports_can_be_bound_and_lie_below_the_ephemeral_range() -> None:
    ports = processes.free_ports(4)

    assert len(set(ports)) == 4
    for port in ports:
        assert port in processes.PORTS
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_waiting_names_what_did_not_happen_in_time() -> None:
    with pytest.raises(StartError, match="a miracle: not within 0 s"):
        processes.wait_until(lambda: False, seconds_max=0.0, what="a miracle")


def test_waiting_ends_as_soon_as_it_is_met() -> None:
    processes.wait_until(lambda: True, seconds_max=0.0, what="the obvious")


def test_an_address_accepts_connections_only_while_something_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert processes.accepts_connections(address)

    assert not processes.accepts_connections(address)


def test_a_stray_that_is_gone_already_is_no_error() -> None:
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = psutil.Process(program.pid)
    program.communicate(timeout=30)

    processes.end_stray(process)
