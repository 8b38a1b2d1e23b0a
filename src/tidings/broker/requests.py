"""Request: one decoded request of a client, with the ways back to it.

The one rule: each request is answered at most once, by the message that `Broker.handle` returns or, if that
is None, by one later call of `answer`; never after `close`.
It must not know connections: who keeps answers in order and drops those nobody waits for stands behind the
two calls. Tests: tests/broker/test_dispatch.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidings.protocol.schema import Message

INT32_MAX = 2**31 - 1


def _unlimited() -> int:
    return INT32_MAX


def _nothing(_: int) -> None:
    return


@dataclass(slots=True)
class Request:
    """Never changed after it was made (not frozen: made once per request, on the hot path).

    `listener_host` and `listener_port` are the address the client reached this broker by. `close` ends the
    connection without an answer; its argument is the reason, for the log event. `room` tells how many bytes
    an answer may hold that is made now, `reserve` keeps as many for one that takes a while.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Message
    client_host: str
    listener_host: str
    listener_port: int
    answer: Callable[[Message], None]
    close: Callable[[str], None]
    room: Callable[[], int] = _unlimited
    reserve: Callable[[int], None] = _nothing
