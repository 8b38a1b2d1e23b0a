"""Children: a broker as a process of ours: how it is started, how it says that it is ready, how it is ended.

Rule: a broker never outlives us. Its stdin is a pipe that nobody writes to; when we end, however we end,
the pipe does too, and the broker stops. On its stdout it says, in one line of JSON, that it is ready.
Must not know: when to start or stop one (supervisor.py). Tests: tests/runtime/test_children.py
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, cast

from tidings.runtime.supervisor import BrokerPlan, Exited, Message, Ready

LINE_BYTES_MAX = 64 * 1024
# Descriptors as the broker sees them: any system can hand over these two.
FLAGS_OF_PIPES = ("--parent-fd", "0", "--ready-fd", "1")


class BrokerProcess:
    """A started process; what comes of it is told to `tell`, from a thread of its own."""

    def __init__(self, plan: BrokerPlan, tell: Callable[[Message], None]) -> None:
        self._plan = plan
        self._tell = tell
        command = [*plan.argv, *FLAGS_OF_PIPES]
        if sys.platform == "win32":
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
            )
        else:
            # A group of its own: Ctrl-C reaches us alone, and we end the brokers in order.
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        name = f"broker-{plan.broker_id}-{self._popen.pid}"
        threading.Thread(target=self._watch, name=name, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask_to_stop(self) -> None:
        """SIGTERM, and SIGCONT for a paused one; on Windows, which knows neither, the end of its stdin."""
        if sys.platform == "win32":
            cast(BinaryIO, self._popen.stdin).close()
        else:
            self._popen.send_signal(signal.SIGTERM)
            self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._popen.kill()

    def _watch(self) -> None:
        stdout = cast(BinaryIO, self._popen.stdout)
        while line := stdout.readline(LINE_BYTES_MAX):
            if _says_ready(line):
                self._tell(Ready(broker_id=self._plan.broker_id, pid=self.pid))
        code = self._popen.wait()
        stdout.close()
        cast(BinaryIO, self._popen.stdin).close()
        self._tell(Exited(broker_id=self._plan.broker_id, pid=self.pid, code=code))


def is_alive(pid: int) -> bool:
    """Whether a process of this id exists; where the system cannot be asked without harm, no."""
    if pid <= 0 or sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _says_ready(line: bytes) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("event") == "ready"
