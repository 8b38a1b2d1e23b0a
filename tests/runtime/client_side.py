"""A broker as its clients' connections see it, and the requests that tests send over them."""

from __future__ import annotations

import struct

from tests.clients import wire
from tests.fakes.transport import FakeTransport
from tidings.broker.requests import Request
from tidings.config.options import Config
from tidings.protocol.messages.api_versions import ApiVersionsResponse
from tidings.protocol.schema import Message
from tidings.runtime.connection import ClientConnection
from tidings.runtime.memory import ClientMemory

START_MS = 1_000_000
MIB = 1024 * 1024


class Owner:
    """A broker whose answers are the test's."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.memory = ClientMemory(self.config.memory_bytes_max)
        self.is_paused = False
        self.time_ms = START_MS
        self.is_full = False
        self.requests: list[Request] = []
        self.answers_at_once = True
        self.mistake: Exception | None = None
        self.answer: Message = ApiVersionsResponse()
        self.with_output: list[ClientConnection] = []
        self.starving: list[ClientConnection] = []
        self.gone: list[ClientConnection] = []
        self.complaints: list[str] = []
        self.failures: list[tuple[int, Exception]] = []

    @property
    def buffered_bytes(self) -> int:
        memory = self.memory
        return memory.request_bytes + memory.begun_bytes + memory.waiting_bytes + memory.answer_bytes

    def now_ms(self) -> int:
        return self.time_ms

    def opened(self, connection: ClientConnection) -> bool:
        return not self.is_full

    def closed(self, connection: ClientConnection) -> None:
        self.gone.append(connection)

    def request(self, request: Request) -> Message | None:
        self.requests.append(request)
        if self.mistake is not None:
            raise self.mistake
        return self.answer if self.answers_at_once else None

    def has_output(self, connection: ClientConnection) -> None:
        self.with_output.append(connection)

    def starved(self, connection: ClientConnection) -> None:
        self.starving.append(connection)

    def misbehaved(self, connection: ClientConnection, reason: str) -> None:
        self.complaints.append(reason)

    def request_failed(self, connection: ClientConnection, api_key: int, error: Exception) -> None:
        self.failures.append((api_key, error))

    def turn(self) -> None:
        """What a broker does after it has handled its inputs."""
        ready, self.with_output = self.with_output, []
        for connection in ready:
            connection.write_output()
            connection.proceed()


def connect(owner: Owner) -> tuple[ClientConnection, FakeTransport]:
    connection = ClientConnection(owner, listener_host="127.0.0.1", listener_port=9_092)
    return connection, FakeTransport(connection)


def question(correlation: int) -> bytes:
    """ApiVersions 0: the shortest request there is."""
    return wire.frame(wire.API_VERSIONS, 0, b"", correlation=correlation)


def produce(correlation: int, *, acks: int = -1, value: bytes = b"v") -> bytes:
    body = wire.produce_body("t", wire.batch([value]), acks=acks)
    return wire.frame(wire.PRODUCE, 7, body, correlation=correlation)


def answered(sent: bytes) -> list[int]:
    """The correlation ids of the answers that were sent, in their order."""
    ids, position = [], 0
    while position < len(sent):
        length, correlation = struct.unpack_from(">ii", sent, position)
        ids.append(correlation)
        position += 4 + length
    return ids
