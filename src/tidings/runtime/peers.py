"""Connections between brokers: each broker dials every other one and sends on what it dialled.

Its one rule: no frame is taken from, or sent to, a connection whose other side has not proved itself
(node/handshake). It knows frames as bytes only; what they say is the node's matter. Tests:
tests/runtime/test_peers.py

A frame is u32 length (big endian) | body. Frames flow from the dialler to the acceptor.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import NONCE_BYTES, Acceptor, Dialler, HandshakeError, Hello
from tidings.protocol.errors import ProtocolError
from tidings.protocol.framing import FrameSplitter
from tidings.runtime import transport as transports

_LENGTH = struct.Struct(">I")


class PeerOwner(Protocol):
    """What a broker does with its peers' connections."""

    def own_hello(self) -> Hello: ...
    def peer_seen(self, hello: Hello) -> None: ...
    def peer_up(self, link: PeerLink, hello: Hello) -> None: ...
    def peer_down(self, hello: Hello, *, refused: bool) -> None: ...
    def peer_frame(self, hello: Hello, frame: bytes) -> None: ...
    def peer_refused(self, address: str, reason: str) -> None: ...
    def peer_writable(self, hello: Hello) -> None: ...


class PeerLink:
    """The connection that this broker dials to one peer address, again and again until it is closed."""

    def __init__(self, owner: PeerOwner, address: Address, *, secret: bytes, config: Config) -> None:
        self.address = address
        self.hello: Hello | None = None  # the peer's, while the connection is up
        self._owner = owner
        self._secret = secret
        self._config = config
        self._dialled: _Dialled | None = None

    async def run(self) -> None:
        """Dial, hold, dial again with growing pauses. Ends by cancellation only."""
        pause_ms = self._config.peer_reconnect_ms_min
        last_hello: Hello | None = None
        while True:
            lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            hello = await self._connect(lost)
            if hello is not None:
                pause_ms = self._config.peer_reconnect_ms_min
                last_hello = hello
                await lost
                self.hello = None
                self._owner.peer_down(hello, refused=False)
                continue  # one attempt at once: a peer that cannot be reached again counts as gone
            if last_hello is not None:
                self._owner.peer_down(last_hello, refused=True)
                last_hello = None
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, self._config.peer_reconnect_ms_max)

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Send one frame. Lost without a word when the connection is down: the log's protocol expects
        that."""
        if self.hello is not None and self._dialled is not None:
            self._dialled.send(buffers)

    @property
    def is_full(self) -> bool:
        return (
            self._dialled is not None and self._dialled.buffered_bytes() > self._config.peer_buffer_bytes_max
        )

    def _writable(self) -> None:
        if self.hello is not None:
            self._owner.peer_writable(self.hello)

    def close(self) -> None:
        if self._dialled is not None:
            self._dialled.abort()

    async def _connect(self, lost: asyncio.Future[None]) -> Hello | None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Hello] = loop.create_future()
        handshake = Dialler(secret=self._secret, hello=self._owner.own_hello(), nonce=os.urandom(NONCE_BYTES))
        dialled = _Dialled(handshake, ready, lost, self._writable, self._config.peer_buffer_bytes_max)
        try:
            await transports.dial(
                lambda: dialled, self.address, timeout_ms=self._config.peer_connect_timeout_ms
            )
            async with asyncio.timeout(self._config.peer_handshake_timeout_ms / 1000):
                hello = await ready
        except HandshakeError as error:
            dialled.abort()
            self._owner.peer_refused(str(self.address), str(error))
            return None
        except OSError:
            dialled.abort()
            return None
        self._dialled = dialled
        self.hello = hello
        self._owner.peer_seen(hello)
        self._owner.peer_up(self, hello)
        return hello


class _Dialled(asyncio.Protocol):
    """The protocol of a dialled connection: handshake, then it only sends."""

    def __init__(
        self,
        handshake: Dialler,
        ready: asyncio.Future[Hello],
        lost: asyncio.Future[None],
        writable: Callable[[], None],
        buffer_bytes_max: int,
    ) -> None:
        self._handshake = handshake
        self._ready = ready
        self._lost = lost
        self._writable = writable
        self._buffer_bytes_max = buffer_bytes_max
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A loop's own transports need not inherit from asyncio's class.
        transport = self._transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=self._buffer_bytes_max)
        transport.write(self._handshake.opening)

    def resume_writing(self) -> None:
        self._writable()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._handshake.peer is not None:
            self._transport.abort()  # the acceptor never sends after the handshake
            return
        try:
            proof = self._handshake.receive(data)
        except HandshakeError as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            self._transport.abort()
            return
        if proof is not None and self._handshake.peer is not None:
            self._transport.write(proof)
            if not self._ready.done():
                self._ready.set_result(self._handshake.peer)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ready.done():
            self._ready.set_exception(ConnectionResetError("the peer closed during the handshake"))
            self._ready.exception()  # seen: whoever waited has timed out or been cancelled
        if not self._lost.done():
            self._lost.set_result(None)

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return  # lost already; `connection_lost` is about to say so
        length = sum(map(len, buffers))
        self._transport.writelines([_LENGTH.pack(length), *buffers])

    def buffered_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class AcceptedPeer(asyncio.Protocol):
    """A connection that a peer dialled: handshake, then its frames go to the owner."""

    def __init__(
        self, owner: PeerOwner, closed: Callable[[AcceptedPeer], None], *, secret: bytes, config: Config
    ) -> None:
        self._owner = owner
        self._handshake_timeout_ms = config.peer_handshake_timeout_ms
        self._handshake: Acceptor | None = Acceptor(
            secret=secret, hello=owner.own_hello(), nonce=os.urandom(NONCE_BYTES)
        )
        self._splitter = FrameSplitter(config.peer_frame_bytes_max)
        self._closed = closed
        self.hello: Hello | None = None  # the peer's, once it has proved itself
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A loop's own transports need not inherit from asyncio's class.
        transport = self._transport = cast("asyncio.Transport", transport)
        self._deadline = asyncio.get_running_loop().call_later(
            self._handshake_timeout_ms / 1000, transport.abort
        )

    def data_received(self, data: bytes) -> None:
        try:
            if self._handshake is not None:
                self._shake(self._handshake, data)
            else:
                self._take(data)
        except (HandshakeError, ProtocolError) as error:
            assert self._transport is not None
            self._owner.peer_refused(transports.address_of(self._transport), str(error))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._closed(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _shake(self, handshake: Acceptor, data: bytes) -> None:
        assert self._transport is not None
        answer = handshake.receive(data)
        if answer is not None:
            self._transport.write(answer)
        if handshake.peer is not None:
            assert self._deadline is not None
            self._deadline.cancel()
            self.hello = handshake.peer
            self._handshake = None
            self._owner.peer_seen(self.hello)
            if handshake.rest:
                self._take(handshake.rest)

    def _take(self, data: bytes) -> None:
        assert self.hello is not None
        for frame in self._splitter.feed(data):
            self._owner.peer_frame(self.hello, frame)
