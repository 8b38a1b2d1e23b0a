"""All clients of a broker: who is let in, who is looked after, and how they are let go."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import struct
from collections.abc import Callable

import pytest

from tests.clients import wire
from tests.fakes.transport import FakeTransport
from tests.runtime.loops import run, until
from tidings.broker.requests import Request
from tidings.config.address import Address
from tidings.config.options import Config
from tidings.protocol.messages.api_versions import ApiVersionsResponse
from tidings.protocol.schema import Message
from tidings.runtime.clients import Clients
from tidings.runtime.connection import ClientConnection
from tidings.telemetry.events import open_log

START_MS = 1_000_000
TOO_MUCH = Config().memory_bytes_max + 1


class Broker:
    """What clients need of a broker: a clock and answers, both the test's."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config(kafka_port=0)
        self.time_ms = START_MS
        self.stream = io.StringIO()
        self.requests: list[Request] = []
        self.answer: Callable[[], Message | None] = ApiVersionsResponse
        self.wakes = 0
        self.clients = Clients(
            config=self.config,
            log=open_log(self.config, self.stream),
            now_ms=lambda: self.time_ms,
            handle=self._handle,
            wake=self._wake,
        )

    def connect(self, host: str = "127.0.0.1") -> FakeTransport:
        return FakeTransport(ClientConnection(self.clients, listener_host="", listener_port=0), host)

    def events(self) -> list[tuple[str, str]]:
        lines = map(json.loads, self.stream.getvalue().splitlines())
        return [(line["event"], line.get("reason", "")) for line in lines]

    def _handle(self, request: Request) -> Message | None:
        self.requests.append(request)
        return self.answer()

    def _wake(self) -> None:
        self.wakes += 1


def question(correlation: int = 1) -> bytes:
    return wire.frame(wire.API_VERSIONS, 0, b"", correlation=correlation)


# Who is let in


def test_an_address_may_not_take_all_connections() -> None:
    broker = Broker(Config(connections_per_address_max=2))

    first, second, third = (broker.connect("10.0.0.1") for _ in range(3))
    other = broker.connect("10.0.0.2")

    assert [each.was_aborted for each in (first, second, third, other)] == [False, False, True, False]
    assert broker.events() == [("connection_refused", "connections_per_address_max")]


def test_who_leaves_makes_room() -> None:
    broker = Broker(Config(connections_per_address_max=1))
    broker.connect("10.0.0.1").abort()

    assert not broker.connect("10.0.0.1").was_aborted


def test_who_was_refused_takes_no_room_by_leaving() -> None:
    broker = Broker(Config(connections_per_address_max=1))
    broker.connect("10.0.0.1")

    refused = [broker.connect("10.0.0.1") for _ in range(3)]

    assert all(each.was_aborted for each in refused)


def test_this_machine_s_own_programs_are_excepted() -> None:
    broker = Broker(Config(connections_per_address_max=1))

    assert not any(broker.connect(host).was_aborted for host in ("127.0.0.1", "127.0.0.1", "::1", "::1"))


def test_all_addresses_together_have_a_limit() -> None:
    broker = Broker(Config(connections_max=2))

    refused = [broker.connect(f"10.0.0.{number}").was_aborted for number in range(3)]

    assert refused == [False, False, True]
    assert broker.events() == [("connection_refused", "connections_max")]


# Turns


def test_what_was_answered_leaves_with_the_turn_that_it_asked_for() -> None:
    broker = Broker()
    transport = broker.connect()

    transport.receive(question())
    assert broker.wakes == 1
    assert transport.sent == b""
    broker.clients.write_output()

    assert transport.sent != b""


def test_connections_that_had_to_wait_for_memory_go_on_when_there_is_some() -> None:
    broker = Broker()
    starved = broker.connect()
    broker.clients.memory.request_bytes = broker.config.memory_bytes_max + 1
    starved.receive(question())
    broker.clients.write_output()
    assert broker.requests == []

    broker.clients.memory.end_request(broker.config.memory_bytes_max + 1)
    broker.clients.write_output()

    assert len(broker.requests) == 1


def test_one_that_starves_and_leaves_is_forgotten() -> None:
    broker = Broker()
    starved = broker.connect()
    broker.clients.memory.request_bytes = broker.config.memory_bytes_max + 1
    starved.receive(question())

    starved.abort()
    broker.clients.memory.end_request(broker.config.memory_bytes_max + 1)
    broker.clients.write_output()

    assert broker.requests == []


def test_a_pause_stops_all_reading_and_a_resume_goes_on_with_what_was_held() -> None:
    broker = Broker()
    before = broker.connect()
    broker.clients.pause()
    meanwhile = broker.connect()
    assert before.is_reading_paused
    assert meanwhile.is_reading_paused

    broker.clients.resume()
    before.receive(question())
    meanwhile.receive(question())

    assert len(broker.requests) == 2


# What is told


def test_a_client_that_misbehaves_is_one_event() -> None:
    broker = Broker()

    broker.connect().receive(b"GET / HTTP/1.1\r\n\r\n")

    ((event, reason),) = broker.events()
    assert event == "connection_closed"
    assert "bad frame length" in reason


def test_a_mistake_of_ours_is_told_with_where_it_happened(capsys: pytest.CaptureFixture[str]) -> None:
    broker = Broker()

    def fail() -> None:
        raise ZeroDivisionError("a mistake")

    broker.answer = fail
    others = broker.connect()
    broker.connect().receive(question())

    assert broker.events() == [("request_failed", "ZeroDivisionError('a mistake')")]
    assert "in fail" in capsys.readouterr().err
    assert not others.was_aborted


# On real sockets


def test_what_cannot_be_surfaces_on_the_loop_which_ends_the_broker() -> None:
    async def work() -> None:
        surfaced: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: surfaced.append(context["exception"]))
        broker = Broker()
        impossible = AssertionError("impossible")

        def fail() -> None:
            raise impossible

        broker.answer = fail
        address = await broker.clients.listen()
        await broker.clients.serve()
        _, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(question())

        await until(lambda: surfaced == [impossible], "the mistake")
        assert broker.events() == []
        writer.close()
        broker.clients.abort()

    run(work())


def test_nobody_is_taken_before_the_broker_serves() -> None:
    async def work() -> None:
        broker = Broker()
        address = await broker.clients.listen()
        with socket.socket() as early:
            assert early.connect_ex((address.host, address.port)) != 0

        await broker.clients.serve()
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(question())
        await until(lambda: bool(broker.requests), "a request")
        broker.clients.write_output()

        assert len(await reader.readexactly(4)) == 4
        assert broker.requests[0].listener_port == address.port
        writer.close()
        broker.clients.abort()

    run(work())


def test_the_end_lets_what_was_answered_leave_first() -> None:
    async def work() -> bytes:
        broker = Broker()
        address = await broker.clients.listen()
        await broker.clients.serve()
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(question())
        await until(lambda: bool(broker.requests), "a request")

        await broker.clients.close()

        answer = await reader.read()
        writer.close()
        return answer

    assert len(run(work())) > 8


def test_who_stalls_is_closed_early_where_others_wait_for_the_memory_it_holds() -> None:
    large = struct.pack(">i", 16 * 1024 * 1024) + b"begun"

    async def work() -> None:
        broker = Broker(Config(kafka_port=0, memory_bytes_max=32 * 1024 * 1024))
        stalled, waiting = broker.connect(), broker.connect()
        stalled.receive(large)
        waiting.receive(large)
        assert (stalled.is_reading_paused, waiting.is_reading_paused) == (False, True)

        broker.time_ms += broker.config.stalled_client_ms_max + 1
        await broker.clients.listen()
        await broker.clients.serve()
        await until(lambda: not waiting.is_reading_paused, "room for the one that waits")

        ((event, reason),) = broker.events()
        assert event == "connection_closed"
        assert reason.startswith("sent no byte")
        broker.clients.abort()

    run(work())


def test_a_client_that_takes_nothing_does_not_hold_up_the_end() -> None:
    async def work() -> None:
        broker = Broker()
        address = await broker.clients.listen()
        await broker.clients.serve()
        with socket.create_connection((address.host, address.port)) as stuck:
            connections = broker.clients._connections
            await until(lambda: len(connections) == 1, "a connection")
            (connection,) = connections
            connection._output.append(bytes(32 * 1024 * 1024))  # more than the system buffers

            await broker.clients.close()
            await until(lambda: not connections, "the end of the connection")
            assert stuck.fileno() >= 0

    run(work())


def test_a_port_in_use_is_told() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            broker = Broker(Config(kafka_port=taken.getsockname()[1]))
            with pytest.raises(OSError, match="in use"):
                await broker.clients.listen()
            broker.clients.abort()

    run(work())


def test_the_bound_address_is_the_one_listened_on() -> None:
    async def work() -> Address:
        broker = Broker()
        address = await broker.clients.listen()
        broker.clients.abort()
        return address

    assert run(work()).port > 0
