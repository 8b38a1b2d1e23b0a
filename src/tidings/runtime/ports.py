"""Ports: which are free, for a cluster that does not care.

Rule: free ports are taken below the range from which the system draws ports for outgoing connections. There
a port could be lost to a client between two starts of a broker, and a client that reconnects to a dead
broker could even connect to itself. Must not know: what listens. Tests: tests/runtime/test_ports.py
"""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from random import Random

FREE_PORT_LOW = 10_000
FREE_PORT_HIGH = 32_000
_TRIES_PER_PORT = 100


class NoFreePort(Exception):
    """Every port that was tried is taken."""


def is_free(host: str, port: int) -> bool:
    """Whether a listener could be opened now. An address that is not this machine's is the broker's to
    refuse.
    """
    with _socket_for(host) as listener:
        return _bind(listener, host, port) != errno.EADDRINUSE


def find_free(host: str, count: int, chance: Random) -> list[int]:
    """Different ports on which listeners could be opened now."""
    found: list[int] = []
    with ExitStack() as held:  # all held until the last is found, so that none is found twice
        for _ in range(count * _TRIES_PER_PORT):
            if len(found) == count:
                return found
            port = chance.randrange(FREE_PORT_LOW, FREE_PORT_HIGH)
            listener = held.enter_context(_socket_for(host))
            if port not in found and _bind(listener, host, port) == 0:
                found.append(port)
    if len(found) == count:
        return found
    raise NoFreePort(f"no {count} free ports between {FREE_PORT_LOW} and {FREE_PORT_HIGH} on {host}")


def _socket_for(host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # As servers do: connections of a server that has just ended do not count.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return listener


def _bind(listener: socket.socket, host: str, port: int) -> int:
    """0, or the number of the error."""
    try:
        listener.bind((host, port))
    except OSError as error:
        return error.errno or errno.EIO
    return 0
