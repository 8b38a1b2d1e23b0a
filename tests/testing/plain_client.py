"""A client without threads, so that tests can count what a cluster leaves behind: it writes and reads one
partition, asking again until it is answered.

The one rule: a write that returns was acknowledged with acks=all. It must not know which brokers run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from bench.processes import wait_until
from tests.clients import wire

ANSWER_S_MAX = 15.0  # an election after a pause takes two seconds, on a loaded machine a few more
WAIT_MS = 1_000

T = TypeVar("T")


class NotYet(Exception):
    """The broker asked cannot do it now."""


def write(bootstrap: str, topic: str, value: bytes) -> int:
    """Writes the value, creating the topic if it is missing; its offset."""

    def attempt(address: str) -> int:
        with wire.Connection(leader_of(address, topic)) as connection:
            produced = wire.produce(connection, topic, wire.batch([value]))
        if produced.error:
            raise NotYet(f"produce: error {produced.error}")
        return produced.base_offset

    return on_any_of(bootstrap.split(","), f"writing to {topic}", attempt)


def read(bootstrap: str, topic: str) -> bytes:
    """All committed batches of the topic, as they are. There is at least one: a leader that has just been
    elected is waited for until it knows."""

    def attempt(address: str) -> bytes:
        with wire.Connection(leader_of(address, topic)) as connection:
            fetched = wire.fetched(connection.ask(wire.FETCH, 4, wire.fetch_body(topic, 0, wait_ms=WAIT_MS)))
        if fetched.error or not fetched.records:
            raise NotYet(f"fetch: error {fetched.error}")
        return fetched.records

    return on_any_of(bootstrap.split(","), f"reading {topic}", attempt)


def leader_of(address: str, topic: str) -> str:
    """Metadata 4, the topic created if it is missing: where the leader of partition 0 listens."""
    with wire.Connection(address) as connection:
        answer = connection.ask(wire.METADATA, 4, struct.pack(">i", 1) + wire.text(topic) + b"\1")
    answer.int32()
    addresses: dict[int, str] = {}
    for _ in answer.count():
        broker_id, host, port = answer.int32(), answer.text(), answer.int32()
        answer.text()
        addresses[broker_id] = f"{host}:{port}"
    answer.text(), answer.int32()
    for _ in answer.count():
        answer.int16(), answer.text(), answer.int8()
        for _ in answer.count():
            answer.int16(), answer.int32()
            leader = answer.int32()
            if leader in addresses:
                return addresses[leader]
            answer.numbers(), answer.numbers()
    raise NotYet(f"{topic} has no leader")


def on_any_of(addresses: Sequence[str], what: str, attempt: Callable[[str], T]) -> T:
    """Asks one broker after the other until one answers as it should."""
    found: list[T] = []
    trouble: list[str] = []

    def is_done() -> bool:
        for address in addresses:
            try:
                found.append(attempt(address))
            except (OSError, NotYet, wire.Hung, AssertionError) as error:
                trouble.append(f"{address}: {error!r}")
            else:
                return True
        return False

    wait_until(is_done, seconds_max=ANSWER_S_MAX, what=what)
    return found[0]
