"""`tidings up` with processes that only look like brokers: what it prints, keeps, restarts and leaves."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypedDict

import psutil
import pytest

from tests.fakes import tidings_with_fake_brokers
from tidings.config.exits import Exit
from tidings.storage.lock import LOCK_NAME

SECONDS_MAX = 20
PROGRAM = Path(tidings_with_fake_brokers.__file__)


class BrokerOfLine(TypedDict):
    """A broker as the line for programs names it."""

    id: int
    pid: int
    kafka: str
    peer: str
    data: str
    argv: list[str]


class ReadyLine(TypedDict):
    """The line for programs."""

    event: str
    kafka: str
    brokers: list[BrokerOfLine]
    seconds: float


class Up:
    """A running `tidings up`."""

    def __init__(
        self, folder: Path, *flags: str, environment: dict[str, str], stderr: IO[bytes] | None = None
    ) -> None:
        self._stderr = (folder / f"stderr-{len(list(folder.iterdir()))}.txt").open("w+")
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "up", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr or self._stderr,
            cwd=folder,
            env=variables | environment,
            bufsize=0,  # so that select() knows of every byte that is not read yet
        )

    def line(self) -> str:
        """The next line of stdout."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], SECONDS_MAX)
        assert readable, self.errors()
        return self.process.stdout.readline().decode()

    def ready(self) -> ReadyLine:
        line = self.line()
        assert line, self.errors()
        said: ReadyLine = json.loads(line)
        return said

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        return self.process.wait(SECONDS_MAX)

    def errors(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._stderr.close()


Start = Callable[..., Up]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Start]:
    """Starts `tidings up` with flags, in a folder and a home of its own; whatever still runs is ended."""
    started: list[Up] = []

    def start(*flags: str, stderr: IO[bytes] | None = None, **environment: str) -> Up:
        started.append(Up(tmp_path, *flags, environment=environment, stderr=stderr))
        return started[-1]

    yield start
    for each in started:
        each.close()


def until(condition: Callable[[], bool], process: psutil.Process) -> None:
    """Waits for a condition that processes bring about, by waiting for one of them in small steps."""
    for _ in range(SECONDS_MAX * 50):
        if condition():
            return
        try:
            process.wait(timeout=0.02)
        except psutil.TimeoutExpired:
            continue
    raise AssertionError("the condition did not come about in time")


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_is_ready_in_one_line_and_stops_cleanly(up: Start, number: signal.Signals) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json")

    ready = running.ready()
    code = running.end(number)

    assert ready["event"] == "ready"
    assert set(ready) == {"event", "kafka", "brokers", "seconds"}
    brokers = ready["brokers"]
    assert [each["id"] for each in brokers] == [1, 2, 3]
    assert ready["kafka"] == ",".join(each["kafka"] for each in brokers)
    assert all(set(each) == {"id", "pid", "kafka", "peer", "data", "argv"} for each in brokers)
    assert code == 0, running.errors()
    assert running.line() == ""
    assert not any(is_running(each["pid"]) for each in brokers)


def test_what_is_ephemeral_is_gone_at_the_end(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json")
    folder = Path(running.ready()["brokers"][0]["data"]).parent
    was_there = folder.exists()

    running.end()

    assert was_there
    assert not folder.exists()


def test_what_is_ephemeral_can_be_put_on_a_disk_of_choice(up: Start, tmp_path: Path) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json", "--data", str(tmp_path / "disk"))

    data = Path(running.ready()["brokers"][0]["data"])
    running.end()

    assert data.is_relative_to(tmp_path / "disk")
    assert list((tmp_path / "disk").iterdir()) == []


def test_people_are_told_where_it_is_and_how_to_use_it(up: Start, tmp_path: Path) -> None:
    running = up("--brokers", "1", "--kafka-port", "0")

    lines = [running.line() for _ in range(8)]
    running.end()

    text = "".join(lines)
    folder = tmp_path / ".local" / "share" / "tidings" / "cluster"
    assert "1 broker is ready after" in lines[0]
    assert f"data     {folder} (kept between runs)" in text
    assert "pub greetings hello --kafka 127.0.0.1:" in text
    assert "sub greetings --from earliest --kafka 127.0.0.1:" in text
    assert (folder / "broker-1").is_dir()


def test_on_a_terminal_what_is_all_right_is_not_told(up: Start, tmp_path: Path) -> None:
    main, side = pty.openpty()
    with os.fdopen(main, "rb", buffering=0) as terminal, os.fdopen(side, "wb", buffering=0) as stderr:
        running = up("--ephemeral", "--brokers", "1", "--kafka-port", "0", "--json", stderr=stderr)
        running.ready()
        running.end()
        stderr.write(b"the end")

        told = terminal.read(4096)

    assert told == b"the end"


def test_a_cluster_keeps_its_number_of_brokers_and_its_ports(up: Start, tmp_path: Path) -> None:
    flags = ("--data", str(tmp_path / "kept"), "--kafka-port", "0", "--json")
    first = up(*flags, "--brokers", "1")
    before = first.ready()
    first.end()

    refused = up(*flags, "--brokers", "3")
    code = refused.ended()
    again = up(*flags)
    after = again.ready()
    again.end()

    assert code == Exit.USAGE
    assert "holds a cluster of 1 broker, not 3" in refused.errors()
    assert "--brokers 1" in refused.errors()
    assert after["kafka"] == before["kafka"]


def test_a_second_one_in_the_same_folder_names_the_first(up: Start, tmp_path: Path) -> None:
    flags = ("--data", str(tmp_path / "kept"), "--kafka-port", "0", "--json")
    first = up(*flags)
    ready = first.ready()

    second = up(*flags)
    code = second.ended()

    assert code == Exit.FOLDER_LOCKED
    assert f"process {first.process.pid}" in second.errors()
    assert f"it serves {ready['kafka']}" in second.errors()
    assert "--ephemeral --kafka-port 0" in second.errors()


def test_a_port_that_is_taken_is_told_before_anything_runs(up: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        running = up("--ephemeral", "--brokers", "1", "--kafka-port", str(port), "--json")

        code = running.ended()

    assert code == Exit.PORT_IN_USE
    assert f"port {port} is in use, and broker 1 needs it" in running.errors()
    assert "broker_started" not in running.errors()


def test_a_killed_broker_is_started_again(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json")
    first = running.ready()["brokers"][0]
    lock = Path(first["data"]) / LOCK_NAME
    killed = psutil.Process(first["pid"])

    killed.kill()
    supervisor = psutil.Process(running.process.pid)
    until(lambda: lock.read_text().strip() not in ("", str(killed.pid)), supervisor)

    assert running.end() == 0


def test_a_broker_started_by_hand_takes_the_place_of_a_dead_one(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json", "--no-restart")
    first = running.ready()["brokers"][0]
    lock = Path(first["data"]) / LOCK_NAME
    killed = psutil.Process(first["pid"])
    killed.kill()
    until(lambda: not is_running(killed.pid), psutil.Process(running.process.pid))

    by_hand = subprocess.Popen(first["argv"], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    until(lambda: lock.read_text().strip() == str(by_hand.pid), psutil.Process(by_hand.pid))
    by_hand.terminate()

    assert by_hand.wait(SECONDS_MAX) == 0
    assert running.end() == 0


def test_brokers_do_not_outlive_a_supervisor_that_is_killed(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json")
    brokers = [psutil.Process(each["pid"]) for each in running.ready()["brokers"]]

    running.process.kill()
    _, left = psutil.wait_procs(brokers, timeout=SECONDS_MAX)

    assert left == []


@pytest.mark.parametrize("code", [Exit.IDENTITY, Exit.PORT_IN_USE, Exit.FAILED])
def test_a_broker_that_cannot_start_ends_it_with_its_code(up: Start, code: Exit) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json", FAKE_BROKER=f"--code {int(code)}")

    ended = running.ended()

    assert ended == code
    assert running.line() == ""
    assert f"exit code {int(code)}" in running.errors()


def test_brokers_that_are_never_ready_end_it_when_the_time_is_up(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--set", "ready_ms_max=300", FAKE_BROKER="--silent")

    assert running.ended() == Exit.FAILED
    assert "not ready in time: broker 1, broker 2, broker 3" in running.errors()


def test_brokers_that_do_not_stop_are_killed_and_it_ends_well(up: Start) -> None:
    running = up(
        "--ephemeral", "--kafka-port", "0", "--json", "--set", "stop_ms_max=200", FAKE_BROKER="--stubborn"
    )
    running.ready()

    assert running.end() == 0
    assert running.errors().count("broker_killed") == 3


def test_events_are_one_per_line_on_stderr(up: Start) -> None:
    running = up("--ephemeral", "--kafka-port", "0", "--json")
    running.ready()
    running.end()

    events = [json.loads(line)["event"] for line in running.errors().splitlines()]
    assert sorted(set(events)) == ["broker_ready", "broker_started"]
