"""Clients: the listener for Kafka clients and all its connections.

Its one rule: limits that hold for all connections together are kept here, those of one in connection.py.
It must not know what a request means. Tests: tests/runtime/test_clients.py
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable

from tidings.broker.requests import Request
from tidings.config.address import Address
from tidings.config.options import Config, is_loopback
from tidings.protocol.schema import Message
from tidings.runtime import transport as transports
from tidings.runtime.connection import ClientConnection
from tidings.runtime.memory import ClientMemory
from tidings.telemetry.events import EventLog

_DRAIN_S_MAX = 0.5  # at the end, for answers that were given and are not sent yet
_SWEEP_S = 1.0  # how often silent and slow connections are looked for; their limits are far longer
_SWEEP_HURRIED_S = 0.25  # the same, while connections wait for the memory that others hold


class Clients:
    """All client connections of one broker."""

    def __init__(
        self,
        *,
        config: Config,
        log: EventLog,
        now_ms: Callable[[], int],
        handle: Callable[[Request], Message | None],
        wake: Callable[[], None],
    ) -> None:
        self.config = config
        self.memory = ClientMemory(config.memory_bytes_max)
        self.is_paused = False
        self.now_ms = now_ms
        self.request = handle
        self._log = log
        self._wake = wake
        self._server: asyncio.Server | None = None
        self._connections: dict[ClientConnection, None] = {}
        self._count_by_address: Counter[str] = Counter()
        self._with_output: list[ClientConnection] = []
        self._starved: dict[ClientConnection, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None

    async def listen(self) -> Address:
        """Bind; connections are accepted after `serve`. The address that was bound."""
        address = Address(self.config.kafka_host, self.config.kafka_port)
        self._server = await transports.listen(self._connection, address, starts_serving=False)
        return Address(address.host, transports.bound_port(self._server))

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.start_serving()
        self._schedule_sweep()

    def write_output(self) -> None:
        """Send what was answered in this turn, one write per connection; then let waiting ones go on."""
        ready, self._with_output = self._with_output, []
        for connection in ready:
            connection.write_output()
            connection.proceed()
        if self._starved and self.memory.take_freed():
            self._feed_starved()

    def pause(self) -> None:
        """Read nothing and begin no request until `resume`."""
        self.is_paused = True
        for connection in self._connections:
            connection.proceed()

    def resume(self) -> None:
        self.is_paused = False
        self._feed_starved()

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close("")
        if self._connections:
            self._drained = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._drained}, timeout=_DRAIN_S_MAX)
        self.abort()

    def abort(self) -> None:
        """Drop the listener and all connections at once."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()

    # -- what a connection tells

    def opened(self, connection: ClientConnection) -> bool:
        host = connection.client_host
        if len(self._connections) >= self.config.connections_max:
            self._log.event("connection_refused", reason="connections_max", client=host)
            return False
        if not is_loopback(host) and self._count_by_address[host] >= self.config.connections_per_address_max:
            self._log.event("connection_refused", reason="connections_per_address_max", client=host)
            return False
        self._connections[connection] = None
        self._count_by_address[host] += 1
        return True

    def closed(self, connection: ClientConnection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._starved.pop(connection, None)
        self._count_by_address[connection.client_host] -= 1
        if not self._count_by_address[connection.client_host]:
            del self._count_by_address[connection.client_host]
        if not self._connections and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def has_output(self, connection: ClientConnection) -> None:
        self._with_output.append(connection)
        self._wake()

    def starved(self, connection: ClientConnection) -> None:
        self._starved[connection] = None

    def misbehaved(self, connection: ClientConnection, reason: str) -> None:
        self._log.event("connection_closed", client=connection.client_host, reason=reason)

    def request_failed(self, connection: ClientConnection, api_key: int, error: Exception) -> None:
        traceback.print_exception(error)
        self._log.error("request_failed", client=connection.client_host, api_key=api_key, reason=repr(error))

    # -- parts

    def _connection(self) -> ClientConnection:
        assert self._server is not None
        return ClientConnection(
            self, listener_host=self.config.kafka_host, listener_port=transports.bound_port(self._server)
        )

    def _schedule_sweep(self) -> None:
        pause_s = _SWEEP_HURRIED_S if self._starved else _SWEEP_S
        self._sweep = asyncio.get_running_loop().call_later(pause_s, self._look_for_idle)

    def _look_for_idle(self) -> None:
        self._schedule_sweep()
        if not self.is_paused:
            now_ms = self.now_ms()
            config = self.config
            # Who holds memory that nobody waits for may take long.
            stalled_ms_max = config.stalled_client_ms_max if self._starved else config.slow_reader_ms_max
            for connection in list(self._connections):
                connection.check_progress(now_ms, stalled_ms_max)
            if self.memory.take_freed():
                self._feed_starved()

    def _feed_starved(self) -> None:
        """Who needs least goes first: a client with little to say waits for none of those with much."""
        starved, self._starved = self._starved, {}
        for connection in sorted(starved, key=ClientConnection.wanted_bytes):
            connection.proceed()
