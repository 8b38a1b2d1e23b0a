"""Bytes of strangers: whatever is done to a frame, reading it ends in a message or in ProtocolError."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.message_values import make_message, served_versions
from tidings.protocol.apis import APIS, ApiKey
from tidings.protocol.codec import request_decoder, request_encoder, response_decoder, response_encoder
from tidings.protocol.decoding import Decoder
from tidings.protocol.errors import ProtocolError
from tidings.protocol.framing import parse_request_header
from tidings.protocol.schema import Message

HUGE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff",
)
FRAME_BYTES_MAX = 2_000  # larger ones hold nothing but more of the same


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_mutated_request_is_read_or_refused(key: ApiKey, version: int) -> None:
    random = Random(f"request {key} {version}")
    for seed in range(8):
        message = make_message(APIS[key].request, version, seed)
        frame = b"".join(request_encoder(key, version)(message))
        for mutated in _mutations(frame, random):
            _read_or_refuse(request_decoder(key, version), mutated)


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_mutated_response_is_read_or_refused(key: ApiKey, version: int) -> None:
    random = Random(f"response {key} {version}")
    for seed in range(8):
        message = make_message(APIS[key].response, version, seed)
        frame = b"".join(response_encoder(key, version)(message))
        for mutated in _mutations(frame, random):
            _read_or_refuse(response_decoder(key, version), mutated)


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_request_cut_short_anywhere_is_refused(key: ApiKey, version: int) -> None:
    frame = b"".join(request_encoder(key, version)(make_message(APIS[key].request, version, "cut")))

    for end in range(min(len(frame), FRAME_BYTES_MAX)):
        with pytest.raises(ProtocolError):
            request_decoder(key, version)(frame[:end], 0)


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(frame=st.binary(max_size=200), case=st.sampled_from(served_versions()))
def test_random_bytes_are_read_or_refused(frame: bytes, case: tuple[ApiKey, int]) -> None:
    key, version = case

    _read_or_refuse(request_decoder(key, version), frame)
    _read_or_refuse(response_decoder(key, version), frame)


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(frame=st.binary(max_size=60))
def test_random_bytes_as_a_request_header_are_read_or_refused(frame: bytes) -> None:
    try:
        header = parse_request_header(frame)
    except ProtocolError:
        return

    assert header.body_position <= len(frame)


def _read_or_refuse(decode: Decoder, frame: bytes) -> None:
    try:
        message = decode(frame, 0)
    except ProtocolError:
        return
    assert isinstance(message, Message)


def _mutations(frame: bytes, random: Random) -> Iterator[bytes]:
    yield frame + b"\0"
    yield frame + random.randbytes(5)
    yield frame[:-1]
    end = min(len(frame), FRAME_BYTES_MAX)
    for _ in range(12):
        position = random.randrange(end + 1)
        flipped = bytearray(frame)
        if position < len(frame):
            flipped[position] ^= 1 << random.randrange(8)
        yield bytes(flipped)
        yield frame[:position]
        yield frame[:position] + random.choice(HUGE) + frame[position:]
        yield frame[:position] + random.choice(HUGE) + frame[position + 4 :]
        yield frame[:position] + random.randbytes(3) + frame[position + 3 :]
