"""Process: `tidings broker`: one broker, in the foreground, until a signal or a failure ends it.

Its one rule: the exit code says why it ended (config/exits.py), and the last event says it in words.
Tests: tests/runtime/test_process.py
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tidings.config.exits import Exit
from tidings.config.options import Config, is_loopback
from tidings.runtime import notify
from tidings.runtime.data import DataFolder
from tidings.runtime.limits import raise_open_files, segment_files_max
from tidings.runtime.loop import new_loop
from tidings.runtime.secret import SECRET_BYTES, SecretError, read_secret
from tidings.runtime.server import BrokerServer, BrokerStopped
from tidings.storage.errors import DiskFailed, FolderLocked, FormatTooNew, StorageError
from tidings.telemetry.events import EventLog, open_log

# A thread that waits for the interpreter gets it within this: the disk thread must not wait for a long
# decode.
_SWITCH_INTERVAL_S = 0.0005
_SEGMENT_THREADS = 2
_FILES_BESIDE = 176  # the log's files, peers: with room to spare
# Objects made at the start live on; collecting young ones seldom keeps pauses rare and short.
_GC_THRESHOLDS = (50_000, 20, 50)


def run_broker(config: Config, *, ready_fd: int | None, parent_fd: int | None) -> int:
    """Run one broker until it ends; the exit code. `ready_fd` gets one line of JSON when it serves; the end
    of what `parent_fd` reads ends it too."""
    log = open_log(config).bind(broker=config.broker_id)
    config = _within_open_files(config, raise_open_files())
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        secret = secret_of(config)
        data = DataFolder.take(config)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_serve(config, data, secret, log, ready_fd, parent_fd))
    except SecretError as error:
        log.error("broker_stopped", reason=str(error), hint=error.hint)
        return exit_of(error)
    except (StorageError, OSError) as error:
        log.error("broker_stopped", reason=str(error))
        return exit_of(error)


def secret_of(config: Config) -> bytes:
    """What brokers of this cluster know each other by. One that has no others knows nobody."""
    if config.secret_file is not None:
        return read_secret(config.secret_file)
    if len(config.join) > 1 or not is_loopback(config.peer_host):
        raise SecretError(
            "brokers of a cluster know each other by a secret, and no file with it is given",
            "make one with `tidings secret FILE`, copy it to every machine, and add --secret-file FILE",
        )
    return os.urandom(SECRET_BYTES)


def exit_of(error: Exception) -> Exit:
    """The exit code for what kept a broker from starting."""
    match error:
        case FolderLocked():
            return Exit.FOLDER_LOCKED
        case FormatTooNew():
            return Exit.FORMAT_TOO_NEW
        case SecretError():
            return Exit.CONFIG
        case DiskFailed() | OSError():
            return Exit.DISK_FAILED
    return Exit.IDENTITY


def _within_open_files(config: Config, files_max: int) -> Config:
    """As many connections as leave the storage its files: a broker must never fail to open one of its own."""
    of_storage = _SEGMENT_THREADS * segment_files_max(files_max) + _FILES_BESIDE
    connections_max = max(files_max - of_storage, files_max // 2)
    if not files_max or config.connections_max <= connections_max:
        return config
    return replace(config, connections_max=connections_max)


async def _serve(
    config: Config,
    data: DataFolder,
    secret: bytes,
    log: EventLog,
    ready_fd: int | None,
    parent_fd: int | None,
) -> int:
    loop = asyncio.get_running_loop()
    server = BrokerServer(config, data, secret, log)
    loop.set_exception_handler(lambda _, context: server.failed(context))
    ended = _end_of_signals(loop, parent_fd)
    try:
        await _live(server, ended, ready_fd)
    except BrokerStopped as stopped:
        await server.kill()
        log.error("broker_stopped", reason=stopped.reason)
        return stopped.code
    finally:
        await server.kill()  # whatever surfaced: a loop on which a broker still works cannot be closed
    log.event("broker_stopped", reason="asked to")
    return Exit.OK


async def _live(server: BrokerServer, ended: asyncio.Future[None], ready_fd: int | None) -> None:
    """Returns when the broker has stopped because it was asked to."""
    starting = asyncio.get_running_loop().create_task(server.start())
    await _first_of(starting, ended)
    if starting.done():
        starting.result()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        _tell_ready(server, ready_fd)
        await _first_of(server.stopped, ended)
    else:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    if server.stopped.done():
        raise server.stopped.result()
    notify.notify(notify.STOPPING, os.environ)
    await server.stop()


async def _first_of(*futures: asyncio.Future[Any]) -> None:  # any: they have different results
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


def _tell_ready(server: BrokerServer, ready_fd: int | None) -> None:
    notify.notify(notify.READY, os.environ)
    if ready_fd is None:
        return
    line = {
        "event": "ready",
        "id": server.config.broker_id,
        "pid": os.getpid(),
        "kafka": str(server.kafka_address),
        "peer": str(server.peer_address),
    }
    with suppress(OSError), os.fdopen(ready_fd, "w") as stream:  # nobody may be reading any more
        stream.write(json.dumps(line) + "\n")


def _end_of_signals(loop: asyncio.AbstractEventLoop, parent_fd: int | None) -> asyncio.Future[None]:
    """Done when SIGINT or SIGTERM comes, or the parent is gone."""
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    if sys.platform == "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    else:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
    if parent_fd is not None:
        loop.add_reader(parent_fd, _parent_says, loop, parent_fd, end)
    return ended


def _parent_says(loop: asyncio.AbstractEventLoop, parent_fd: int, end: Callable[[], None]) -> None:
    """The parent never writes: what can be read is the end of the pipe."""
    if not os.read(parent_fd, 1):
        loop.remove_reader(parent_fd)
        end()
