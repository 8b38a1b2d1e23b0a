"""Where a TCP transport is made: every listener and every dialled connection of a broker passes through here.

Its one rule: nobody else calls the loop's `create_server` or `create_connection`, so that encryption has one
place to wrap a transport. Tests: tests/runtime/test_transport.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidings.config.address import Address

# A listen queue as long as the connection limit of one address: a whole fleet that reconnects at once is not
# refused.
_BACKLOG = 1024


async def listen(
    factory: Callable[[], asyncio.Protocol], address: Address, *, starts_serving: bool
) -> asyncio.Server:
    """Listen on the address; port 0 takes a free one. Raises OSError where the port is in use."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        factory,
        address.host,
        address.port,
        backlog=_BACKLOG,
        reuse_address=True,
        start_serving=starts_serving,
    )


async def dial(
    factory: Callable[[], asyncio.Protocol], address: Address, *, timeout_ms: int
) -> asyncio.BaseTransport:
    """Connect to the address, or raise OSError (TimeoutError is one)."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_ms / 1000):
        transport, _ = await loop.create_connection(factory, address.host, address.port)
    return transport


def bound_port(server: asyncio.Server) -> int:
    """The port that a listener got."""
    port: int = server.sockets[0].getsockname()[1]
    return port


def address_of(transport: asyncio.BaseTransport) -> str:
    """The other side's address, for events and limits; empty where there is none any more."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""
