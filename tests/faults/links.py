"""Links: a TCP proxy before every broker's peer port, so that each link between two brokers can be cut alone.

The one rule: bytes are passed on in order, late or never; nothing is changed. Who dials is read from the
handshake's first message, which is in the clear. Must not know: what brokers say to each other.

A link has a direction: frames flow from the dialler only, so cutting 1 -> 2 stops what 1 says to 2, while 2
goes on talking to 1. A silent cut holds bytes back, as a network does that drops packets: what was sent
before arrives when the link is healed, late. A hard one resets connections and refuses new ones.
"""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

T = TypeVar("T")

_OPENING: Final = struct.Struct(">4sHH32s")  # magic, format, hello bytes, nonce: see node/handshake.py
_CHUNK_BYTES: Final = 64 * 1024
_CHUNKS_UNDER_WAY_MAX: Final = 64
_ANSWER_S_MAX: Final = 10.0


@dataclass(slots=True)
class _Link:
    """One direction between two brokers. Used on the proxies' thread only."""

    passes: asyncio.Event = field(default_factory=asyncio.Event)
    is_refused: bool = False
    delay_s: float = 0.0
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def reset(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Links:
    """All links of a cluster. `ports` are those told to the brokers, by broker id: hand them to --join."""

    def __init__(self, peer_ports: dict[int, int]) -> None:
        self._peer_ports = peer_ports  # where the brokers listen
        self._links: dict[tuple[int, int], _Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links")
        self._thread.start()
        self.ports: dict[int, int] = self._do(self._listen())

    def cut(self, pairs: Iterable[tuple[int, int]], *, hard: bool = False) -> None:
        """Let nothing through from the first to the second of each pair."""
        self._do(self._cut(list(pairs), hard))

    def isolate(self, broker_id: int, *, hard: bool = False) -> None:
        """Cut a broker off from all others, both ways."""
        others = [other for other in self._peer_ports if other != broker_id]
        self.cut([pair for other in others for pair in ((broker_id, other), (other, broker_id))], hard=hard)

    def delay(self, pairs: Iterable[tuple[int, int]], seconds: float) -> None:
        self._do(self._delay(list(pairs), seconds))

    def heal(self) -> None:
        self._do(self._heal())

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- on the thread

    def _do(self, what: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(_ANSWER_S_MAX)

    async def _listen(self) -> dict[int, int]:
        for dialler in self._peer_ports:
            for acceptor in self._peer_ports:
                link = self._links[dialler, acceptor] = _Link()
                link.passes.set()
        self._servers = {
            broker_id: await asyncio.start_server(partial(self._serve, broker_id), "127.0.0.1", 0)
            for broker_id in self._peer_ports
        }
        return {broker_id: server.sockets[0].getsockname()[1] for broker_id, server in self._servers.items()}

    async def _cut(self, pairs: list[tuple[int, int]], hard: bool) -> None:
        for pair in pairs:
            link = self._links[pair]
            link.passes.clear()
            link.is_refused = hard
            if hard:
                link.reset()

    async def _delay(self, pairs: list[tuple[int, int]], seconds: float) -> None:
        for pair in pairs:
            self._links[pair].delay_s = seconds

    async def _heal(self) -> None:
        for link in self._links.values():
            link.is_refused = False
            link.delay_s = 0.0
            link.passes.set()

    async def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        for link in self._links.values():
            link.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, acceptor: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, EOFError):
                await self._pass_on(acceptor, reader, writer)
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _pass_on(
        self, acceptor: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        opening = await reader.readexactly(_OPENING.size)
        _, _, hello_bytes, _ = _OPENING.unpack(opening)
        hello = await reader.readexactly(hello_bytes)
        link = self._links[json.loads(hello)["broker_id"], acceptor]
        if link.is_refused:
            return
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._peer_ports[acceptor])
        writers = {writer, upstream}
        link.writers |= writers
        try:
            await link.passes.wait()
            upstream.write(opening + hello)
            ways = [
                asyncio.ensure_future(_pump(link, reader, upstream)),
                asyncio.ensure_future(_pump(link, upstream_reader, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            link.writers -= writers
            upstream.transport.abort()


async def _pump(link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One way of one connection, each chunk as late as the link says. Ends with either end."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_UNDER_WAY_MAX)

    async def take() -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            await under_way.put((loop.time() + link.delay_s, chunk))

    async def give() -> None:
        while True:
            due_s, chunk = await under_way.get()
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            await link.passes.wait()
            writer.write(chunk)
            await writer.drain()

    halves = [asyncio.ensure_future(take()), asyncio.ensure_future(give())]
    try:
        await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for half in halves:
            half.cancel()
        await asyncio.gather(*halves, return_exceptions=True)
