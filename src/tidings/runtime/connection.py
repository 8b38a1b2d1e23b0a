"""One client's connection: frames in, requests out to the node, answers back in the order of the requests.

Its one rule: whatever the client does, it costs this connection bounded memory and disturbs no other. Reading
stops while as many requests as allowed are unanswered, while the client does not read its answers, and while
the whole broker holds as much as it may. It must not know what a request means. Tests:
tests/runtime/test_connection.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, cast

from tidings.broker.requests import Request
from tidings.config.options import Config
from tidings.protocol.codec import API_VERSIONS, ApiKey, request_decoder
from tidings.protocol.errors import ProtocolError
from tidings.protocol.framing import FrameSplitter, RequestHeader, encode_response_frame, parse_request_header
from tidings.protocol.messages.api_versions import ApiVersionsRequest
from tidings.protocol.messages.produce import ProduceRequest
from tidings.protocol.schema import Message
from tidings.runtime import transport as transports
from tidings.runtime.memory import ClientMemory

# Answers wait in the transport up to this before the connection counts as slow and no more requests are taken
# from it.
_WRITE_BUFFER_BYTES_HIGH = 1024 * 1024
# A request without records is at most this part of the largest: names of all topics fit, several times over.
_PLAIN_PART = 4
_FETCH = ApiKey.FETCH.to_bytes(2, "big")  # what the frame of such a request begins with


class ConnectionOwner(Protocol):
    """What a broker does for its connections."""

    config: Config
    memory: ClientMemory  # of all connections
    is_paused: bool  # the whole broker stands still

    def now_ms(self) -> int: ...
    def opened(self, connection: ClientConnection) -> bool: ...
    def closed(self, connection: ClientConnection) -> None: ...
    def request(self, request: Request) -> Message | None: ...
    def has_output(self, connection: ClientConnection) -> None: ...
    def starved(self, connection: ClientConnection) -> None: ...
    def misbehaved(self, connection: ClientConnection, reason: str) -> None: ...
    def request_failed(self, connection: ClientConnection, api_key: int, error: Exception) -> None: ...


class _Slot:
    """The place of one request's answer among the connection's answers."""

    __slots__ = (
        "api_key",
        "api_version",
        "buffers",
        "connection",
        "correlation_id",
        "frame_bytes",
        "is_done",
        "reserved_bytes",
    )

    def __init__(self, connection: ClientConnection, header: RequestHeader, frame_bytes: int) -> None:
        self.connection = connection
        self.api_key = header.api_key
        self.api_version = header.api_version
        self.correlation_id = header.correlation_id
        self.frame_bytes = frame_bytes
        self.buffers: list[bytes | memoryview] = []
        self.is_done = False
        self.reserved_bytes = 0  # of the memory for answers, until this one is made

    def room(self) -> int:
        return self.connection.memory.answer_room_bytes

    def reserve(self, byte_count: int) -> None:
        if not self.is_done:
            self.reserved_bytes += byte_count
            self.connection.memory.change_answers(byte_count)

    def answer(self, message: Message) -> None:
        if self.is_done:
            return  # the connection was closed meanwhile
        try:
            self.buffers = encode_response_frame(self.api_key, self.api_version, self.correlation_id, message)
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - one request's answer, at its very end: others go on
            self.connection.failed(self.api_key, error)
            return
        self.is_done = True
        self.connection.answered()

    def close(self, reason: str) -> None:
        self.connection.close(reason)


class ClientConnection(asyncio.Protocol):
    """The protocol of one accepted connection."""

    def __init__(self, owner: ConnectionOwner, *, listener_host: str, listener_port: int) -> None:
        self.client_host = ""
        self.last_active_ms = owner.now_ms()
        self.memory = owner.memory
        self._owner = owner
        self._listener_host = listener_host
        self._listener_port = listener_port
        self._splitter = FrameSplitter(owner.config.request_bytes_max)
        self._in_flight_max = owner.config.requests_in_flight_max
        self._slots: deque[_Slot] = deque()
        self._frames: deque[bytes] = deque()  # arrived, not yet begun
        self._frames_bytes = 0
        self._waiting_counted_bytes = 0
        self._output: list[bytes | memoryview] = []
        self._transport: asyncio.Transport | None = None
        self._is_reading = True
        self._is_slow = False  # the client does not take its answers
        self._slow_since_ms = 0
        self._slow_bytes = 0
        self._is_closed = False
        # A begun frame's whole length is counted before the rest of it is read, so that begun frames can all
        # be ended.
        self._counted_bytes = 0
        self._unsent_counted_bytes = 0
        self._is_admitted = True
        self._is_short = False  # of memory, to begin the next request
        self._begun_missing_bytes = 0
        self._begun_since_ms = 0

    # -- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A loop's own transports need not inherit from asyncio's class.
        transport = self._transport = cast("asyncio.Transport", transport)
        self.client_host = transports.address_of(transport)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES_HIGH)
        if not self._owner.opened(self):
            self._is_closed = True
            transport.abort()
        elif self._owner.is_paused:
            self._hold_or_read()

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        try:
            frames = self._splitter.feed(data)
        except ProtocolError as error:
            self.close(str(error))
            return
        if frames:
            self._frames.extend(frames)
            self._frames_bytes += sum(map(len, frames))
        if self._splitter.begun_bytes != self._counted_bytes:
            self._admit()
        if frames:
            self.proceed()

    def pause_writing(self) -> None:
        self._is_slow = True
        self._slow_since_ms = self._owner.now_ms()
        self._slow_bytes = self._unsent_bytes()
        self._hold_or_read()

    def resume_writing(self) -> None:
        self._is_slow = False
        self._count_unsent()
        self.proceed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        for slot in self._slots:
            slot.is_done = True  # a late answer finds nobody
            self._release(slot)
        self._slots.clear()
        self._frames.clear()
        self._frames_bytes = 0
        self._count_waiting()
        self._output.clear()
        self.memory.end_begun(self._counted_bytes)
        self.memory.change_answers(-self._unsent_counted_bytes)
        self._counted_bytes = self._unsent_counted_bytes = 0
        self._owner.closed(self)

    # -- what the owner calls

    def proceed(self) -> None:
        """Begin as many of the arrived requests as are allowed now."""
        if not self._is_admitted:
            self._admit()
        frames = self._frames
        self._is_short = False
        while frames and not self._is_slow and self._has_share(frames[0]) and not self._is_closed:
            if self._owner.is_paused or not self._has_room(frames[0]):
                self._is_short = True
                break  # every byte counted has a deadline, so there will be room again
            frame = frames.popleft()
            self._frames_bytes -= len(frame)
            self._begin(frame)
        self._count_waiting()
        self._hold_or_read()

    def write_output(self) -> None:
        """Hand what was answered to the transport, in one piece."""
        output, self._output = self._output, []
        transport = self._transport
        if output and transport is not None and not self._is_closed and not transport.is_closing():
            transport.writelines(output)
            self._count_unsent()

    def wanted_bytes(self) -> int:
        """What this connection waits for memory for."""
        return self._splitter.begun_bytes

    def check_progress(self, now_ms: int, stalled_ms_max: int) -> None:
        """Close a client that has taken none of its answers for too long, or sent nothing of a request that
        it began, or that has said nothing at all for longer."""
        self._count_unsent()
        if self._is_closed:
            if self._transport is not None:
                self._transport.abort()
        elif self._is_slow:
            unsent_bytes = self._unsent_bytes()
            if unsent_bytes < self._slow_bytes:
                self._slow_since_ms, self._slow_bytes = now_ms, unsent_bytes
            elif now_ms - self._slow_since_ms > stalled_ms_max:
                self.close(f"took no byte of {unsent_bytes} for {now_ms - self._slow_since_ms} ms")
        elif self._counted_bytes and self._is_reading:
            self._check_begun(now_ms, stalled_ms_max)
        elif not self._slots and now_ms - self.last_active_ms > self._owner.config.connection_idle_ms_max:
            self.close("")

    def _check_begun(self, now_ms: int, stalled_ms_max: int) -> None:
        """A frame that is begun holds memory that others may wait for: it has to make progress."""
        missing_bytes = self._splitter.missing_bytes
        if missing_bytes < self._begun_missing_bytes:
            self._begun_since_ms, self._begun_missing_bytes = now_ms, missing_bytes
        elif now_ms - self._begun_since_ms > stalled_ms_max:
            waited_ms = now_ms - self._begun_since_ms
            self.close(f"sent no byte of the {missing_bytes} that its request lacks for {waited_ms} ms")

    def close(self, reason: str) -> None:
        """Close at once. A reason makes an event of it; an idle connection is closed without one."""
        if self._is_closed:
            return
        self.write_output()
        self._is_closed = True
        if reason:
            self._owner.misbehaved(self, reason)
        if self._transport is None:
            return
        if self._is_slow:
            self._transport.abort()
        else:
            self._transport.close()  # what was answered still leaves; check_progress ends it if it does not

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()

    # -- requests and answers

    def failed(self, api_key: int, error: Exception) -> None:
        """A mistake of ours that one request brought out: its client loses the connection, nobody else."""
        self._owner.request_failed(self, api_key, error)
        self.close("")

    def _begin(self, frame: bytes) -> None:
        owner = self._owner
        self.last_active_ms = owner.now_ms()
        try:
            header = parse_request_header(frame)
            served = API_VERSIONS.get(header.api_key)
            if served is None:
                raise ProtocolError(f"api key {header.api_key} is not served")
            if (
                header.api_key != ApiKey.PRODUCE
                and len(frame) > self._splitter.frame_bytes_max // _PLAIN_PART
            ):
                raise ProtocolError("too long for a request without records", length=len(frame))
            slot = _Slot(self, header, len(frame))
            body = self._decode(header, frame, slot, served)
        except ProtocolError as error:
            self.close(str(error))
            return
        if header.api_key != ApiKey.PRODUCE or cast("ProduceRequest", body).acks != 0:
            self._slots.append(slot)  # acks=0 is the one request that has no answer
            self.memory.request_bytes += slot.frame_bytes
        request = Request(
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            body,
            self.client_host,
            self._listener_host,
            self._listener_port,
            slot.answer,
            slot.close,
            slot.room,
            slot.reserve,
        )
        try:
            message = owner.request(request)
        except AssertionError:
            raise  # what we hold for impossible happened: the broker's state is in doubt, and it ends
        except Exception as error:  # noqa: BLE001 - the top of one request: it must not end the others
            self.failed(header.api_key, error)
            return
        if message is not None:
            slot.answer(message)

    def _decode(self, header: RequestHeader, frame: bytes, slot: _Slot, served: tuple[int, int]) -> Message:
        if served[0] <= header.api_version <= served[1]:
            return request_decoder(header.api_key, header.api_version)(frame, header.body_position)
        if header.api_key == ApiKey.API_VERSIONS:
            slot.api_version = 0  # KIP-511: an unknown version is told the versions served, in version 0
            return ApiVersionsRequest()
        raise ProtocolError(f"api key {header.api_key} is not served in version {header.api_version}")

    def answered(self) -> None:
        """Move the answers at the front of the queue to the output: they leave in the order of the
        requests."""
        slots = self._slots
        owner = self._owner
        moved = False
        while slots and slots[0].is_done:
            slot = slots.popleft()
            self._output += slot.buffers
            self._release(slot)
            moved = True
        if moved:
            owner.has_output(self)

    def _release(self, slot: _Slot) -> None:
        self.memory.end_request(slot.frame_bytes)
        if slot.reserved_bytes:
            self.memory.change_answers(-slot.reserved_bytes)

    def _has_share(self, frame: bytes) -> bool:
        """Whether this connection may have one more request at work: what all may hold is not for one."""
        if not self._slots:
            return True
        held_bytes = len(frame) + sum(slot.frame_bytes for slot in self._slots)
        return len(self._slots) < self._in_flight_max and held_bytes <= self._splitter.frame_bytes_max

    def _has_room(self, frame: bytes) -> bool:
        """Whether a request may be begun. A fetch is the one that can be answered by much."""
        if not self.memory.has_room_for(len(frame)):
            return False
        return self.memory.has_room_for_answers or not frame.startswith(_FETCH)

    def _admit(self) -> None:
        """A frame was begun, or ended: count its length, or wait until the broker's memory has room for
        it."""
        wanted_bytes = self._splitter.begun_bytes
        if self._counted_bytes:
            self.memory.end_begun(self._counted_bytes)
        self._is_admitted = self.memory.begin(wanted_bytes)
        self._counted_bytes = wanted_bytes if self._is_admitted else 0
        self._begun_since_ms = self._owner.now_ms()
        self._begun_missing_bytes = self._splitter.missing_bytes
        if not self._is_admitted or not self._is_reading:
            self._hold_or_read()

    def _hold_or_read(self) -> None:
        """Read from the socket only while a request could be begun, or the one begun be ended."""
        if self._transport is None or self._is_closed:
            return
        owner = self._owner
        is_hungry = owner.is_paused or not self._is_admitted or self._is_short
        may_read = not self._frames and not self._is_slow and not is_hungry
        if is_hungry:
            owner.starved(self)
        if may_read != self._is_reading:
            self._is_reading = may_read
            if may_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _count_waiting(self) -> None:
        """Whole requests that cannot be begun yet are held, too."""
        if self._frames_bytes != self._waiting_counted_bytes:
            self.memory.change_waiting(self._frames_bytes - self._waiting_counted_bytes)
            self._waiting_counted_bytes = self._frames_bytes

    def _count_unsent(self) -> None:
        """Answers that the client has not taken count like requests."""
        unsent_bytes = 0 if self._is_closed else self._unsent_bytes()
        if unsent_bytes != self._unsent_counted_bytes:
            self.memory.change_answers(unsent_bytes - self._unsent_counted_bytes)
            self._unsent_counted_bytes = unsent_bytes

    def _unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()
