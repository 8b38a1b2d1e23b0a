"""The one place where sockets of a broker are made."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from tests.runtime.loops import run, until
from tidings.config.address import Address
from tidings.runtime import transport


class Ear(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.client = ""

    def connection_made(self, made: asyncio.BaseTransport) -> None:
        self.client = transport.address_of(made)

    def data_received(self, data: bytes) -> None:
        self.heard += data


def test_what_is_dialled_is_what_listens() -> None:
    async def work() -> None:
        ear = Ear()
        server = await transport.listen(lambda: ear, Address("127.0.0.1", 0), starts_serving=True)
        address = Address("127.0.0.1", transport.bound_port(server))

        dialled = cast("asyncio.Transport", await transport.dial(asyncio.Protocol, address, timeout_ms=5_000))
        dialled.write(b"hello")
        await until(lambda: ear.heard == b"hello", "what was sent")
        dialled.close()
        server.close()

        assert ear.client == "127.0.0.1"

    run(work())


def test_a_listener_may_be_bound_before_it_serves() -> None:
    async def work() -> None:
        server = await transport.listen(Ear, Address("127.0.0.1", 0), starts_serving=False)
        port = transport.bound_port(server)

        with socket.socket() as probe:
            refused = probe.connect_ex(("127.0.0.1", port))
        await server.start_serving()
        with socket.socket() as probe:
            taken = probe.connect_ex(("127.0.0.1", port))
        server.close()

        assert refused != 0
        assert taken == 0

    run(work())


def test_a_port_in_use_is_told() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = Address("127.0.0.1", taken.getsockname()[1])
            with pytest.raises(OSError, match="in use"):
                await transport.listen(Ear, address, starts_serving=True)

    run(work())


def test_dialling_nobody_is_told_at_once() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            address = Address("127.0.0.1", gone.getsockname()[1])
        with pytest.raises(ConnectionRefusedError):
            await transport.dial(asyncio.Protocol, address, timeout_ms=5_000)

    run(work())


def test_dialling_somebody_who_does_not_answer_ends_in_time() -> None:
    async def work() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = Address("127.0.0.1", full.getsockname()[1])
            # The queue of a listener that accepts nobody takes one or two; who comes later gets no answer.
            waiting = [socket.socket() for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", address.port))
            with pytest.raises(TimeoutError):
                await transport.dial(asyncio.Protocol, address, timeout_ms=50)
            for each in waiting:
                each.close()

    run(work())


def test_a_transport_without_another_side_has_no_address() -> None:
    assert transport.address_of(asyncio.BaseTransport()) == ""
