"""Framing: how a connection's bytes are cut into requests, and what stands before the body of each.

    frame:              i32 length of what follows | header | body
    request header 1:   i16 API key | i16 version | i32 correlation id | client id, a classic nullable string
    request header 2:   the same | tagged fields            (flexible versions; the client id stays classic)
    response header 0:  i32 correlation id
    response header 1:  the same | tagged fields            (flexible versions, never ApiVersions: KIP-511)

The one rule: a frame's length is judged as soon as it is there, before any byte of the frame is kept.
Nothing here knows sockets or what a request means. Tests: tests/protocol/test_framing.py
"""

from __future__ import annotations

import struct
from typing import Final

from tidings.protocol.apis import ApiKey, is_flexible, is_served
from tidings.protocol.codec import response_encoder
from tidings.protocol.errors import ProtocolError
from tidings.protocol.primitives import skip_tagged_fields
from tidings.protocol.schema import Message

_LENGTH: Final = struct.Struct(">i")
_LENGTH_BYTES: Final = 4
_REQUEST_HEADER: Final = struct.Struct(">hhih")
_RESPONSE_HEADER_0: Final = struct.Struct(">i")
_RESPONSE_HEADER_1: Final = struct.Struct(">ix")

_HEADER_TAGS_MAX = 64  # no client sends any today; a section longer than this is not a header

# Chunks smaller than this are gathered in one growing buffer: kept one by one, a frame that comes in single
# bytes would take fifty times its size.
_SMALL_CHUNK_BYTES = 4096


class RequestHeader:
    """What stands before a request's body, which starts at `body_position` of the frame."""

    __slots__ = ("api_key", "api_version", "body_position", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body_position: int
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_position = body_position


def parse_request_header(frame: bytes) -> RequestHeader:
    """The header. An unknown API or version is no error here, so that the caller can say no: it is read as
    header 1, and its body must not be read."""
    try:
        api_key, api_version, correlation_id, client_id_bytes = _REQUEST_HEADER.unpack_from(frame)
        position = _REQUEST_HEADER.size
        if client_id_bytes < 0:
            if client_id_bytes != -1:
                raise ProtocolError("negative length", field="client id", length=client_id_bytes)
            client_id = None
        else:
            end = position + client_id_bytes
            client_id = frame[position:end].decode()
            position = end
        if is_flexible(api_key, api_version) and is_served(api_key, api_version):
            tagged_count = frame[position]
            position += 1
            if tagged_count:
                position, _ = skip_tagged_fields(frame, tagged_count, position, _HEADER_TAGS_MAX)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ProtocolError("malformed request header", frame_bytes=len(frame), reason=error) from error
    if position > len(frame):
        raise ProtocolError("request header longer than its frame", frame_bytes=len(frame))
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS:
        return _RESPONSE_HEADER_1.pack(correlation_id)
    return _RESPONSE_HEADER_0.pack(correlation_id)


def encode_response_frame(
    api_key: int, version: int, correlation_id: int, message: Message
) -> list[bytes | memoryview]:
    """A whole frame as buffers: length, header and small parts of the body in one, then pieces of records."""
    buffers = response_encoder(api_key, version)(message)
    header = response_header(api_key, version, correlation_id)
    frame_bytes = len(header) + sum(map(len, buffers))
    buffers[0] = b"".join((_LENGTH.pack(frame_bytes), header, buffers[0]))
    return buffers


class FrameSplitter:
    """Cuts the bytes of one connection into frames. Keeps at most one frame that is not whole yet."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._length_bytes = b""  # the first bytes of a length that is not whole yet
        self._missing_bytes = 0  # of the frame being gathered; 0 when there is none
        self._chunks: list[bytes] = []
        self._small_chunks = bytearray()  # stand after `_chunks`
        self.begun_bytes = 0  # length of the frame being gathered; 0 when there is none

    @property
    def missing_bytes(self) -> int:
        """What the frame being gathered still lacks."""
        return self._missing_bytes

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that `chunk` completes, without their lengths. After ProtocolError the connection is
        beyond repair: where the next frame would start is not known."""
        frames: list[bytes] = []
        position, chunk_bytes = 0, len(chunk)
        if self._missing_bytes:
            if chunk_bytes < self._missing_bytes:
                self._keep(chunk)
                return frames
            position = self._missing_bytes
            frames.append(self._complete(chunk[:position]))
        elif self._length_bytes:
            chunk = self._length_bytes + chunk
            chunk_bytes = len(chunk)
            self._length_bytes = b""
        while chunk_bytes - position >= _LENGTH_BYTES:
            (frame_bytes,) = _LENGTH.unpack_from(chunk, position)
            if not 0 < frame_bytes <= self.frame_bytes_max:
                raise ProtocolError("bad frame length", length=frame_bytes, length_max=self.frame_bytes_max)
            position += _LENGTH_BYTES
            end = position + frame_bytes
            if end > chunk_bytes:
                self._missing_bytes = self.begun_bytes = frame_bytes
                self._keep(chunk[position:])
                return frames
            frames.append(chunk[position:end])
            position = end
        self._length_bytes = chunk[position:]
        return frames

    def _keep(self, chunk: bytes) -> None:
        self._missing_bytes -= len(chunk)
        if len(chunk) < _SMALL_CHUNK_BYTES:
            self._small_chunks += chunk
            return
        self._gather_small_chunks()
        self._chunks.append(chunk)

    def _complete(self, last: bytes) -> bytes:
        self._gather_small_chunks()
        self._chunks.append(last)
        frame = b"".join(self._chunks)
        self._chunks = []
        self._missing_bytes = self.begun_bytes = 0
        return frame

    def _gather_small_chunks(self) -> None:
        if self._small_chunks:
            self._chunks.append(bytes(self._small_chunks))
            self._small_chunks = bytearray()
