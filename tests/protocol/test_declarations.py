"""Our declarations against the facts of Kafka's own message files, as another client ships them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.protocol.kafka_python import message_file
from tidings.protocol.apis import APIS, Api
from tidings.protocol.schema import VERSION_MAX, Field, Kind, Message, Struct

Facts = dict[str, Any]  # any: what JSON holds

SCALARS = {
    "bool": Kind.BOOLEAN,
    "int8": Kind.INT8,
    "int16": Kind.INT16,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "uuid": Kind.UUID,
    "string": Kind.STRING,
}
# Versions that exist but are not served: InitProducerId 6 is not stable yet.
VERSIONS_NOT_SERVED = {22: 6}

MESSAGES = [(api, message) for api in APIS.values() for message in (api.request, api.response)]
NAMES = [message.__name__ for _, message in MESSAGES]


@pytest.mark.parametrize(("api", "message"), MESSAGES, ids=NAMES)
def test_a_message_has_the_key_and_versions_of_kafka(api: Api, message: type[Message]) -> None:
    facts = message_file(message.__name__)

    first, last = _versions(facts["validVersions"])

    assert facts["apiKey"] == api.key
    assert first == api.version_min
    assert last == VERSIONS_NOT_SERVED.get(api.key, api.version_max)
    assert _versions(facts["flexibleVersions"])[0] == api.flexible_since


@pytest.mark.parametrize(("api", "message"), MESSAGES, ids=NAMES)
def test_every_field_of_every_version_is_declared_as_kafka_declares_it(
    api: Api, message: type[Message]
) -> None:
    facts = message_file(message.__name__)

    for version in range(api.version_min, api.version_max + 1):
        assert _declared(message, version) == _expected(facts["fields"], version), version


@pytest.mark.parametrize(("api", "message"), MESSAGES, ids=NAMES)
def test_no_field_is_declared_that_no_served_version_has(api: Api, message: type[Message]) -> None:
    def check(struct: type[Struct]) -> None:
        for field in struct.FIELDS:
            assert field.until >= api.version_min, field
            assert field.since <= api.version_max, field
            if isinstance(field.element, type):
                check(field.element)

    check(message)


def _versions(text: str | None) -> tuple[int, int]:
    if text is None or text == "none":
        return (VERSION_MAX + 1, VERSION_MAX + 1)
    first, _, last = text.rstrip("+").partition("-")
    if text.endswith("+"):
        return int(first), VERSION_MAX
    return int(first), int(last or first)


def _covers(text: str | None, version: int) -> bool:
    first, last = _versions(text)
    return first <= version <= last


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _expected(fields: list[Facts], version: int) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for facts in fields:
        if not _covers(facts["versions"], version):
            continue
        type_name = facts["type"].removeprefix("[]")
        is_array = facts["type"].startswith("[]")
        nullable = _covers(facts.get("nullableVersions"), version)
        nested = (type_name, _expected(facts["fields"], version)) if "fields" in facts else type_name
        tag = facts["tag"] if _covers(facts.get("taggedVersions"), version) else None
        default = _expected_default(facts, is_array=is_array, has_fields="fields" in facts)
        rows.append((_snake_case(facts["name"]), is_array, nested, nullable, tag, default))
    return rows


def _expected_default(facts: Facts, *, is_array: bool, has_fields: bool) -> object:
    """Kafka's defaults, with two changes of ours: a null array is empty, a struct that is absent is None."""
    if is_array:
        return []
    if has_fields or facts["type"] == "records":
        return None
    default = facts.get("default")
    match facts["type"]:
        case "bool":
            return default == "true"
        case "string":
            return None if default == "null" else default or ""
        case "uuid":
            return bytes(16)
        case _:
            return int(str(default or "0"), 0)


def _declared(struct: type[Struct], version: int) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for field in struct.FIELDS:
        if field.is_valid_in(version):
            nullable = field.is_nullable_in(version) or field.kind is Kind.RECORD_PIECES
            default = None if field.kind is Kind.RECORD_PIECES else field.default
            nested = _type_of(field, version)
            rows.append((field.name, field.kind is Kind.ARRAY, nested, nullable, field.tag, default))
    return rows


def _type_of(field: Field, version: int) -> object:
    if isinstance(field.element, type):
        return field.element.__name__, _declared(field.element, version)
    kind = field.element or field.kind
    if kind in (Kind.RECORDS, Kind.RECORD_PIECES):
        return "records"
    return next(name for name, scalar in SCALARS.items() if scalar is kind)
