"""Codec: the functions that read and write the messages of an API and version, compiled at their first use.

The one rule: ask only for what `is_served` (apis.py) says yes to; anything else is the caller's mistake.
A decoder takes the frame and the position of the body, never reads beyond the frame's end, and answers with a
message or ProtocolError. An encoder answers with buffers. Nothing here knows headers or lengths of frames
(framing.py). Tests: tests/protocol/test_codec.py
"""

from __future__ import annotations

from functools import cache

from tidings.protocol.apis import (
    ADVERTISED_API_VERSIONS,
    API_VERSIONS,
    APIS,
    ApiKey,
    is_flexible,
    is_served,
)
from tidings.protocol.decoding import Decoder, compile_decoder
from tidings.protocol.encoding import Encoder, compile_encoder

__all__ = (
    "ADVERTISED_API_VERSIONS",
    "API_VERSIONS",
    "ApiKey",
    "Decoder",
    "Encoder",
    "is_served",
    "request_decoder",
    "request_encoder",
    "response_decoder",
    "response_encoder",
)


@cache
def request_decoder(api_key: int, version: int) -> Decoder:
    assert is_served(api_key, version), (api_key, version)
    return compile_decoder(APIS[api_key].request, version, flexible=is_flexible(api_key, version))


@cache
def response_encoder(api_key: int, version: int) -> Encoder:
    assert is_served(api_key, version), (api_key, version)
    return compile_encoder(APIS[api_key].response, version, flexible=is_flexible(api_key, version))


@cache
def request_encoder(api_key: int, version: int) -> Encoder:
    assert is_served(api_key, version), (api_key, version)
    return compile_encoder(APIS[api_key].request, version, flexible=is_flexible(api_key, version))


@cache
def response_decoder(api_key: int, version: int) -> Decoder:
    assert is_served(api_key, version), (api_key, version)
    return compile_decoder(APIS[api_key].response, version, flexible=is_flexible(api_key, version))
