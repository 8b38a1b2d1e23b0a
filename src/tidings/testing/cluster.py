"""Cluster: brokers in the caller's process, on real sockets and real files, for tests of other people's code.

Its one rule: what a broker does here is what it does in production, each acknowledged message synced to disk;
only its process is missing. Every call has a deadline, and after the end nothing is left: no thread, no open
file, no port, no temporary folder. Tests: tests/testing/test_cluster.py; benchmark: bench/testing_cluster.py
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.load import ConfigError, load
from tidings.config.options import Config
from tidings.runtime import cluster_folder
from tidings.runtime.embedded import EmbeddedBroker
from tidings.runtime.ports import NoFreePort
from tidings.runtime.server import BrokerStopped
from tidings.testing.loop_thread import LoopThread
from tidings.testing.recent_lines import RecentLines

_HOST = "127.0.0.1"
_SECRET_BYTES = 32
_EVENTS_KEPT = 500  # enough to see what led to a failure
_EVENTS_TOLD = 5  # of them, in the message of an error
_PORT_TRIES = 5  # another program may take a port between the moment it is found free and its use
_STOP_S_MAX = 10.0  # longer than any flush; what hangs then is left behind, and said
# What the cluster sets itself.
_OWN_OPTIONS = frozenset(
    {"broker_id", "data_folder", "kafka_host", "kafka_port", "peer_host", "peer_port", "join", "secret_file"}
)


class ClusterError(Exception):
    """The cluster cannot do, or did not do, what was asked of it; the message says why."""

    def __init__(self, reason: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """One broker of a cluster: its id, HOST:PORT for Kafka clients, and its folder."""

    id: int
    kafka: str
    data: Path


class Cluster:
    """Brokers numbered from 1, running between `start` and `stop`, or in a `with` block.

    `data` is a folder that is kept, and that `tidings up --data` can go on with; without it there is a
    temporary one. Other keywords are options of a broker, as `tidings config` lists them.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        data: str | os.PathLike[str] | None = None,
        start_s_max: float = 30.0,
        **options: object,
    ) -> None:
        for name in sorted(_OWN_OPTIONS & options.keys()):
            raise ClusterError(f"{name} is chosen by the cluster itself")
        self._options = {**options, "brokers": brokers}
        self._count = _config(self._options).brokers
        self._kept_folder = Path(data).absolute() if data is not None else None
        self._start_s_max = start_s_max
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._events = RecentLines(_EVENTS_KEPT)
        self._facts: dict[int, BrokerFacts] = {}
        self._brokers: dict[int, EmbeddedBroker] = {}
        self._thread: LoopThread | None = None
        self._clean_up = ExitStack()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failures = [
            f"broker {number} failed: {broker.failure}"
            for number, broker in self._brokers.items()
            if broker.failure is not None
        ]
        self.stop()
        if failures and error is None:
            raise self._error("; ".join(failures))

    # -- facts

    @property
    def bootstrap(self) -> str:
        """What Kafka clients take as `bootstrap.servers`."""
        return ",".join(facts.kafka for facts in self._facts.values())

    @property
    def brokers(self) -> Mapping[int, BrokerFacts]:
        """The brokers by id, whether they run or not."""
        return MappingProxyType(self._facts)

    @property
    def events(self) -> Sequence[str]:
        """The newest events of all brokers, each a line of JSON."""
        return self._events.lines()

    # -- verbs

    def start(self) -> Cluster:
        """Returns when every broker serves. Raises ClusterError, and then nothing is left running."""
        if self._thread is not None:
            raise ClusterError("the cluster is running already")
        try:
            folder = self._take_folder()
            self._thread = LoopThread("tidings-cluster", on_error=self._loop_failed)
            self._clean_up.callback(self._end_loop, self._thread)
            self._thread.start()
            self._start_brokers(folder)
        except BaseException:  # Ctrl-C too: nothing stays; raised again
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all brokers, and remove a temporary folder. Nothing happens where nothing runs."""
        try:
            self._clean_up.close()
        finally:
            self._thread = None
            self._brokers = {}

    def kill(self, *broker_ids: int) -> None:
        """As `kill -9`: their connections are gone and they do nothing more. Their folders stay."""
        brokers = self._named(broker_ids)
        self._call(_kill(brokers), _STOP_S_MAX, f"killing {_said(broker_ids)}")

    def restart(self, *broker_ids: int) -> None:
        """Start them again with their folders and ports, killed first if they run. Returns when they serve,
        for which a majority of the brokers has to live: name them together where it does not."""
        brokers = self._named(broker_ids)
        self._call(_restart(brokers), self._start_s_max, f"restarting {_said(broker_ids)}")

    def pause(self, *broker_ids: int) -> None:
        """As SIGSTOP: they read and send nothing, while their clocks go on."""
        brokers = self._named(broker_ids)
        self._call(_pause(brokers), _STOP_S_MAX, f"pausing {_said(broker_ids)}")

    def resume(self, *broker_ids: int) -> None:
        """As SIGCONT."""
        brokers = self._named(broker_ids)
        self._call(_resume(brokers), _STOP_S_MAX, f"resuming {_said(broker_ids)}")

    # -- parts

    def _take_folder(self) -> Path:
        if self._kept_folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="tidings-", ignore_cleanup_errors=True)
            return Path(self._clean_up.enter_context(temporary))
        self._kept_folder.mkdir(parents=True, exist_ok=True)
        return self._kept_folder

    def _start_brokers(self, folder: Path) -> None:
        for tries_left in reversed(range(_PORT_TRIES)):
            self._place_brokers(folder)
            try:
                self._call(_start(list(self._brokers.values())), self._start_s_max, "starting")
            except ClusterError as error:
                if error.code is not Exit.PORT_IN_USE or not tries_left:
                    raise
            else:
                return

    def _place_brokers(self, folder: Path) -> None:
        try:
            kept = cluster_folder.read_record(folder)
            cluster_folder.check_brokers(folder, kept, self._count, is_asked_for=True)
            record = cluster_folder.choose_ports(
                kept, brokers=self._count, host=_HOST, first_kafka_port=0, chance=random.Random()
            )
        except (cluster_folder.FolderError, NoFreePort) as error:
            raise ClusterError(str(error)) from error
        if self._kept_folder is not None and record != kept:
            cluster_folder.write_record(folder, record)
        peers = tuple(str(Address(_HOST, port)) for port in record.peer_ports)
        places = zip(record.kafka_ports, record.peer_ports, strict=True)
        for number, (kafka_port, peer_port) in enumerate(places, start=1):
            data = folder / f"broker-{number}"
            own = {"broker_id": number, "data_folder": data, "join": peers}
            config = _config({**self._options, **own, "kafka_port": kafka_port, "peer_port": peer_port})
            self._facts[number] = BrokerFacts(id=number, kafka=str(Address(_HOST, kafka_port)), data=data)
            self._brokers[number] = EmbeddedBroker(config, secret=self._secret, events=self._events)

    def _named(self, broker_ids: Sequence[int]) -> list[EmbeddedBroker]:
        if self._thread is None:
            raise ClusterError("the cluster is not running")
        for broker_id in broker_ids:
            if broker_id not in self._brokers:
                raise ClusterError(
                    f"there is no broker {broker_id}: they are numbered from 1 to {self._count}"
                )
        return [self._brokers[broker_id] for broker_id in broker_ids]

    def _call(
        self,
        work: Coroutine[Any, Any, None],  # any: what a coroutine yields to its loop is the loop's matter
        timeout_s: float,
        doing: str,
    ) -> None:
        assert self._thread is not None
        try:
            self._thread.call(work, timeout_s=timeout_s)
        except TimeoutError as error:
            raise self._error(f"{doing} was not done within {timeout_s:g} s") from error
        except BrokerStopped as error:
            raise self._error(f"{doing}: {error.reason}", error.code) from error

    def _error(self, reason: str, code: Exit = Exit.FAILED) -> ClusterError:
        told = self.events[-_EVENTS_TOLD:]
        return ClusterError("\n  ".join([reason, *told]), code)

    def _loop_failed(self, context: dict[str, Any]) -> None:  # any: what asyncio tells of an exception
        """It cannot be told whose mistake it is: every broker's state is in doubt."""
        for broker in self._brokers.values():
            broker.failed(context)

    def _end_loop(self, thread: LoopThread) -> None:
        """Never hangs: what does not end in time is a daemon's thread, and is left behind."""
        brokers = list(self._brokers.values())
        try:
            self._call(_kill(brokers), _STOP_S_MAX, "stopping")
        finally:
            is_ended = thread.stop(timeout_s=_STOP_S_MAX)
        if not is_ended:
            raise self._error(f"the cluster's loop did not end within {_STOP_S_MAX:g} s")


def _config(options: Mapping[str, object]) -> Config:
    """Neither the environment nor a file has a say in a test."""
    try:
        return load(None, {}, options)
    except ConfigError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise ClusterError(f"{error.problem}{hint}", Exit.CONFIG) from error


def _said(broker_ids: Sequence[int]) -> str:
    return f"broker {', '.join(map(str, broker_ids))}"


async def _start(brokers: Sequence[EmbeddedBroker]) -> None:
    """All at once, because a cluster is formed when all its brokers have met. Where one fails, none stays."""
    tasks = [asyncio.create_task(broker.start()) for broker in brokers]
    try:
        await asyncio.gather(*tasks)
    except BaseException:  # also where the time is up: nothing stays; raised again
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _kill(brokers)
        raise


async def _restart(brokers: Sequence[EmbeddedBroker]) -> None:
    await _kill(brokers)
    await _start(brokers)


async def _kill(brokers: Sequence[EmbeddedBroker]) -> None:
    await asyncio.gather(*(broker.kill() for broker in brokers))


async def _pause(brokers: Sequence[EmbeddedBroker]) -> None:
    for broker in brokers:
        broker.pause()


async def _resume(brokers: Sequence[EmbeddedBroker]) -> None:
    for broker in brokers:
        broker.resume()
