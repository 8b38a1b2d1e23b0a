"""Made-up messages: every field of a version holds a value that is legal there, from a seeded source.

The one rule: a seed always gives the same message, so a failing case is named by API, version and seed.
"""

from __future__ import annotations

from random import Random

from tidings.protocol.apis import APIS, ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.schema import Field, Kind, Message, Struct

INTEGER_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
TEXTS = ("", "orders", "Grüße", "日本語", "🎉 party", "a" * 126, "b" * 127, "c" * 300)

# Times that the oracles keep as dates: only what a calendar holds.
CALENDAR_FIELDS = {"log_append_time_ms"}
CALENDAR_TIMES_MS = (-1, 1, 1_700_000_000_123)


def served_versions() -> list[tuple[ApiKey, int]]:
    return [
        (api.key, version) for api in APIS.values() for version in range(api.version_min, api.version_max + 1)
    ]


def make_message(message: type[Message], version: int, seed: object) -> Message:
    made = _make_struct(message, version, Random(f"{message.__name__} {version} {seed}"))
    assert isinstance(made, Message)
    return made


def _make_struct(declared: type[Struct], version: int, random: Random) -> Struct:
    values = {
        field.name: _make_value(field, version, random)
        for field in declared.FIELDS
        if field.is_valid_in(version) and (field.tag is None or random.random() < 0.6)
    }
    return declared(**values)


def _make_value(field: Field, version: int, random: Random) -> object:
    if field.is_nullable_in(version) and random.random() < 0.25:
        return None
    if field.name == "error_code" or field.name.endswith("_error_code"):
        return random.choice(list(ErrorCode))
    if field.name in CALENDAR_FIELDS:
        return random.choice(CALENDAR_TIMES_MS)
    if field.kind is Kind.ARRAY:
        return [_make_element(field, version, random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if field.kind is Kind.STRUCT:
        made = _make_struct(field.struct, version, random)
        return None if field.tag is not None and made == field.struct() else made
    return _make_scalar(field.kind, random)


def _make_element(field: Field, version: int, random: Random) -> object:
    if isinstance(field.element, Kind):
        return _make_scalar(field.element, random)
    return _make_struct(field.struct, version, random)


def _make_scalar(kind: Kind, random: Random) -> object:
    match kind:
        case Kind.BOOLEAN:
            return random.random() < 0.5
        case Kind.UUID:
            return random.choice((bytes(16), random.randbytes(16)))
        case Kind.STRING:
            return random.choice(TEXTS)
        case Kind.BYTES:
            return random.randbytes(random.choice((0, 1, 200)))
        case Kind.FLOAT64:
            return random.choice((0.0, -1.5, 1e300))
        case Kind.RECORDS:
            return memoryview(random.randbytes(random.choice((0, 1, 126, 127, 20_000))))
        case Kind.RECORD_PIECES:
            records = random.randbytes(random.choice((0, 1, 126, 127, 20_000)))
            return [memoryview(records)] if records else []
        case _:
            limit = 2 ** (INTEGER_BITS[kind] - 1)
            return random.choice((0, 1, -1, limit - 1, -limit, random.randrange(-limit, limit)))
