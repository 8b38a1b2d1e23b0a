"""Network: all connections to and from the other brokers, by who is at their end.

Its one rule: the owner hears of a peer when there is a way to send to it, and again when there is none; there
is one way to each peer, however many addresses lead there. It must not know what a frame says. Tests:
tests/runtime/test_network.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import Hello, check_cluster
from tidings.runtime import transport as transports
from tidings.runtime.peers import AcceptedPeer, PeerLink

# Connections whose other side has not proved itself yet. A cluster that starts has a few at a time; of more,
# the oldest go: none of ours takes so long.
_STRANGERS_MAX = 64


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
        self._links: dict[Address, PeerLink] = {}
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        self._link_by_member: dict[int, PeerLink] = {}  # those that are up
        self._full: set[int] = set()  # members whose connection takes no more
        self._accepted: dict[AcceptedPeer, None] = {}
        self._own: set[Address] = set()  # addresses that lead here
        self._has_begun = False
        self._is_running = asyncio.Event()
        self._is_running.set()

    async def listen(self) -> Address:
        """Listen, and return the address by which the other brokers know this one."""
        address = Address(self._config.peer_host, self._config.peer_port)
        self._server = await transports.listen(self._accept, address, starts_serving=True)
        bound = Address(address.host, transports.bound_port(self._server))
        told = self._config.advertise_peer
        own = Address.parse(told) if told else bound
        self._own |= {bound, own}
        return own

    def dial(self, addresses: Iterable[Address]) -> None:
        """Keep a link to each of these, and to every broker that is connected to this one; give up others
        that are down."""
        wanted = {*addresses, *self._addresses_of_accepted()} - self._own
        for address in wanted - self._links.keys():
            link = PeerLink(self, address, secret=self._secret, config=self._config)
            task = asyncio.get_running_loop().create_task(link.run(), name=f"peer {address}")
            task.add_done_callback(_link_ended)
            self._links[address], self._tasks[address] = link, task
        for address in self._links.keys() - wanted:
            if self._links[address].hello is None:
                del self._links[address]
                self._tasks.pop(address).cancel()

    def begin(self) -> None:
        """The owner knows its cluster, and can send and take frames: tell it of the peers that are connected
        already. Who said to be of no cluster, or of another one, has to say again who it is."""
        self._has_begun = True
        own = self._owner.own_hello()
        founders = {member for _, member in own.founders}
        ends: list[PeerLink | AcceptedPeer] = [*self._links.values(), *self._accepted]
        for end in ends:
            hello = end.hello
            is_ours = hello is None or hello.cluster_id == own.cluster_id
            if hello is not None and not is_ours and not (hello.is_blank and hello.member in founders):
                end.abort()
        for link in self._link_by_member.values():
            if link.hello is not None:
                self._owner.peer_up(link.hello)
        self._read_or_wait()

    def send(self, frames: Iterable[tuple[int, Sequence[bytes | memoryview]]]) -> None:
        """One frame each to a member. What finds no connection is lost."""
        for member, buffers in frames:
            link = self._link_by_member.get(member)
            if link is None or link.hello is None:
                continue
            link.send(buffers)
            if link.is_full and member not in self._full:
                self._full.add(member)
                self._owner.peer_paused(link.hello, paused=True)

    def drop(self, hello: Hello) -> None:
        """Close the connections by which this peer reaches us: it sends what no broker sends."""
        for accepted in list(self._accepted):
            if accepted.hello is not None and accepted.hello.member == hello.member:
                accepted.abort()

    def pause(self) -> None:
        """Read nothing, dial nobody, and tell the owner nothing."""
        self._is_running.clear()
        self._read_or_wait()

    def resume(self) -> None:
        self._is_running.set()
        self._read_or_wait()

    def abort(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks.values():
            task.cancel()
        for link in self._links.values():
            link.abort()
        for accepted in list(self._accepted):
            accepted.abort()

    async def close(self) -> None:
        self.abort()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # -- what links and accepted connections tell

    def own_hello(self) -> Hello:
        return self._owner.own_hello()

    async def running(self) -> None:
        await self._is_running.wait()

    def may_link(self, address: Address, hello: Hello) -> bool:
        """Whether a link to this peer is wanted. Raises HandshakeError for a broker of another cluster."""
        own = self._owner.own_hello()
        if hello.member == own.member:
            self._own.add(address)
            return False
        check_cluster(own, hello)
        return hello.member not in self._link_by_member

    def peer_up(self, link: PeerLink, hello: Hello) -> bool:
        """Whether the link is kept: another one to the same peer may have been quicker."""
        if hello.member in self._link_by_member:
            return False
        self._link_by_member[hello.member] = link
        self._owner.peer_seen(hello)
        self._owner.peer_up(hello)
        return True

    def peer_down(self, hello: Hello) -> None:
        del self._link_by_member[hello.member]
        if hello.member in self._full:
            self._full.discard(hello.member)
            self._owner.peer_paused(hello, paused=False)
        self._owner.peer_down(hello, refused=False)

    def peer_gone(self, hello: Hello) -> None:
        """It cannot be reached again by the link that it had."""
        if hello.member not in self._link_by_member:
            self._owner.peer_down(hello, refused=True)

    def peer_accepted(self, accepted: AcceptedPeer, hello: Hello) -> None:
        """The peer has proved itself. It has one connection to us: an older one is of a past that it may not
        know has ended. And it is to be reached by us as well. Raises HandshakeError as `may_link`."""
        check_cluster(self._owner.own_hello(), hello)
        for older in list(self._accepted):
            if older is not accepted and older.hello is not None and older.hello.member == hello.member:
                older.abort()
        self._read_or_wait()
        self._owner.peer_seen(hello)
        self.dial(self._links)
        link = self._links.get(Address.parse(hello.peer))
        if link is not None and link.hello is None:
            link.nudge()

    def peer_frame(self, hello: Hello, frame: bytes) -> None:
        self._owner.peer_frame(hello, frame)

    def peer_refused(self, address: str, reason: str) -> None:
        self._owner.peer_refused(address, reason)

    def peer_writable(self, hello: Hello) -> None:
        if hello.member in self._full:
            self._full.discard(hello.member)
            self._owner.peer_paused(hello, paused=False)

    # -- parts

    def _read_or_wait(self) -> None:
        """Frames that come before the owner can take them wait where they are: lost ones would be sent again
        after a second only. A handshake goes on."""
        for accepted in self._accepted:
            is_early = accepted.hello is not None and not self._has_begun
            if is_early or not self._is_running.is_set():
                accepted.pause()
            else:
                accepted.resume()

    def _addresses_of_accepted(self) -> set[Address]:
        hellos = [accepted.hello for accepted in self._accepted]
        return {Address.parse(hello.peer) for hello in hellos if hello is not None}

    def _accept(self) -> AcceptedPeer:
        accepted = AcceptedPeer(self, self._forget, secret=self._secret, config=self._config)
        strangers = [stranger for stranger in self._accepted if stranger.hello is None]
        if len(strangers) >= _STRANGERS_MAX:
            strangers[0].abort()
        self._accepted[accepted] = None
        self._read_or_wait()
        return accepted

    def _forget(self, accepted: AcceptedPeer) -> None:
        self._accepted.pop(accepted, None)
        hello = accepted.hello
        if hello is None or hello.member in self._link_by_member or self._has_other(hello.member):
            return
        link = self._links.get(Address.parse(hello.peer))
        if link is not None:
            link.miss(hello)

    def _has_other(self, member: int) -> bool:
        """Whether the peer has a newer connection to us."""
        return any(other.hello is not None and other.hello.member == member for other in self._accepted)


def _link_ended(task: asyncio.Task[None]) -> None:
    """A link ends by cancellation; by anything else, which is a mistake of ours, the broker does."""
    if not task.cancelled():
        context = {"message": f"the link {task.get_name()} ended", "exception": task.exception()}
        task.get_loop().call_exception_handler(context)
