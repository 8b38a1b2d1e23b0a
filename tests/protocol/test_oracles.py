"""Our bytes against two independent codecs: they read the same values and write the same bytes."""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.protocol.kafka_python import message_class
from tests.protocol.message_values import make_message, served_versions
from tidings.protocol.apis import APIS, ApiKey
from tidings.protocol.codec import request_encoder, response_encoder
from tidings.protocol.messages.api_versions import ApiVersionsResponse
from tidings.protocol.schema import Kind, Message, Struct

SEEDS = range(6)
SIDES = ("request", "response")
CASES = [(key, version, side) for key, version in served_versions() for side in SIDES]

# kafka-python turns these into sets under another name; their bytes are compared all the same.
SETS_IN_KAFKA_PYTHON = {
    "cluster_authorized_operations",
    "topic_authorized_operations",
    "authorized_operations",
}


@pytest.mark.parametrize(("key", "version", "side"), CASES)
def test_kio_reads_the_same_values_and_writes_the_same_bytes(key: ApiKey, version: int, side: str) -> None:
    load = load_request_schema if side == "request" else load_response_schema
    entity = load(key, version)
    for seed in SEEDS:
        message, encoded = _encoded(key, version, side, seed)

        read, size = entity_reader(entity)(encoded, 0)
        with io.BytesIO() as written:
            entity_writer(entity)(written, read)

            assert written.getvalue() == encoded, seed
        assert size == len(encoded)
        assert _of_kio(read) == _of_ours(message, version), seed


@pytest.mark.parametrize(("key", "version", "side"), CASES)
def test_kafka_python_reads_the_same_values_and_writes_the_same_bytes(
    key: ApiKey, version: int, side: str
) -> None:
    api = APIS[key]
    oracle = message_class((api.request if side == "request" else api.response).__name__)
    for seed in SEEDS:
        message, encoded = _encoded(key, version, side, seed, for_kafka_python=True)

        read = oracle.decode(encoded, version=version)
        read._header = None  # which its decoder forgets and its encoder asks for

        assert bytes(read.encode()) == encoded, seed
        assert _without_sets(_of_kafka_python(read)) == _without_sets(_of_ours(message, version)), seed


def _encoded(
    key: ApiKey, version: int, side: str, seed: int, *, for_kafka_python: bool = False
) -> tuple[Message, bytes]:
    api = APIS[key]
    message = make_message(api.request if side == "request" else api.response, version, seed)
    if for_kafka_python and isinstance(message, ApiVersionsResponse):
        message.error_code = 0  # it reads one with an error as version 0, whatever version it asked for
    encode = request_encoder(key, version) if side == "request" else response_encoder(key, version)
    return message, b"".join(encode(message))


def _of_ours(value: object, version: int) -> object:
    if isinstance(value, Struct):
        values = {}
        for field in value.FIELDS:
            if not field.is_valid_in(version):
                continue
            held = getattr(value, field.name)
            if field.kind is Kind.STRUCT and field.tag is not None and held == field.struct():
                held = None
            if field.kind is Kind.RECORD_PIECES:
                held = b"".join(held)
            values[field.name] = _of_ours(held, version)
        return values
    if isinstance(value, list):
        return [_of_ours(element, version) for element in value]
    return bytes(value) if isinstance(value, memoryview) else value


def _of_kio(value: object) -> object:
    if dataclasses.is_dataclass(value):
        values = {}
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            kind = field.metadata.get("kafka_type")
            name = f"{field.name}_ms" if kind in ("timedelta_i32", "datetime_i64") else field.name
            if kind == "uuid" and held is None:
                held = uuid.UUID(int=0)
            if "tag" in field.metadata and dataclasses.is_dataclass(held) and held == field.default:
                held = None
            if kind == "datetime_i64" and held is None:
                held = -1
            values[name] = _of_kio(held)
        return values
    match value:
        case tuple():
            return [_of_kio(element) for element in value]
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return (value - epoch) // datetime.timedelta(milliseconds=1)
        case uuid.UUID():
            return value.bytes
        case _:
            return value


def _of_kafka_python(value: Any) -> object:  # any: a value of the oracle, which has no types
    if hasattr(value, "_struct"):
        values = {}
        for field in value._struct._fields:
            if not field.for_version_q(value._version):
                continue
            held = getattr(value, field.name)
            if field.type_str == "uuid" and held is None:
                held = uuid.UUID(int=0)
            values[field.name] = _of_kafka_python(held)
        return values
    match value:
        case list():
            return [_of_kafka_python(element) for element in value]
        case uuid.UUID():
            return value.bytes
        case _:
            return value


def _without_sets(value: object) -> object:
    match value:
        case dict():
            return {
                name: _without_sets(held) for name, held in value.items() if name not in SETS_IN_KAFKA_PYTHON
            }
        case list():
            return [_without_sets(element) for element in value]
        case _:
            return value
