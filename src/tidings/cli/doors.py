"""Doors: what commands open, a cluster's topics, messages and state, or a broker; and what is behind them.

Rule: the Kafka client and the broker are imported when their door is opened. Must not know: any command.
Tests: tests/cli/test_doors.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from tidings.cli.failure import Failure
from tidings.cli.settings import read_settings
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.kafka.errors import NoMajority, Refused, Unreachable

if TYPE_CHECKING:
    from tidings.config.options import Config
    from tidings.kafka.admin import ClusterView, End, Partition, Setting
    from tidings.kafka.positions import Position
    from tidings.kafka.publisher import Header, OnOutcome
    from tidings.kafka.reader import Received

DEFAULT_KAFKA = "127.0.0.1:9092"
_EVERY_HOST = frozenset({"0.0.0.0", "::"})  # a listener's, which nobody can connect to

F = TypeVar("F", bound=Callable[..., object])


class TopicAdmin(Protocol):
    """Questions and changes about topics."""

    def partitions(self, topic: str | None = None) -> tuple[Partition, ...]: ...

    def settings(self, topic: str) -> list[Setting]: ...

    def change_settings(self, topic: str, changed: Mapping[str, str], removed: Sequence[str]) -> None: ...

    def create(
        self, topic: str, *, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> None: ...

    def remove(self, topic: str) -> None: ...

    def grow(self, topic: str, partitions: int) -> None: ...

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, End]: ...


class ClusterQuestions(Protocol):
    """Questions about the cluster as a whole."""

    def cluster(self) -> ClusterView: ...

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, End]: ...


class MessagePublisher(Protocol):
    """Publishes messages, and says in their order what came of each."""

    def publish(self, value: bytes | None, *, key: bytes | None, headers: Sequence[Header]) -> None: ...

    def close(self) -> None: ...


class MessageReader(Protocol):
    """Reads a topic from a position on."""

    def topic_exists(self) -> bool: ...

    def read(
        self,
        position: Position,
        *,
        follow: bool,
        on_idle: Callable[[], None],
        on_beyond: Callable[[int], None],
    ) -> Iterator[Received]: ...

    def close(self) -> None: ...


class OpenPublisher(Protocol):
    """Opens a publisher; see kafka/publisher.py for the arguments."""

    def __call__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int,
        delivery_ms_max: int,
        on_outcome: OnOutcome,
        on_pause: Callable[[], None],
    ) -> MessagePublisher: ...


class OpenReader(Protocol):
    """Opens a reader; see kafka/reader.py for the arguments."""

    def __call__(self, bootstrap: str, topic: str, *, partition: int | None) -> MessageReader: ...


class RunBroker(Protocol):
    """Runs a broker in this process until it ends, and returns its exit code."""

    def __call__(self, config: Config, *, ready_fd: int | None, parent_fd: int | None) -> int: ...


def _open_topics(bootstrap: str) -> TopicAdmin:
    from tidings.kafka.admin import ClusterAdmin

    return ClusterAdmin(bootstrap)


def _open_cluster(bootstrap: str) -> ClusterQuestions:
    from tidings.kafka.admin import ClusterAdmin

    return ClusterAdmin(bootstrap)


def _open_publisher(
    bootstrap: str,
    topic: str,
    *,
    partition: int,
    delivery_ms_max: int,
    on_outcome: OnOutcome,
    on_pause: Callable[[], None],
) -> MessagePublisher:
    from tidings.kafka.publisher import Publisher

    return Publisher(
        bootstrap,
        topic,
        partition=partition,
        delivery_ms_max=delivery_ms_max,
        on_outcome=on_outcome,
        on_pause=on_pause,
    )


def _open_reader(bootstrap: str, topic: str, *, partition: int | None) -> MessageReader:
    from tidings.kafka.reader import Reader

    return Reader(bootstrap, topic, partition=partition)


def _run_broker(config: Config, *, ready_fd: int | None, parent_fd: int | None) -> int:
    from tidings.runtime.process import run_broker

    return run_broker(config, ready_fd=ready_fd, parent_fd=parent_fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """What a command opens. It is the object of click's context, so that tests can put fakes there."""

    topics: Callable[[str], TopicAdmin] = _open_topics
    cluster: Callable[[str], ClusterQuestions] = _open_cluster
    publisher: OpenPublisher = _open_publisher
    reader: OpenReader = _open_reader
    run_broker: RunBroker = _run_broker
    broker_program: tuple[str, ...] = (sys.executable, "-m", "tidings", "broker")


def default_kafka() -> str:
    """Where a broker started in this folder would listen; the usual place where that is not said."""
    file = os.environ.get("TIDINGS_CONFIG")
    config = read_settings(Path(file) if file else None, (), {}).config
    if not config.kafka_port:
        return DEFAULT_KAFKA
    host = "127.0.0.1" if config.kafka_host in _EVERY_HOST else config.kafka_host
    return str(Address(host, config.kafka_port))


def kafka_option(command: F) -> F:
    """`--kafka HOST:PORT`, the cluster that a command talks to."""
    return click.option(
        "--kafka",
        metavar="HOST:PORT,...",
        envvar="TIDINGS_KAFKA",
        default=default_kafka,
        show_default=f"{DEFAULT_KAFKA}, or as tidings.toml says",
        help="One or more brokers of the cluster. Also read from TIDINGS_KAFKA.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


_HINTS = {
    "UNKNOWN_TOPIC_OR_PART": "`tidings topic ls` lists the topics there are",
    "_UNKNOWN_TOPIC": "`tidings topic create` makes one",
    "_UNKNOWN_PARTITION": "`tidings topic describe` shows the partitions there are",
    "TOPIC_ALREADY_EXISTS": "`tidings topic describe` shows it",
    "INVALID_REPLICATION_FACTOR": "each replica needs a broker of its own; `tidings status` lists them",
    "INVALID_PARTITIONS": "the number is that of all partitions afterwards, and can only grow",
    "MSG_SIZE_TOO_LARGE": "the topic's setting max.message.bytes says how large a message may be",
}


@contextmanager
def cluster_errors(kafka: str, what: str) -> Iterator[None]:
    """Ends a command whose question a cluster did not answer; `what` is what was not done."""
    try:
        yield
    except Unreachable as error:
        hint = error.hint or "start a cluster with `tidings up`, or name one with --kafka HOST:PORT"
        what = f"no Kafka broker answers at {kafka}"
        raise Failure(what, str(error), hint, code=Exit.UNREACHABLE) from error
    except NoMajority as error:
        raise Failure(what, f"{error}; a majority is needed", "start the other brokers again") from error
    except Refused as error:
        raise Failure(what, error.reason, _HINTS.get(error.name, "")) from error
