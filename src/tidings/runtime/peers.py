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
from contextlib import suppress
from functools import partial
from typing import Protocol, cast

from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import NONCE_BYTES, Acceptor, Dialler, HandshakeError, Hello
from tidings.protocol.errors import ProtocolError
from tidings.protocol.framing import FrameSplitter
from tidings.runtime import transport as transports

_LENGTH = struct.Struct(">I")
# A link that holds so many times the bytes at which no more appends are made for it drops what still comes.
_OVERFULL = 2


class PeerOwner(Protocol):
    """What a broker does with its peers' connections."""

    def own_hello(self) -> Hello: ...
    async def running(self) -> None: ...
    def may_link(self, address: Address, hello: Hello) -> bool: ...
    def peer_up(self, link: PeerLink, hello: Hello) -> bool: ...
    def peer_down(self, hello: Hello) -> None: ...
    def peer_gone(self, hello: Hello) -> None: ...
    def peer_writable(self, hello: Hello) -> None: ...
    def peer_accepted(self, accepted: AcceptedPeer, hello: Hello) -> None: ...
    def peer_frame(self, hello: Hello, frame: bytes) -> None: ...
    def peer_refused(self, address: str, reason: str) -> None: ...


class PeerLink:
    """The connection that this broker dials to one peer address, again and again until it is cancelled."""

    def __init__(self, owner: PeerOwner, address: Address, *, secret: bytes, config: Config) -> None:
        self.address = address
        self.hello: Hello | None = None  # the peer's, while the connection is up
        self._owner = owner
        self._secret = secret
        self._config = config
        self._dialled: _Dialled | None = None
        self._nudged = asyncio.Event()
        self._missed: Hello | None = None  # was connected, and has not been found again
        self._refusal = ""  # the reason told last: who is refused every second is told of once

    async def run(self) -> None:
        """Dial, hold, dial again with growing pauses."""
        loop = asyncio.get_running_loop()
        pause_ms = self._config.peer_reconnect_ms_min
        at_once_s = float("-inf")
        while True:
            await self._owner.running()
            lost: asyncio.Future[None] = loop.create_future()
            hello = await self._connect(lost)
            if hello is not None:
                begun_s = loop.time()
                await lost
                await self._owner.running()
                self.hello, self._missed = None, hello
                self._owner.peer_down(hello)
                now_s = loop.time()
                if now_s - begun_s >= pause_ms / 1000:
                    pause_ms = self._config.peer_reconnect_ms_min
                # One attempt at once: a peer that cannot be reached again counts as gone. But one that lets
                # us in and closes, again and again, must not have us do nothing else.
                if now_s - at_once_s >= pause_ms / 1000:
                    at_once_s = now_s
                    continue
            elif self._missed is not None:
                missed, self._missed = self._missed, None
                self._owner.peer_gone(missed)
            await self._rest(pause_ms)
            pause_ms = min(2 * pause_ms, self._config.peer_reconnect_ms_max)

    def nudge(self) -> None:
        """The peer lives: it is not to be waited for."""
        self._nudged.set()

    def miss(self, hello: Hello) -> None:
        """The peer's own connection to us ended while there is none from us to it: if it cannot be reached
        now, it is gone."""
        self._missed = hello
        self.nudge()

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Send one frame. Lost without a word where there is no connection, or one that is far too full: the
        log's protocol expects that."""
        if self.hello is None or self._dialled is None:
            return
        if self._dialled.buffered_bytes() <= _OVERFULL * self._config.peer_buffer_bytes_max:
            self._dialled.send(buffers)

    @property
    def is_full(self) -> bool:
        return (
            self._dialled is not None and self._dialled.buffered_bytes() > self._config.peer_buffer_bytes_max
        )

    def abort(self) -> None:
        if self._dialled is not None:
            self._dialled.abort()

    async def _rest(self, pause_ms: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._nudged.wait()
        self._nudged.clear()

    async def _connect(self, lost: asyncio.Future[None]) -> Hello | None:
        ready: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        dialled = self._dialled = _Dialled(
            Dialler(secret=self._secret, hello=self._owner.own_hello(), nonce=os.urandom(NONCE_BYTES)),
            ready,
            lost,
            may_link=partial(self._owner.may_link, self.address),
            writable=self._writable,
            buffer_bytes_max=self._config.peer_buffer_bytes_max,
        )
        is_up = False
        try:
            await transports.dial(
                lambda: dialled, self.address, timeout_ms=self._config.peer_connect_timeout_ms
            )
            async with asyncio.timeout(self._config.peer_handshake_timeout_ms / 1000):
                hello = await ready
            await self._owner.running()
            self.hello, self._refusal = hello, ""
            is_up = self._owner.peer_up(self, hello)
        except HandshakeError as error:
            self._refused(str(error))
        except OSError:
            pass  # nobody answers, or nobody who is wanted: it is tried again
        finally:
            if not is_up:
                self.hello = None
                dialled.abort()
        return self.hello

    def _writable(self) -> None:
        if self.hello is not None:
            self._owner.peer_writable(self.hello)

    def _refused(self, reason: str) -> None:
        if reason != self._refusal:
            self._refusal = reason
            self._owner.peer_refused(str(self.address), reason)


class _Dialled(asyncio.Protocol):
    """The protocol of a dialled connection: handshake, then it only sends."""

    def __init__(
        self,
        handshake: Dialler,
        ready: asyncio.Future[Hello],
        lost: asyncio.Future[None],
        *,
        may_link: Callable[[Hello], bool],
        writable: Callable[[], None],
        buffer_bytes_max: int,
    ) -> None:
        self._handshake = handshake
        self._ready = ready
        self._lost = lost
        self._may_link = may_link
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
            peer = self._handshake.peer
            if proof is None or peer is None:
                return
            # Decided before the proof is sent: the acceptor drops what this broker had when it takes that.
            if not self._may_link(peer):
                raise ConnectionAbortedError("there is a link to this peer already, or it is this broker")
        except (HandshakeError, OSError) as error:
            self._fail(error)
            self._transport.abort()
            return
        self._transport.write(proof)
        if not self._ready.done():
            self._ready.set_result(peer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionResetError("the peer closed during the handshake"))
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

    def _fail(self, error: Exception) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # seen: whoever waited may have timed out


class AcceptedPeer(asyncio.Protocol):
    """A connection that a peer dialled: handshake, then its frames go to the owner."""

    def __init__(
        self, owner: PeerOwner, closed: Callable[[AcceptedPeer], None], *, secret: bytes, config: Config
    ) -> None:
        self.hello: Hello | None = None  # the peer's, once it has proved itself
        self._owner = owner
        self._handshake_timeout_ms = config.peer_handshake_timeout_ms
        self._handshake: Acceptor | None = Acceptor(
            secret=secret, hello=owner.own_hello(), nonce=os.urandom(NONCE_BYTES)
        )
        self._splitter = FrameSplitter(config.peer_frame_bytes_max)
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._early = b""  # what came together with the proof

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A loop's own transports need not inherit from asyncio's class.
        transport = self._transport = cast("asyncio.Transport", transport)
        self._deadline = asyncio.get_running_loop().call_later(
            self._handshake_timeout_ms / 1000, transport.abort
        )
        if self._is_paused:
            transport.pause_reading()

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

    def pause(self) -> None:
        self._is_paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._transport is not None:
            self._transport.resume_reading()
            self._take_early()

    def _shake(self, handshake: Acceptor, data: bytes) -> None:
        assert self._transport is not None
        answer = handshake.receive(data)
        if answer is not None:
            self._transport.write(answer)
        if handshake.peer is not None:
            assert self._deadline is not None
            self._deadline.cancel()
            self._handshake = None
            self.hello = handshake.peer
            self._owner.peer_accepted(self, self.hello)
            self._early = handshake.rest
            if not self._is_paused:
                self._take_early()

    def _take_early(self) -> None:
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def _take(self, data: bytes) -> None:
        assert self.hello is not None
        assert self._transport is not None
        for frame in self._splitter.feed(data):
            if self._transport.is_closing():
                return  # an earlier one was none that a broker sends
            self._owner.peer_frame(self.hello, frame)
