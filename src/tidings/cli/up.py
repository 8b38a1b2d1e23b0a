"""`tidings up`: a supervised cluster on this machine, ready with one command.

Rule: stdout holds what was asked for (the banner, or exactly one line of JSON); events go to stderr.
Must not know: how brokers are kept alive (runtime/supervisor.py). Tests: tests/cli/test_up.py
"""

from __future__ import annotations

import os
import queue
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import click

from tidings import __version__
from tidings.cli.failure import Failure
from tidings.cli.output import say, say_json, styled, warn
from tidings.cli.settings import read_settings, setting_options
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.load import Loaded
from tidings.config.options import Config, about
from tidings.runtime import cluster_folder
from tidings.runtime.children import BrokerProcess, is_alive
from tidings.runtime.cluster_folder import ClusterRecord, FolderError, FormatTooNew, holder_of
from tidings.runtime.ports import NoFreePort, is_free
from tidings.runtime.supervisor import (
    BrokerFailed,
    BrokerPlan,
    Message,
    NotReady,
    Running,
    StopAsked,
    Supervisor,
)
from tidings.storage.errors import FolderLocked, StorageError
from tidings.storage.lock import lock_folder
from tidings.telemetry.events import open_log

# Options that every broker is given by a flag of its own; the others travel as --set.
OPTIONS_WITH_FLAGS = frozenset(
    {"broker_id", "data_folder", "kafka_host", "kafka_port", "peer_host", "peer_port", "join", "secret_file"}
)


@click.command()
@click.option("--brokers", type=int, help="How many brokers: 1, 3 or 5.  [default: 3]")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder that is kept.")
@click.option(
    "--ephemeral", is_flag=True, default=None, help="Keep nothing: the folder is removed at the end."
)
@click.option("--kafka-port", type=int, help="Port of the first broker; 0 takes free ones.  [default: 9092]")
@click.option("--restart/--no-restart", default=None, help="Start a broker that died again.  [default: yes]")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON when the cluster takes writes.")
@setting_options
def up(
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
    loaded = read_settings(config_file, assignments, flags)
    with _errors_told(), _folder(loaded.config) as folder:
        record = _record(loaded, folder)
        plans = _plans(loaded, folder, record)
        _check_ports(plans, record, loaded.config)
        _supervise(plans, folder, loaded.config, as_json=as_json, begin_s=begin_s)
    return Exit.OK


def _supervise(
    plans: list[BrokerPlan], folder: Path, config: Config, *, as_json: bool, begin_s: float
) -> None:
    mailbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: mailbox.put(StopAsked()))

    def on_ready(running: list[Running]) -> None:
        seconds = round(time.monotonic() - begin_s, 3)
        if as_json:
            say_json(_ready_line(running, seconds))
        else:
            _print_banner(running, folder, config, seconds)

    log = open_log(config)
    supervisor = Supervisor(
        plans,
        config=config,
        spawn=lambda plan: BrokerProcess(plan, mailbox.put),
        mailbox=mailbox,
        log=log,
        holder_is_alive=lambda broker_folder: is_alive(holder_of(broker_folder)),
    )
    supervisor.run(on_ready)


@contextmanager
def _folder(config: Config) -> Iterator[Path]:
    """The cluster's folder, locked; a temporary one, in the folder that was given, where nothing is to be
    kept.
    """
    if not config.ephemeral:
        kept = config.data_folder or cluster_folder.default_folder(os.environ, Path.home())
        folder = kept.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(str(folder))
        try:
            yield folder
        finally:
            lock.release()
        return
    if config.data_folder:
        config.data_folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="tidings-", dir=config.data_folder)).absolute()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _record(loaded: Loaded, folder: Path) -> ClusterRecord:
    """How many brokers at which ports, written down before the first of them starts."""
    config = loaded.config
    kept = cluster_folder.read_record(folder)
    is_asked_for = "brokers" in loaded.place_by_option
    brokers = cluster_folder.check_brokers(folder, kept, config.brokers, is_asked_for=is_asked_for)
    if brokers % 2 == 0:
        lost = brokers // 2 - 1
        warn(f"{brokers} brokers survive the loss of {lost}, as {brokers - 1} do: take an odd number")
    record = cluster_folder.choose_ports(
        kept,
        brokers=brokers,
        host=config.kafka_host,
        first_kafka_port=config.kafka_port,
        chance=random.Random(),
    )
    if record != kept:
        cluster_folder.write_record(folder, record)
    return record


def _plans(loaded: Loaded, folder: Path, record: ClusterRecord) -> list[BrokerPlan]:
    config = loaded.config
    secret = cluster_folder.ensure_secret(folder)
    peers = [str(Address(config.peer_host, port)) for port in record.peer_ports]
    settings = list(_settings_of_brokers(loaded))
    plans: list[BrokerPlan] = []
    for broker_id, (kafka_port, peer) in enumerate(zip(record.kafka_ports, peers, strict=True), start=1):
        kafka = str(Address(config.kafka_host, kafka_port))
        data = folder / f"broker-{broker_id}"
        argv = [sys.executable, "-m", "tidings", "broker", "--id", str(broker_id), "--data", str(data)]
        argv += ["--kafka", kafka, "--peer", peer, "--join", ",".join(peers), "--secret-file", str(secret)]
        plans.append(
            BrokerPlan(broker_id=broker_id, kafka=kafka, peer=peer, data=data, argv=(*argv, *settings))
        )
    return plans


def _settings_of_brokers(loaded: Loaded) -> Iterator[str]:
    """Flags for all that was set: the command works by hand too, where neither file nor environment are
    ours.
    """
    for each in fields(Config):
        is_set = each.name in loaded.place_by_option
        if is_set and each.name not in OPTIONS_WITH_FLAGS and about(each).group != "up":
            yield "--set"
            yield f"{each.name}={getattr(loaded.config, each.name)}"


def _check_ports(plans: list[BrokerPlan], record: ClusterRecord, config: Config) -> None:
    """A taken port is told before anything runs. Whoever holds a broker's folder may hold its ports as
    well.
    """
    for plan, kafka_port, peer_port in zip(plans, record.kafka_ports, record.peer_ports, strict=True):
        if is_alive(holder_of(plan.data)):
            continue
        for host, port in ((config.kafka_host, kafka_port), (config.peer_host, peer_port)):
            if not is_free(host, port):
                raise Failure(
                    f"port {port} is in use, and broker {plan.broker_id} needs it",
                    hint="stop what uses it, or choose others with --kafka-port PORT (0: free ones)",
                    code=Exit.PORT_IN_USE,
                )


def _ready_line(running: list[Running], seconds: float) -> dict[str, object]:
    brokers = [
        {
            "id": each.plan.broker_id,
            "pid": each.pid,
            "kafka": each.plan.kafka,
            "peer": each.plan.peer,
            "data": str(each.plan.data),
            "argv": list(each.plan.argv),
        }
        for each in running
    ]
    bootstrap = ",".join(each.plan.kafka for each in running)
    return {"event": "ready", "kafka": bootstrap, "brokers": brokers, "seconds": seconds}


def _print_banner(running: list[Running], folder: Path, config: Config, seconds: float) -> None:
    many = "1 broker is" if len(running) == 1 else f"{len(running)} brokers are"
    kept = "removed at the end" if config.ephemeral else "kept between runs"
    program = _program()
    server = "" if running[0].plan.kafka == "127.0.0.1:9092" else f" --kafka {running[0].plan.kafka}"
    say(styled(f"Tidings {__version__}: {many} ready after {seconds:.2f} s", bold=True))
    say()
    say(f"  Kafka    {','.join(each.plan.kafka for each in running)}")
    say(f"  data     {folder} ({kept})")
    say(f"  publish  {styled(f'{program} pub news hello{server}', fg='green')}")
    say(f"  read     {styled(f'{program} sub news --from earliest{server}', fg='green')}")
    say()
    say("Ctrl-C stops it.")
    sys.stdout.flush()


def _program() -> str:
    """How to call this program from another shell in this folder, so that a printed line works as pasted."""
    called = Path(sys.argv[0])
    if called.stem != "tidings":
        return f"{shlex.quote(sys.executable)} -m tidings"
    on_path = shutil.which("tidings")
    if on_path and Path(on_path).resolve() == called.resolve():
        return "tidings"
    return shlex.quote(str(called))


@contextmanager
def _errors_told() -> Iterator[None]:
    """What can go wrong with a cluster, in words for people, with the exit code that belongs to it."""
    try:
        yield
    except FolderLocked as error:
        hint = "choose another folder with --data DIR, or --ephemeral"
        raise Failure(str(error), hint=hint, code=Exit.FOLDER_LOCKED) from error
    except FormatTooNew as error:
        raise Failure(str(error), hint=error.hint, code=Exit.FORMAT_TOO_NEW) from error
    except FolderError as error:
        raise Failure(str(error), hint=error.hint, code=Exit.USAGE) from error
    except NoFreePort as error:
        raise Failure(str(error), code=Exit.PORT_IN_USE) from error
    except BrokerFailed as error:
        code = _exit_for(error.code)
        name = code.name.lower().replace("_", " ")
        why = f"exit code {error.code} ({name}); its last event on stderr says more"
        hint = f"run it by hand: {shlex.join(error.plan.argv)}"
        raise Failure(f"broker {error.plan.broker_id} could not start", why, hint, code=code) from error
    except NotReady as error:
        raise Failure("the cluster does not take writes", f"not ready in time: {error}") from error
    except (OSError, StorageError) as error:
        raise Failure("the cluster could not be started", str(error)) from error


def _exit_for(code: int) -> Exit:
    """The code of a broker that failed, as ours: one that says nothing to us, or that all is well, is a
    failure.
    """
    try:
        return Exit(code) or Exit.FAILED
    except ValueError:
        return Exit.FAILED
