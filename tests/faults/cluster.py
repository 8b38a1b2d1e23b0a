"""Cluster: broker processes that a test may kill, stop, cut off, wipe and start again.

The one rule: brokers are started by `tidings broker`, as on several machines, and ended by process id; none
outlives the test. Must not know: clients' messages, or what a fault should do.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench import processes
from tests.clients import wire
from tests.clients.librdkafka import Librdkafka
from tests.faults.links import Links
from tidings.runtime.secret import make_secret
from tidings.storage.checkpoint import read_checkpoint
from tidings.storage.files import OsFiles
from tidings.storage.recovery import GROUPS_FOLDER

BROKERS: Final = 3
READY_S_MAX: Final = 30.0
HEAL_S_MAX: Final = 30.0
EXIT_S_MAX: Final = 20.0
# Events are read by tests, so none may be held back.
ALWAYS: Final = {"log_format": "json", "log_events_per_second_max": "1000000"}


@dataclass(slots=True)
class Broker:
    """One broker: its command, its folder, its log, and its process while it has one."""

    id: int
    argv: tuple[str, ...]
    kafka: str
    data: Path
    log: Path
    process: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def events(self, name: str) -> list[dict[str, object]]:
        """What it has logged under this name, over all its lives."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [event for event in found if event["event"] == name]


class Cluster:
    """Brokers 1 to n. With `links`, their connections to each other pass through proxies."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int,
        links: bool,
        settings: Mapping[str, str],
        environments: Mapping[int, Mapping[str, str]],
    ) -> None:
        self.folder = folder
        self._environments = environments
        self.brokers: dict[int, Broker] = {}
        self.links: Links | None = None
        secret = folder / "secret"
        make_secret(secret)
        ports = processes.free_ports(2 * brokers)
        listening = {number: ports[brokers + number - 1] for number in range(1, brokers + 1)}
        if links:
            self.links = Links(listening)
        told = self.links.ports if self.links is not None else listening
        join = ",".join(f"127.0.0.1:{port}" for port in told.values())
        values = {**ALWAYS, **settings}
        for number in range(1, brokers + 1):
            kafka = f"127.0.0.1:{ports[number - 1]}"
            data = folder / f"broker-{number}"
            argv = [sys.executable, "-m", "tidings", "broker", "--id", str(number), "--data", str(data)]
            argv += ["--kafka", kafka, "--peer", f"127.0.0.1:{listening[number]}", "--join", join]
            argv += ["--secret-file", str(secret)]
            if links:
                argv += ["--advertise-peer", f"127.0.0.1:{told[number]}"]
            for name, value in values.items():
                argv += ["--set", f"{name}={value}"]
            self.brokers[number] = Broker(
                id=number, argv=tuple(argv), kafka=kafka, data=data, log=folder / f"broker-{number}.log"
            )

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.kafka for broker in self.brokers.values())

    # -- processes

    def start(self, *broker_ids: int, more: Sequence[str] = ()) -> None:
        """Start brokers (all of them if none is named) and wait until they serve."""
        started = [self.launch(number, more=more) for number in broker_ids or self.brokers]
        for broker in started:
            self.wait_until_serving(broker)

    def launch(self, broker_id: int, *, more: Sequence[str] = ()) -> Broker:
        """Start a broker without waiting. It ends with this process: its stdin is a pipe."""
        broker = self.brokers[broker_id]
        assert not broker.is_running, broker
        with broker.log.open("a") as sink:
            broker.process = subprocess.Popen(
                [*broker.argv, *more, "--parent-fd", "0", "--ready-fd", "1"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env={**os.environ, **self._environments.get(broker_id, {})},
                text=True,
            )
        return broker

    def wait_until_serving(self, broker: Broker) -> None:
        assert broker.process is not None
        assert _line(broker.process), f"broker {broker.id} was not ready: {processes.last_lines(broker.log)}"

    def kill(self, *broker_ids: int) -> None:
        """SIGKILL, all at once, and wait until they are gone."""
        for number in broker_ids:
            self._signal(number, signal.SIGKILL)
        for number in broker_ids:
            self.wait_for_exit(number)

    def terminate(self, broker_id: int) -> int:
        """SIGTERM; the exit code."""
        self._signal(broker_id, signal.SIGTERM)
        return self.wait_for_exit(broker_id)

    def stop(self, broker_id: int) -> None:
        """SIGSTOP: the process exists, its connections are open, and nothing happens."""
        self._signal(broker_id, signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        self._signal(broker_id, signal.SIGCONT)

    def wait_for_exit(self, broker_id: int) -> int:
        """The exit code of a broker that ends by itself, or was told to."""
        broker = self.brokers[broker_id]
        assert broker.process is not None
        code = broker.process.wait(EXIT_S_MAX)
        for pipe in (broker.process.stdin, broker.process.stdout):
            if pipe is not None:
                pipe.close()
        broker.process = None
        return code

    def last_lines(self, broker_id: int, count: int = 3) -> str:
        return processes.last_lines(self.brokers[broker_id].log, count)

    def wipe(self, broker_id: int) -> None:
        shutil.rmtree(self.brokers[broker_id].data)

    def close(self) -> None:
        for number, broker in self.brokers.items():
            if broker.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._signal(number, signal.SIGKILL)
                self.wait_for_exit(number)
        if self.links is not None:
            self.links.close()

    def _signal(self, broker_id: int, number: signal.Signals) -> None:
        process = self.brokers[broker_id].process
        assert process is not None, broker_id
        process.send_signal(number)

    # -- what the brokers say

    def create_topic(self, topic: str, *, partitions: int, **settings: str) -> None:
        """Replicated to all brokers; every broker names all its leaders when this returns."""
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        Librdkafka(self.bootstrap).create_topic(
            topic, partitions=partitions, replicas=len(self.brokers), settings=dotted
        )
        for number in self.brokers:
            self.wait_for_leaders(topic, asked=number, partitions=partitions)

    def leaders(self, topic: str, *, asked: int) -> list[int]:
        """The leader of each partition as a broker says, -1 for none; empty where it cannot be asked."""
        try:
            return wire.leaders(self.brokers[asked].kafka, topic)
        except (OSError, wire.Hung):
            return []

    def leader(self, topic: str, partition: int = 0, *, asked: int | None = None) -> int:
        """The partition's leader, waited for; a broker that runs is asked if none is named."""
        if asked is None:
            asked = next(number for number, broker in self.brokers.items() if broker.is_running)
        self.wait_for_leaders(topic, asked=asked, partitions=partition + 1)
        return self.leaders(topic, asked=asked)[partition]

    def wait_for_leaders(
        self, topic: str, *, asked: int, partitions: int = 1, without: Sequence[int] = ()
    ) -> None:
        """Until a broker names a leader of each partition, none of `without`."""

        def all_led() -> bool:
            found = self.leaders(topic, asked=asked)
            return len(found) >= partitions and not {-1, *without} & set(found)

        what = f"broker {asked} naming leaders of {topic}"
        processes.wait_until(all_led, seconds_max=HEAL_S_MAX, what=what, pause_s=0.05)

    def wait_for_checkpoint(self, broker_id: int, group: int) -> None:
        """Until the group's checkpoint holds more than its beginning."""
        folder = f"{self.brokers[broker_id].data}/{GROUPS_FOLDER}/{group}"

        def is_there() -> bool:
            checkpoint = read_checkpoint(OsFiles(), folder)
            return checkpoint is not None and checkpoint.start.index > 0

        wait_until(is_there, f"a checkpoint of group {group} at broker {broker_id}")

    def wait_for_event(self, broker_id: int, name: str, count: int = 1) -> None:
        broker = self.brokers[broker_id]
        processes.wait_until(
            lambda: len(broker.events(name)) >= count,
            seconds_max=HEAL_S_MAX,
            what=f"event {name} of broker {broker_id}",
            pause_s=0.05,
        )


def _line(process: subprocess.Popen[str]) -> str:
    """The line by which a broker says that it serves; empty where it ended or stayed silent."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(READY_S_MAX) else ""


@contextmanager
def running_cluster(
    folder: Path,
    *,
    brokers: int = BROKERS,
    links: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
    environments: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
) -> Iterator[Cluster]:
    """A cluster that lives as long as the block, serving from the beginning. `settings` are options by name,
    `environments` variables by broker id."""
    cluster = Cluster(folder, brokers=brokers, links=links, settings=settings, environments=environments)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def wait_until(met: Callable[[], bool], what: str, *, seconds_max: float = HEAL_S_MAX) -> None:
    processes.wait_until(met, seconds_max=seconds_max, what=what, pause_s=0.05)
