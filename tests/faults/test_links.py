"""The links that other tests cut: bytes pass unchanged, are held back, come late, or the connection ends."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.links import Links

ANSWER_S_MAX = 10.0
SILENCE_S = 0.2
"""How long nothing must come where nothing may come."""


class Far:
    """The broker behind a link: takes one connection and what comes by it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(ANSWER_S_MAX)
        self.port = self.listener.getsockname()[1]

    def accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(ANSWER_S_MAX)
        return connection


@contextmanager
def linked() -> Iterator[tuple[Links, Far]]:
    """Brokers 1 and 2; 2 listens."""
    far = Far()
    links = Links({1: far.port + 1, 2: far.port})
    try:
        yield links, far
    finally:
        links.close()
        far.listener.close()


def opening(broker_id: int) -> bytes:
    hello = json.dumps({"broker_id": broker_id}).encode()
    return struct.pack(">4sHH32s", b"TDPR", 1, len(hello), bytes(32)) + hello


def dial(links: Links, *, broker_id: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", links.ports[2]), timeout=ANSWER_S_MAX)
    connection.sendall(opening(broker_id))
    return connection


def received(connection: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        assert part, parts
        parts += part
    return parts


def is_silent(connection: socket.socket) -> bool:
    """Whether nothing comes, and no end either."""
    connection.settimeout(SILENCE_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(ANSWER_S_MAX)
    return False


def is_over(connection: socket.socket) -> bool:
    """Whether the connection ends, by a reset or otherwise."""
    try:
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_an_open_link_passes_everything_both_ways() -> None:
    with linked() as (links, far), dial(links, broker_id=1) as near, far.accept() as other:
        assert received(other, len(opening(1))) == opening(1)
        near.sendall(b"there")
        other.sendall(b"back")

        assert received(other, 5) == b"there"
        assert received(near, 4) == b"back"


def test_a_silent_cut_holds_back_what_comes_late_when_it_is_healed() -> None:
    with linked() as (links, far), dial(links, broker_id=1) as near, far.accept() as other:
        received(other, len(opening(1)))
        links.cut([(1, 2)])
        near.sendall(b"late")

        assert is_silent(other)
        links.heal()
        assert received(other, 4) == b"late"


def test_a_cut_of_one_direction_leaves_the_other() -> None:
    with linked() as (links, far), dial(links, broker_id=1) as near:
        links.cut([(2, 1)])
        with far.accept() as other:
            near.sendall(b"x")

            assert received(other, len(opening(1)) + 1)[-1:] == b"x"


def test_a_hard_cut_resets_what_is_there_and_refuses_what_comes() -> None:
    with linked() as (links, far), dial(links, broker_id=1) as near, far.accept() as other:
        received(other, len(opening(1)))

        links.cut([(1, 2)], hard=True)

        assert is_over(near)
        assert is_over(other)
        with dial(links, broker_id=1) as again:
            assert is_over(again)


def test_a_slow_link_passes_things_late() -> None:
    with linked() as (links, far), dial(links, broker_id=1) as near, far.accept() as other:
        received(other, len(opening(1)))
        links.delay([(1, 2)], SILENCE_S)
        began_s = time.monotonic()

        near.sendall(b"slow")

        assert received(other, 4) == b"slow"
        assert time.monotonic() - began_s >= SILENCE_S
