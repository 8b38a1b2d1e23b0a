"""Connection: how our programs meet a Kafka cluster: settings that all clients share, and what goes wrong
in words.

Rule: nothing here knows whose brokers they are; whatever works with Tidings works with Apache Kafka.
Must not know: commands and terminals. Tests: tests/kafka/test_connection.py
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from tidings.config.address import Address
from tidings.kafka.errors import Refused, Unreachable

CONNECT_SECONDS_MAX = 3.0
REQUEST_SECONDS_MAX = 15.0
DEFAULT_PORT = 9092

ClientSetting = str | int | float | bool


def client_settings(
    bootstrap: str, more: Mapping[str, ClientSetting] = MappingProxyType({})
) -> dict[str, ClientSetting]:
    """What every client of ours says. librdkafka's own log stays silent: we say what matters ourselves."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "tidings",
        "log_level": 0,
        "log.connection.close": False,
        "socket.connection.setup.timeout.ms": 5_000,
        **more,
    }


def require_reachable(bootstrap: str) -> None:
    """Raises Unreachable at once where no address takes a connection; a client would go on trying for
    minutes.
    """
    problems: list[str] = []
    for text in bootstrap.split(","):
        try:
            address = Address.parse(text if ":" in text else f"{text}:{DEFAULT_PORT}")
            socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS_MAX).close()
        except (OSError, ValueError) as error:
            problems.append(f"{text}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise Unreachable("; ".join(problems))


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turns the client's exceptions into ours."""
    try:
        yield
    except KafkaException as error:
        raise refused(error.args[0]) from error


def refused(error: KafkaError) -> Refused | Unreachable:
    if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return Unreachable(error.str())
    if error.code() == KafkaError._TIMED_OUT:
        return Refused(f"no answer in time: {error.str()}", error.name())
    return Refused(error.str(), error.name())
