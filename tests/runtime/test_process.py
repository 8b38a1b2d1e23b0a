"""A broker's process ends for a reason: the exit code is one of ours, and the last event says it in words."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.identities import make_newer
from tidings.config.exits import Exit
from tidings.config.options import Config
from tidings.runtime import process
from tidings.runtime.data import DataFolder
from tidings.runtime.process import run_broker, secret_of
from tidings.runtime.secret import SECRET_BYTES, SecretError, make_secret

SECONDS_MAX = 30.0


@pytest.fixture(autouse=True)
def process_wide_settings() -> Iterator[None]:
    """What a broker's process sets for itself is not for the tests behind it."""
    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval_s)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def config(folder: Path) -> Config:
    return Config(data_folder=folder, kafka_port=0, peer_port=0, log_format="json")


def last_event(told: str) -> dict[str, str]:
    event: dict[str, str] = json.loads(told.splitlines()[-1])
    return event


class Parent:
    """Reads the line that a broker tells when it is ready, then ends."""

    def __init__(self) -> None:
        self.line: dict[str, object] = {}
        self._ready_read, self.ready_fd = os.pipe()
        self.parent_fd, self._held = os.pipe()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with os.fdopen(self._ready_read) as stream:
            self.line = json.loads(stream.readline())
        os.close(self._held)

    def join(self) -> None:
        self._thread.join(SECONDS_MAX)
        os.close(self.parent_fd)


# What keeps it from starting


def test_a_folder_that_is_in_use_is_refused_with_the_pid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holder = DataFolder.take(config(tmp_path))

    code = run_broker(config(tmp_path), ready_fd=None, parent_fd=None)

    assert code == Exit.FOLDER_LOCKED
    told = last_event(capsys.readouterr().err)
    assert told["event"] == "broker_stopped"
    assert told["reason"].endswith(f"is in use by process {os.getpid()}")
    holder.release()


def test_a_port_in_use_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = replace(config(tmp_path), kafka_port=taken.getsockname()[1])

        code = run_broker(wanted, ready_fd=None, parent_fd=None)

    assert code == Exit.PORT_IN_USE
    assert "cannot listen" in last_event(capsys.readouterr().err)["reason"]


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DataFolder.take(config(tmp_path)).release()
    make_newer(tmp_path, format_version=99)

    code = run_broker(config(tmp_path), ready_fd=None, parent_fd=None)

    assert code == Exit.FORMAT_TOO_NEW
    assert "99" in last_event(capsys.readouterr().err)["reason"]


def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    DataFolder.take(config(tmp_path)).release()

    code = run_broker(replace(config(tmp_path), broker_id=2), ready_fd=None, parent_fd=None)

    assert code == Exit.IDENTITY


def test_a_folder_that_cannot_be_made_is_the_disk_s_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    code = run_broker(config(tmp_path / "file" / "data"), ready_fd=None, parent_fd=None)

    assert code == Exit.DISK_FAILED


# The secret


def test_brokers_that_are_several_need_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several = replace(config(tmp_path), join=("127.0.0.1:1", "127.0.0.1:2"))

    code = run_broker(several, ready_fd=None, parent_fd=None)

    assert code == Exit.CONFIG
    told = last_event(capsys.readouterr().err)
    assert "know each other by a secret" in told["reason"]
    assert "tidings secret FILE" in told["hint"]
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_others_can_reach_needs_a_secret(tmp_path: Path) -> None:
    with pytest.raises(SecretError):
        secret_of(replace(config(tmp_path), peer_host="10.0.0.1"))


def test_a_broker_alone_knows_nobody(tmp_path: Path) -> None:
    first, second = secret_of(config(tmp_path)), secret_of(config(tmp_path))

    assert len(first) == SECRET_BYTES
    assert first != second


def test_the_secret_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    make_secret(path)

    assert secret_of(replace(config(tmp_path), secret_file=path)) == bytes.fromhex(path.read_text())


# Limits of the system


@pytest.mark.parametrize(
    ("files_max", "connections_max"), [(0, 10_000), (1 << 18, 10_000), (4_096, 2_896), (1_024, 512)]
)
def test_connections_leave_the_storage_its_files(
    tmp_path: Path, files_max: int, connections_max: int
) -> None:
    limited = process._within_open_files(config(tmp_path), files_max)

    assert limited.connections_max == connections_max


# Its life


def test_it_tells_its_parent_when_it_serves_and_ends_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = Parent()

    code = run_broker(config(tmp_path), ready_fd=parent.ready_fd, parent_fd=parent.parent_fd)
    parent.join()

    assert code == Exit.OK
    assert (parent.line["event"], parent.line["id"], parent.line["pid"]) == ("ready", 1, os.getpid())
    assert str(parent.line["kafka"]).startswith("127.0.0.1:")
    assert last_event(capsys.readouterr().err)["reason"] == "asked to"


def test_a_parent_that_ends_before_it_serves_ends_it_too(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(write)
    waiting = replace(config(tmp_path), join=("127.0.0.1:1",))

    code = run_broker(waiting, ready_fd=None, parent_fd=read)

    assert code == Exit.OK
    os.close(read)


def test_a_parent_that_does_not_listen_any_more_is_no_failure(tmp_path: Path) -> None:
    read, ready_fd = os.pipe()
    os.close(read)
    parent_read, parent_write = os.pipe()
    timer = threading.Timer(0.5, os.close, [parent_write])
    timer.start()

    code = run_broker(config(tmp_path), ready_fd=ready_fd, parent_fd=parent_read)

    assert code == Exit.OK
    timer.join()
    os.close(parent_read)


def test_a_mistake_that_surfaces_while_it_serves_ends_it_and_does_not_hang(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"(?i)negative file descriptor"):
        run_broker(config(tmp_path), ready_fd=-1, parent_fd=None)

    DataFolder.take(config(tmp_path)).release()


def test_a_signal_ends_it_with_success(tmp_path: Path) -> None:
    read, ready_fd = os.pipe()
    code = (
        "import sys; from pathlib import Path; from tidings.config.options import Config;"
        "from tidings.runtime.process import run_broker;"
        "config = Config(data_folder=Path(sys.argv[1]), kafka_port=0, peer_port=0, log_format='json');"
        "sys.exit(run_broker(config, ready_fd=int(sys.argv[2]), parent_fd=None))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(ready_fd)]

    with subprocess.Popen(command, pass_fds=[ready_fd], stderr=subprocess.PIPE, text=True) as broker:
        os.close(ready_fd)
        try:
            with os.fdopen(read) as stream:
                ready = json.loads(stream.readline())
            broker.send_signal(signal.SIGTERM)
            _, told = broker.communicate(timeout=SECONDS_MAX)
        finally:
            broker.kill()

    assert ready["pid"] == broker.pid
    assert broker.returncode == Exit.OK
    assert last_event(told)["event"] == "broker_stopped"
