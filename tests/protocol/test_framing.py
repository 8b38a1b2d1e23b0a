"""Frames and headers: cutting a connection's bytes, and what stands before a body."""

from __future__ import annotations

from random import Random

import pytest

from tidings.protocol.apis import ApiKey
from tidings.protocol.codec import response_decoder, response_encoder
from tidings.protocol.errors import ProtocolError
from tidings.protocol.framing import (
    FrameSplitter,
    encode_response_frame,
    parse_request_header,
    response_header,
)
from tidings.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidings.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

FRAME_BYTES_MAX = 1_000


def _framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def _header(key: int, version: int, client: bytes, rest: bytes = b"") -> bytes:
    return key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\x2a" + client + rest


def test_a_classic_request_header_ends_after_the_client_id() -> None:
    header = parse_request_header(_header(ApiKey.METADATA, 8, b"\0\5Grot\x61", b"body"))

    assert (header.api_key, header.api_version, header.correlation_id) == (ApiKey.METADATA, 8, 42)
    assert header.client_id == "Grota"
    assert header.body_position == 15


def test_a_flexible_request_header_ends_after_its_tagged_fields() -> None:
    tagged = b"\x01\x07\x02xy"

    header = parse_request_header(_header(ApiKey.METADATA, 9, b"\0\2me", tagged + b"body"))

    assert header.client_id == "me"
    assert header.body_position == 17


def test_a_client_id_may_be_null() -> None:
    header = parse_request_header(_header(ApiKey.PRODUCE, 3, b"\xff\xff"))

    assert header.client_id is None
    assert header.body_position == 10


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (ApiKey.API_VERSIONS, 99), (ApiKey.PRODUCE, 2), (ApiKey.FETCH, 19), (-1, -1)],
)
def test_an_unknown_api_or_version_is_read_as_the_first_header(key: int, version: int) -> None:
    frame = _header(key & 0xFFFF, version & 0xFFFF, b"\0\2me", b"\xff\xff\xff")

    header = parse_request_header(frame)

    assert (header.api_key, header.api_version, header.client_id) == (key, version, "me")
    assert header.body_position == 12


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\3\0",
        _header(ApiKey.METADATA, 8, b"\0\5abc"),
        _header(ApiKey.METADATA, 8, b"\xff\xfe"),
        _header(ApiKey.METADATA, 8, b"\0\1\xff"),
        _header(ApiKey.METADATA, 9, b"\0\1a"),
        _header(ApiKey.METADATA, 9, b"\0\1a", b"\x01\x07\x09xy"),
        _header(ApiKey.METADATA, 9, b"\0\1a", b"\xff\xff\x03" + bytes(200)),
    ],
    ids=[
        "empty",
        "short",
        "client id cut",
        "negative length",
        "not utf-8",
        "no tags",
        "tag cut",
        "many tags",
    ],
)
def test_a_malformed_request_header_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(frame)


@pytest.mark.parametrize(
    ("key", "version", "header"),
    [
        (ApiKey.METADATA, 8, b"\0\0\0\7"),
        (ApiKey.METADATA, 9, b"\0\0\0\7\0"),
        (ApiKey.API_VERSIONS, 3, b"\0\0\0\7"),
        (ApiKey.API_VERSIONS, 4, b"\0\0\0\7"),
        (999, 5, b"\0\0\0\7"),
    ],
)
def test_a_response_header_has_tagged_fields_in_flexible_versions_except_for_api_versions(
    key: int, version: int, header: bytes
) -> None:
    assert response_header(key, version, 7) == header


def test_a_response_frame_is_its_length_header_and_body() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=0, min_version=3, max_version=13)])

    buffers = encode_response_frame(ApiKey.API_VERSIONS, 3, 7, response)

    body = b"".join(response_encoder(ApiKey.API_VERSIONS, 3)(response))
    assert buffers == [_framed(b"\0\0\0\7" + body)]


def test_a_response_frame_hands_records_on_as_they_came() -> None:
    records = memoryview(bytes(50_000))
    partition = PartitionData(records=[records])
    response = FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[partition])])

    buffers = encode_response_frame(ApiKey.FETCH, 12, 7, response)

    assert [buffer is records for buffer in buffers] == [False, True, False]
    (frame,) = FrameSplitter(frame_bytes_max=100_000).feed(b"".join(buffers))
    assert frame[:5] == b"\0\0\0\7\0"
    assert response_decoder(ApiKey.FETCH, 12)(frame, 5) == response


def test_many_frames_in_one_chunk_come_out_in_order() -> None:
    frames = [bytes([number]) * (number + 1) for number in range(50)]

    assert FrameSplitter(FRAME_BYTES_MAX).feed(_framed(*frames)) == frames


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_out_whole_however_the_bytes_are_cut(seed: int) -> None:
    random = Random(seed)
    frames = [random.randbytes(random.choice((1, 3, 200, 9_000, 70_000))) for _ in range(12)]
    stream = _framed(*frames)
    splitter = FrameSplitter(frame_bytes_max=100_000)

    received = []
    position = 0
    while position < len(stream):
        end = position + random.choice((1, 2, 5, 100, 4_096, 65_536))
        received += splitter.feed(stream[position:end])
        position = end

    assert received == frames


def test_frames_come_out_whole_byte_by_byte() -> None:
    frames = [b"one", b"two", bytes(300)]
    splitter = FrameSplitter(FRAME_BYTES_MAX)

    received = [frame for byte in _framed(*frames) for frame in splitter.feed(bytes([byte]))]

    assert received == frames


def test_the_largest_frame_is_taken() -> None:
    frame = bytes(FRAME_BYTES_MAX)

    assert FrameSplitter(FRAME_BYTES_MAX).feed(_framed(frame)) == [frame]


@pytest.mark.parametrize("length", [0, -1, -(2**31), FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_a_bad_length_is_refused_as_soon_as_it_is_there(length: int) -> None:
    splitter = FrameSplitter(FRAME_BYTES_MAX)
    length_bytes = length.to_bytes(4, "big", signed=True)

    assert splitter.feed(length_bytes[:3]) == []
    with pytest.raises(ProtocolError, match=f"length={length}"):
        splitter.feed(length_bytes[3:])


@pytest.mark.parametrize(
    "greeting", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"SSH-2.0-OpenSSH_9.6\r\n"]
)
def test_what_speaks_another_protocol_is_refused_at_once(greeting: bytes) -> None:
    with pytest.raises(ProtocolError):
        FrameSplitter(frame_bytes_max=16 * 2**20).feed(greeting)


def test_a_frame_that_never_ends_takes_no_more_memory_than_its_limit() -> None:
    splitter = FrameSplitter(frame_bytes_max=1_000_000)
    splitter.feed((1_000_000).to_bytes(4, "big"))

    for _ in range(20_000):
        splitter.feed(b"ab")

    assert len(splitter._chunks) == 0
    assert len(splitter._small_chunks) == 40_000


def test_large_chunks_of_a_frame_are_kept_without_copies() -> None:
    splitter = FrameSplitter(frame_bytes_max=1_000_000)
    chunk = bytes(65_536)
    splitter.feed((200_000).to_bytes(4, "big"))

    splitter.feed(chunk)
    splitter.feed(b"small")
    splitter.feed(chunk)

    assert [kept is chunk for kept in splitter._chunks] == [True, False, True]
