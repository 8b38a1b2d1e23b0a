"""Network: all connections to and from the other brokers, by who is at their end.

Its one rule: the owner hears of a peer when there is a way to send to it, and again when there is none.
It must not know what a frame says. Tests: tests/runtime/test_network.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import Hello
from tidings.runtime import transport as transports
from tidings.runtime.peers import AcceptedPeer, PeerLink


class NetworkOwner(Protocol):
    """What a broker does with its peers."""

    def own_hello(self) -> Hello: ...
    def peer_seen(self, hello: Hello) -> None: ...
    def peer_up(self, hello: Hello) -> None: ...
    def peer_down(self, hello: Hello, *, refused: bool) -> None: ...
    def peer_frame(self, hello: Hello, frame: bytes) -> None: ...
    def peer_refused(self, address: str, reason: str) -> None: ...
    def peer_paused(self, hello: Hello, *, paused: bool) -> None: ...


class PeerNetwork:
    """The links this broker dials, and the connections it accepted."""

    def __init__(self, owner: NetworkOwner, *, config: Config, secret: bytes) -> None:
        self._owner = owner
        self._config = config
        self._secret = secret
        self._server: asyncio.Server | None = None
        self._links: dict[Address, asyncio.Task[None]] = {}
        self._link_by_address: dict[Address, PeerLink] = {}
        self._link_by_member: dict[int, PeerLink] = {}
        self._paused: set[int] = set()
        self._accepted: dict[AcceptedPeer, None] = {}
        self._own: Address | None = None

    async def listen(self) -> Address:
        """Listen, and return the address by which the other brokers know this one."""
        address = Address(self._config.peer_host, self._config.peer_port)
        self._server = await transports.listen(self._accept, address, starts_serving=True)
        bound = Address(address.host, transports.bound_port(self._server))
        told = self._config.advertise_peer
        self._own = Address.parse(told) if told else bound
        return self._own

    def dial(self, addresses: Iterable[Address]) -> None:
        """Keep a link to each of these."""
        for address in addresses:
            if address == self._own or address in self._links:
                continue
            link = PeerLink(self, address, secret=self._secret, config=self._config)
            self._link_by_address[address] = link
            self._links[address] = asyncio.get_running_loop().create_task(link.run(), name=f"peer {address}")

    def begin(self) -> None:
        """The owner is ready to send: tell it of the peers that are connected already."""
        for link in self._link_by_member.values():
            if link.hello is not None:
                self._owner.peer_up(link.hello)

    def send(self, frames: Iterable[tuple[int, Sequence[bytes | memoryview]]]) -> None:
        """One frame each to a member. What finds no connection is lost."""
        for member, buffers in frames:
            link = self._link_by_member.get(member)
            if link is None or link.hello is None:
                continue
            link.send(buffers)
            if link.is_full:
                self._pause(link.hello)

    def drop(self, hello: Hello) -> None:
        """Close the connections by which this peer reaches us: it sends what no broker sends."""
        for accepted in list(self._accepted):
            if accepted.hello is not None and accepted.hello.member == hello.member:
                accepted.abort()

    def abort(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in self._link_by_address.values():
            link.close()
        for accepted in list(self._accepted):
            accepted.abort()

    async def close(self) -> None:
        for task in self._links.values():
            task.cancel()
        await asyncio.gather(*self._links.values(), return_exceptions=True)
        self.abort()

    # -- what links tell

    def own_hello(self) -> Hello:
        return self._owner.own_hello()

    def peer_seen(self, hello: Hello) -> None:
        self._owner.peer_seen(hello)

    def peer_up(self, link: PeerLink, hello: Hello) -> None:
        self._link_by_member[hello.member] = link
        self._owner.peer_up(hello)

    def peer_down(self, hello: Hello, *, refused: bool) -> None:
        self._paused.discard(hello.member)
        self._owner.peer_down(hello, refused=refused)

    def peer_frame(self, hello: Hello, frame: bytes) -> None:
        self._owner.peer_frame(hello, frame)

    def peer_refused(self, address: str, reason: str) -> None:
        self._owner.peer_refused(address, reason)

    def peer_writable(self, hello: Hello) -> None:
        if hello.member in self._paused:
            self._paused.discard(hello.member)
            self._owner.peer_paused(hello, paused=False)

    def _pause(self, hello: Hello) -> None:
        if hello.member not in self._paused:
            self._paused.add(hello.member)
            self._owner.peer_paused(hello, paused=True)

    def _accept(self) -> AcceptedPeer:
        accepted = AcceptedPeer(self, self._forget, secret=self._secret, config=self._config)
        self._accepted[accepted] = None
        return accepted

    def _forget(self, accepted: AcceptedPeer) -> None:
        self._accepted.pop(accepted, None)
