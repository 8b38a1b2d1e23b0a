"""Brokers' processes: ready by a line on stdout, stopped by a signal, and never left behind."""

import os
import queue
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.fakes import broker_process
from tidings.config.exits import Exit
from tidings.runtime.children import BrokerProcess, is_alive
from tidings.runtime.supervisor import BrokerPlan, Exited, Message, Ready

SECONDS_MAX = 20
SCRIPT = Path(broker_process.__file__)

PARENT = """
import queue, sys
from pathlib import Path
from tidings.runtime.children import BrokerProcess
from tidings.runtime.supervisor import BrokerPlan
mail = queue.SimpleQueue()
plan = BrokerPlan(broker_id=1, kafka="k", peer="p", data=Path("d"), argv=tuple(sys.argv[1:]))
child = BrokerProcess(plan, mail.put)
mail.get(timeout=20)
print(child.pid, flush=True)
mail.get(timeout=60)
"""


def plan(folder: Path, *flags: str) -> BrokerPlan:
    argv = (sys.executable, str(SCRIPT), "--id", "1", "--data", str(folder), *flags)
    return BrokerPlan(broker_id=1, kafka="127.0.0.1:1", peer="127.0.0.1:2", data=folder, argv=argv)


class Mail:
    """Messages of a process, waited for with a deadline."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.put = self._messages.put

    def next(self) -> Message:
        return self._messages.get(timeout=SECONDS_MAX)


def test_a_broker_says_that_it_is_ready_and_stops_when_asked(tmp_path: Path) -> None:
    mail = Mail()

    process = BrokerProcess(plan(tmp_path), mail.put)
    ready = mail.next()
    process.ask_to_stop()
    exited = mail.next()

    assert ready == Ready(broker_id=1, pid=process.pid)
    assert exited == Exited(broker_id=1, pid=process.pid, code=0)


def test_a_paused_broker_stops_when_asked(tmp_path: Path) -> None:
    mail = Mail()
    process = BrokerProcess(plan(tmp_path), mail.put)
    mail.next()

    os.kill(process.pid, signal.SIGSTOP)
    process.ask_to_stop()

    assert mail.next() == Exited(broker_id=1, pid=process.pid, code=0)


def test_a_stubborn_broker_is_killed(tmp_path: Path) -> None:
    mail = Mail()
    process = BrokerProcess(plan(tmp_path, "--stubborn"), mail.put)
    mail.next()

    process.ask_to_stop()
    process.kill()

    assert mail.next() == Exited(broker_id=1, pid=process.pid, code=-signal.SIGKILL)


def test_the_code_of_a_broker_that_fails_is_told(tmp_path: Path) -> None:
    mail = Mail()

    process = BrokerProcess(plan(tmp_path, "--code", str(int(Exit.IDENTITY))), mail.put)

    assert mail.next() == Exited(broker_id=1, pid=process.pid, code=Exit.IDENTITY)


def test_a_second_broker_in_one_folder_ends_with_the_code_for_it(tmp_path: Path) -> None:
    mail = Mail()
    first = BrokerProcess(plan(tmp_path), mail.put)
    mail.next()

    second = BrokerProcess(plan(tmp_path), mail.put)
    refused = mail.next()
    first.ask_to_stop()
    mail.next()

    assert refused == Exited(broker_id=1, pid=second.pid, code=Exit.FOLDER_LOCKED)


def test_ctrl_c_in_the_terminal_does_not_reach_a_broker(tmp_path: Path) -> None:
    mail = Mail()
    process = BrokerProcess(plan(tmp_path), mail.put)
    mail.next()

    group = os.getpgid(process.pid)
    process.ask_to_stop()
    mail.next()

    assert group != os.getpgid(0)


def test_a_broker_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, *plan(tmp_path).argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        broker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()

        broker.wait(timeout=SECONDS_MAX)

    assert not broker.is_running()


def test_a_program_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    missing = BrokerPlan(broker_id=1, kafka="", peer="", data=tmp_path, argv=(str(tmp_path / "nothing"),))

    with pytest.raises(FileNotFoundError):
        BrokerProcess(missing, Mail().put)


def test_what_is_no_ready_line_is_not_taken_for_one(tmp_path: Path) -> None:
    mail = Mail()
    code = "print('hello'); print('[1]'); print('{\"event\": \"started\"}'); print('{}')"
    talker = BrokerPlan(broker_id=1, kafka="", peer="", data=tmp_path, argv=(sys.executable, "-c", code))

    process = BrokerProcess(talker, mail.put)

    assert mail.next() == Exited(broker_id=1, pid=process.pid, code=0)


def test_processes_are_alive_until_they_end() -> None:
    assert is_alive(os.getpid())
    assert is_alive(1)
    assert not is_alive(0)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert not is_alive(ended.pid)
