"""Addresses: HOST:PORT as options, seeds and metadata write them.

Rule: one way to read one and one way to write one. Must not know: sockets. Tests:
tests/config/test_address.py
"""

from __future__ import annotations

from dataclasses import dataclass

_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host name or IP address and a port. An IPv6 address is written in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @staticmethod
    def parse(text: str) -> Address:
        """Read HOST:PORT; ValueError says what is wrong with it."""
        host, colon, port = text.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host:
            raise ValueError(f"'{text}' is not HOST:PORT")
        if not port.isascii() or not port.isdigit() or int(port) > _PORT_MAX:
            raise ValueError(f"'{text}': the port is not a number from 0 to {_PORT_MAX}")
        return Address(host, int(port))
