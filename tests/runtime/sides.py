"""Brokers as their peers see them: a network of connections, and an owner that notes what it is told.

The one rule: real sockets on loopback, and nothing of a node. It must not know what a test expects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import Acceptor, Dialler, Hello
from tidings.runtime.network import PeerNetwork

SECRET = b"s" * 32
Told = tuple[str | int | bool | bytes, ...]


def config(
    *, peer_handshake_timeout_ms: int = 5_000, peer_buffer_bytes_max: int = 16 * 1024 * 1024
) -> Config:
    return Config(
        peer_port=0,
        peer_reconnect_ms_min=1,
        peer_reconnect_ms_max=10,
        peer_handshake_timeout_ms=peer_handshake_timeout_ms,
        peer_buffer_bytes_max=peer_buffer_bytes_max,
    )


def hello(broker_id: int, **changes: object) -> Hello:
    known = Hello(
        cluster_id="",
        broker_id=broker_id,
        directory=f"{broker_id:016x}" * 2,
        seeds=(),
        peer=f"127.0.0.1:{broker_id}",
        kafka="127.0.0.1:9092",
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # names and types are the tests' own


class Side:
    """One broker's end of its connections; its member is its broker id. `told` is what its owner heard."""

    def __init__(
        self, broker_id: int, *, secret: bytes = SECRET, options: Config | None = None, cluster_id: str = ""
    ) -> None:
        self.hello = hello(broker_id, cluster_id=cluster_id)
        self.told: list[Told] = []
        self.mistake: Exception | None = None
        self.drops_senders = False  # whatever is sent is none that a broker sends
        self.network = PeerNetwork(self, config=options or config(), secret=secret)

    @property
    def address(self) -> Address:
        return Address.parse(self.hello.peer)

    async def listen(self) -> None:
        self.hello = replace(self.hello, peer=str(await self.network.listen()))

    def count(self, *told: object) -> int:
        return sum(each[: len(told)] == told for each in self.told)

    def frames(self) -> list[bytes]:
        return [each[2] for each in self.told if each[0] == "frame" and isinstance(each[2], bytes)]

    # -- NetworkOwner

    def own_hello(self) -> Hello:
        return self.hello

    def peer_seen(self, hello: Hello) -> None:
        self.told.append(("seen", hello.broker_id))

    def peer_up(self, hello: Hello) -> None:
        if self.mistake is not None:
            raise self.mistake
        self.told.append(("up", hello.broker_id))

    def peer_down(self, hello: Hello, *, refused: bool) -> None:
        self.told.append(("gone" if refused else "down", hello.broker_id))

    def peer_frame(self, hello: Hello, frame: bytes) -> None:
        self.told.append(("frame", hello.broker_id, frame))
        if self.drops_senders:
            self.network.drop(hello)

    def peer_refused(self, address: str, reason: str) -> None:
        self.told.append(("refused", address, reason))

    def peer_paused(self, hello: Hello, *, paused: bool) -> None:
        self.told.append(("paused", hello.broker_id, paused))


@asynccontextmanager
async def listening(*sides: Side) -> AsyncIterator[None]:
    """The sides listen, and have begun to take frames."""
    try:
        for side in sides:
            await side.listen()
            side.network.begin()
        yield
    finally:
        for side in sides:
            await side.network.close()


class RawPeer:
    """A broker that a test speaks for, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @staticmethod
    async def dial(address: Address) -> RawPeer:
        return RawPeer(*await asyncio.open_connection(address.host, address.port))

    async def shake_as_dialler(self, own: Hello, *, secret: bytes = SECRET) -> None:
        dialler = Dialler(secret=secret, hello=own, nonce=b"d" * 32)
        self.writer.write(dialler.opening)
        proof = None
        while proof is None:
            proof = dialler.receive(await self._some())
        self.writer.write(proof)

    async def shake_as_acceptor(self, own: Hello, *, secret: bytes = SECRET) -> Hello:
        acceptor = Acceptor(secret=secret, hello=own, nonce=b"a" * 32)
        while acceptor.peer is None:
            answer = acceptor.receive(await self._some())
            if answer is not None:
                self.writer.write(answer)
        return acceptor.peer

    async def is_closed(self) -> bool:
        """Waits for the other side to close; what it says before is skipped."""
        try:
            while await self.reader.read(65_536):
                continue
        except ConnectionError:
            return True
        return True

    def close(self) -> None:
        self.writer.close()

    async def _some(self) -> bytes:
        received = await self.reader.read(65_536)
        if not received:
            raise ConnectionResetError("closed by the other side")
        return received


@asynccontextmanager
async def raw_listener(
    at: Address = Address("127.0.0.1", 0),  # noqa: B008 - a value that nobody can change
) -> AsyncIterator[tuple[Address, asyncio.Queue[RawPeer]]]:
    """A listener that a test speaks for: its address, and who connects."""
    arrived: asyncio.Queue[RawPeer] = asyncio.Queue()
    peers: list[RawPeer] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(RawPeer(reader, writer))
        arrived.put_nowait(peers[-1])

    server = await asyncio.start_server(accept, at.host, at.port)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), arrived
    finally:
        server.close()
        for peer in peers:
            peer.close()
