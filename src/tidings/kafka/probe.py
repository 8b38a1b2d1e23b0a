"""Probe: which brokers of a cluster answer, asked before a client is made that would try for minutes.

    request   size i32 | key i16 = 3 (Metadata) | version i16 = 1 | correlation i32 | client string
              | topics i32 = 0
    response  size i32 | correlation i32 | brokers [id i32, host string, port i32, rack string?]
              | controller i32 | topics, which nobody asked for

Rule: every question has a short deadline, and a broker counts as living only if it answered this one.
Must not know: the Kafka client, commands. Tests: tests/kafka/test_probe.py
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidings.config.address import Address
from tidings.kafka.errors import NoMajority, Unreachable

DEFAULT_PORT = 9092
# Twice this is what a command waits at most before it says that brokers do not answer.
ANSWER_SECONDS_MAX = 1.3
# An election takes less; a cluster that has no controller for longer than this has lost its majority.
CONTROLLER_SECONDS_MAX = 1.5
CONTROLLER_CHECK_SECONDS = 0.1
RESPONSE_BYTES_MAX = 1024 * 1024  # without topics it is a few hundred bytes per broker
PEER_PORT_DISTANCE = 10_000
_METADATA_V1 = struct.pack(">hhih7si", 3, 1, 1, 7, b"tidings", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A broker as Metadata names it."""

    broker_id: int
    address: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one broker says of its cluster; `controller` is -1 where it knows none."""

    brokers: tuple[Listed, ...]
    controller: int


class _NotKafka(Exception):
    """Something listens, and does not speak Kafka's protocol."""


def require_majority(bootstrap: str) -> None:
    """Raises Unreachable where no broker answers, NoMajority where too few do for anything to be done."""
    deadline_s = time.monotonic() + CONTROLLER_SECONDS_MAX
    while True:
        answer = first_answer(bootstrap)
        living = living_brokers([each.address for each in answer.brokers])
        if 2 * len(living) <= len(answer.brokers):
            verb = "answers" if len(living) == 1 else "answer"
            names = ", ".join(map(str, living)) or "none"
            raise NoMajority(f"only {len(living)} of {len(answer.brokers)} brokers {verb} ({names})")
        if answer.controller >= 0:
            return
        if time.monotonic() > deadline_s:
            # Brokers that died long ago are not named any more, so that these may be all that are known.
            names = ", ".join(map(str, living))
            raise NoMajority(f"no controller is elected among the brokers that answer ({names})")
        time.sleep(CONTROLLER_CHECK_SECONDS)


def first_answer(bootstrap: str) -> Answer:
    """Of the first address, in their order, at which a broker answers."""
    texts = bootstrap.split(",")
    answers = _ask_all(texts)
    for answer in answers:
        if isinstance(answer, Answer):
            return answer
    problems = [f"{text}: {_reason(answer)}" for text, answer in zip(texts, answers, strict=True)]
    strangers = [text for text, answer in zip(texts, answers, strict=True) if isinstance(answer, _NotKafka)]
    raise Unreachable("; ".join(problems), hint=_hint_of_peer_port(strangers[0]) if strangers else "")


def living_brokers(addresses: Sequence[Address]) -> list[Address]:
    """Those at which a broker answers now."""
    answers = _ask_all([str(address) for address in addresses])
    return [address for address, answer in zip(addresses, answers, strict=True) if isinstance(answer, Answer)]


def _ask_all(texts: Sequence[str]) -> list[Answer | Exception]:
    if not texts:
        return []
    with ThreadPoolExecutor(max_workers=len(texts)) as pool:
        return list(pool.map(_try_to_ask, texts))


def _try_to_ask(text: str) -> Answer | Exception:
    try:
        return _ask(Address.parse(text if ":" in text else f"{text}:{DEFAULT_PORT}"))
    except (OSError, ValueError, _NotKafka) as error:
        return error


def _ask(address: Address) -> Answer:
    deadline_s = time.monotonic() + ANSWER_SECONDS_MAX
    with socket.create_connection((address.host, address.port), timeout=ANSWER_SECONDS_MAX) as connection:
        try:
            connection.sendall(struct.pack(">i", len(_METADATA_V1)) + _METADATA_V1)
            (size_bytes,) = struct.unpack(">i", _receive(connection, 4, deadline_s))
            if not 4 <= size_bytes <= RESPONSE_BYTES_MAX:
                raise _NotKafka("something answers, but not in Kafka's protocol")
            return _parsed(_receive(connection, size_bytes, deadline_s))
        except (ConnectionError, struct.error, UnicodeDecodeError) as error:
            raise _NotKafka("takes connections, but does not answer in Kafka's protocol") from error
        except TimeoutError as error:
            raise _NotKafka("takes connections, but does not answer") from error


def _receive(connection: socket.socket, count_bytes: int, deadline_s: float) -> bytes:
    received = bytearray()
    while len(received) < count_bytes:
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        part = connection.recv(count_bytes - len(received))
        if not part:
            raise ConnectionResetError
        received += part
    return bytes(received)


def _parsed(response: bytes) -> Answer:
    _, count = struct.unpack_from(">ii", response)
    position = 8
    brokers: list[Listed] = []
    for _ in range(count):
        (broker_id,) = struct.unpack_from(">i", response, position)
        host, position = _text(response, position + 4)
        (port,) = struct.unpack_from(">i", response, position)
        _, position = _text(response, position + 4)
        brokers.append(Listed(broker_id=broker_id, address=Address(host, port)))
    (controller,) = struct.unpack_from(">i", response, position)
    return Answer(brokers=tuple(brokers), controller=controller)


def _text(response: bytes, position: int) -> tuple[str, int]:
    """A string, or null as an empty one, and the position behind it."""
    (length,) = struct.unpack_from(">h", response, position)
    end = position + 2 + max(length, 0)
    return response[position + 2 : end].decode(), end


def _reason(answer: Answer | Exception) -> str:
    if isinstance(answer, TimeoutError):
        return "does not answer"
    return str(getattr(answer, "strerror", None) or answer)


def _hint_of_peer_port(text: str) -> str:
    """What stands behind a port of no Kafka broker is perhaps the port by which brokers know each other."""
    if ":" not in text or (address := Address.parse(text)).port <= PEER_PORT_DISTANCE:
        return ""
    kafka = Address(address.host, address.port - PEER_PORT_DISTANCE)
    if living_brokers([kafka]):
        return f"{text} is a peer port; --kafka {kafka} is the broker's Kafka port"
    return "if it is a broker's peer port: the Kafka port is usually 10000 lower"
