"""Connection: how our programs meet a Kafka cluster: settings that all clients share, and what goes wrong
in words.

Rule: nothing here knows whose brokers they are; whatever works with Tidings works with Apache Kafka.
Must not know: commands and terminals. Tests: tests/kafka/test_connection.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from tidings.kafka.errors import Refused, Unreachable

REQUEST_SECONDS_MAX = 15.0

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


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turns the client's exceptions into ours."""
    try:
        yield
    except KafkaException as error:
        raise refused(error.args[0]) from error


def refused(error: KafkaError) -> Refused | Unreachable:
    if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return Unreachable(_words(error))
    if error.code() == KafkaError._TIMED_OUT:
        return Refused(f"no answer in time: {_words(error)}", error.name())
    if error.code() == KafkaError._MSG_TIMED_OUT:
        return Refused("no majority of the partition's brokers stored it in time", error.name())
    return Refused(_words(error), error.name())


def _words(error: KafkaError) -> str:
    """The client's text, without the prefix by which it tells its own errors from the brokers'."""
    return error.str().removeprefix("Broker: ").removeprefix("Local: ")
