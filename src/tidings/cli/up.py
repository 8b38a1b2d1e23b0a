"""`tidings up`: a supervised cluster on this machine, ready with one command.

Rule: stdout holds what was asked for (the banner, or exactly one line of JSON); events go to stderr.
Must not know: how brokers are kept alive (runtime/supervisor.py). Tests: tests/cli/test_up.py
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tidings.cli.banner import banner, ready_line
from tidings.cli.doors import Doors
from tidings.cli.failure import Failure, reason
from tidings.cli.output import say, say_json
from tidings.cli.planning import plan_cluster
from tidings.cli.settings import read_settings, setting_options
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.load import Loaded
from tidings.config.options import Config
from tidings.runtime import cluster_folder
from tidings.runtime.children import BrokerProcess, is_alive
from tidings.runtime.cluster_folder import FolderError, FormatTooNew, holder_of
from tidings.runtime.ports import NoFreePort
from tidings.runtime.supervisor import (
    BrokerFailed,
    BrokerPlan,
    MajorityLost,
    Message,
    NotReady,
    Running,
    StopAsked,
    Supervisor,
)
from tidings.storage.errors import FolderLocked, StorageError
from tidings.storage.lock import lock_folder
from tidings.telemetry.events import open_log

Mailbox = queue.SimpleQueue[Message]
QUIET = "log_level=warning"


@click.command()
@click.option("--brokers", type=int, help="How many: 1, 3 or 5; 9 at most.  [default: 3]")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder that is kept.")
@click.option("--ephemeral", is_flag=True, default=None, help="Keep nothing: the folder goes at the end.")
@click.option("--kafka-port", type=int, help="Port of the first broker; 0 takes free ones.  [default: 9092]")
@click.option("--restart/--no-restart", default=None, help="Start a broker that died again.  [default: yes]")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON when the cluster takes writes.")
@setting_options
@click.pass_obj
def up(
    doors: Doors,
    brokers: int | None,
    data: Path | None,
    ephemeral: bool | None,
    kafka_port: int | None,
    restart: bool | None,
    as_json: bool,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> int:
    """Start a cluster on this machine, and keep it running until Ctrl-C.

    Messages are kept between runs in a folder of the user's data, or in --data DIR.
    """
    begin_s = time.monotonic()
    flags = {
        "brokers": brokers,
        "data_folder": data,
        "ephemeral": ephemeral,
        "kafka_port": kafka_port,
        "restart": restart,
    }
    typed = {"data_folder": f"--data {data}"}
    loaded = read_settings(config_file, assignments, flags, typed=typed)
    if _is_watched(loaded):
        loaded = read_settings(config_file, (*assignments, QUIET), flags, typed=typed)
    config = loaded.config
    mailbox: Mailbox = queue.SimpleQueue()
    with _signals_to(mailbox), _errors_told(), _folder(config) as folder:

        def on_ready(running: list[Running]) -> None:
            seconds = round(time.monotonic() - begin_s, 3)
            if as_json:
                say_json(ready_line(running, seconds=seconds))
            else:
                say(banner(running, folder, is_kept=not config.ephemeral, seconds=seconds))

        plans = plan_cluster(loaded, folder, doors.broker_program)
        _supervisor(plans, config, mailbox).run(on_ready)
    return Exit.OK


def _is_watched(loaded: Loaded) -> bool:
    """Whether somebody reads the events on a terminal: what is all right would hide the banner there."""
    is_text = loaded.config.log_format in ("auto", "text")
    return sys.stderr.isatty() and is_text and "log_level" not in loaded.place_by_option


def _supervisor(plans: list[BrokerPlan], config: Config, mailbox: Mailbox) -> Supervisor:
    return Supervisor(
        plans,
        config=config,
        spawn=lambda plan: BrokerProcess(plan, mailbox.put),
        mailbox=mailbox,
        log=open_log(config),
        holder_is_alive=lambda broker_folder: is_alive(holder_of(broker_folder)),
    )


@contextmanager
def _signals_to(mailbox: Mailbox) -> Iterator[None]:
    """Until the block ends, signals that mean "stop" are mail: a handler may do no more than put."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    # Started with nohup, we are meant to outlive the terminal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: mailbox.put(StopAsked())) for number in stopping}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _folder(config: Config) -> Iterator[Path]:
    """The cluster's folder, locked; where nothing is to be kept, a new one, in the folder that was given."""
    if not config.ephemeral:
        folder = config.data_folder or cluster_folder.default_folder(os.environ, Path.home())
        with _locked(folder.absolute(), config):
            yield folder.absolute()
        return
    if config.data_folder:
        config.data_folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="tidings-", dir=config.data_folder)).absolute()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, config: Config) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = lock_folder(str(folder))
    except FolderLocked as error:
        hint = "start another beside it with `tidings up --ephemeral --kafka-port 0`, or with --data DIR"
        raise Failure(str(error), _where(folder, config), hint, code=Exit.FOLDER_LOCKED) from error
    try:
        yield
    finally:
        lock.release()


def _where(folder: Path, config: Config) -> str:
    """Where the cluster of a folder listens; who runs it may not have written it down yet."""
    try:
        record = cluster_folder.read_record(folder)
    except FolderError:
        return ""
    if record is None:
        return ""
    return "it serves " + ",".join(str(Address(config.kafka_host, port)) for port in record.kafka_ports)


@contextmanager
def _errors_told() -> Iterator[None]:
    """What can go wrong with a cluster, in words for people, with the exit code that belongs to it."""
    try:
        yield
    except FormatTooNew as error:
        raise Failure(str(error), hint=error.hint, code=Exit.FORMAT_TOO_NEW) from error
    except FolderError as error:
        raise Failure(str(error), hint=error.hint, code=Exit.USAGE) from error
    except NoFreePort as error:
        raise Failure(str(error), code=Exit.PORT_IN_USE) from error
    except BrokerFailed as error:
        code = _exit_for(error.code)
        name = code.name.lower().replace("_", " ")
        why = f"exit code {error.code} ({name}); its last event above says more"
        raise Failure(f"broker {error.plan.broker_id} has failed", why, code=code) from error
    except MajorityLost as error:
        hint = "without --no-restart brokers that died are started again"
        raise Failure("no majority is left", str(error), hint) from error
    except NotReady as error:
        raise Failure("the cluster does not take writes", f"not ready in time: {error}") from error
    except (OSError, StorageError) as error:
        raise Failure("the cluster could not be started", reason(error)) from error


def _exit_for(code: int) -> Exit:
    """A failed broker's code as ours; one that says nothing to us, or that all is well, is a failure."""
    try:
        return Exit(code) or Exit.FAILED
    except ValueError:
        return Exit.FAILED
