"""Schema: the language in which Kafka's messages are declared, once for all versions.

The one rule: a struct is a class whose attributes are declared with the helpers below; they say what the
attribute is on the wire, in which versions, and its default. The type checker sees plain Python types.

    class Broker(Struct):
        node_id: int = int32()
        rack: str | None = string(since=1, nullable_since=1, default=None)

Versions are those of the message that holds the struct. A field is on the wire from `since` to `until`, both
included; one with a `tag` travels among the tagged fields (KIP-482) and only when it differs from its
default. A tagged struct is None when absent. Structs are made on the hot path, so they are not frozen; they
are treated as values all the same. Nothing here knows bytes (decoding.py, encoding.py) or any message
(messages/). Tests: tests/protocol/test_schema.py
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform, overload

ZERO_UUID = bytes(16)
VERSION_MAX = 0x7FFF


class Kind(Enum):
    """What a field is on the wire."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"  # of a request: a slice of the frame
    RECORD_PIECES = "record pieces"  # of a response: buffers sent one after the other as one field
    STRUCT = "struct"
    ARRAY = "array"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The facts of one field. `element` is what an array holds, or the struct itself of a struct field."""

    kind: Kind
    default: object
    name: str = ""
    element: Kind | type[Struct] | None = None
    since: int = 0
    until: int = VERSION_MAX
    nullable_since: int | None = None
    tag: int | None = None

    def is_valid_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since

    @property
    def struct(self) -> type[Struct]:
        assert isinstance(self.element, type), self
        return self.element


def _named(name: str, field: Field) -> Field:
    return Field(
        name=name,
        kind=field.kind,
        default=field.default,
        element=field.element,
        since=field.since,
        until=field.until,
        nullable_since=field.nullable_since,
        tag=field.tag,
    )


def _initializer(class_name: str, fields: tuple[Field, ...]) -> object:
    # A list default is made anew per instance; `...` stands for "not given", because None may be a value.
    parameters = [f"{field.name}={'...' if field.default == [] else repr(field.default)}" for field in fields]
    lines = [f"def __init__({', '.join(['self', *parameters])}):"]
    for field in fields:
        value = f"[] if {field.name} is ... else {field.name}" if field.default == [] else field.name
        lines.append(f"    self.{field.name} = {value}")
    if not fields:
        lines.append("    pass")
    namespace: dict[str, object] = {}
    exec(compile("\n".join(lines), f"<fields of {class_name}>", "exec"), namespace)
    return namespace["__init__"]


@dataclass_transform(kw_only_default=True)
class _StructMeta(type):
    """Turns the declared fields of a class into slots and an `__init__`.

    Not a dataclass: a process holds about a hundred of these, and a dataclass with slots takes 0.7 ms to
    make, this 0.05 ms. Generated code passes all fields by position, everything else passes them by keyword.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> _StructMeta:
        declared = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        fields = tuple(_named(key, field) for key, field in declared.items())
        for key in declared:
            del namespace[key]
        namespace["__slots__"] = tuple(declared)
        namespace["FIELDS"] = fields
        namespace["__init__"] = _initializer(name, fields)
        return super().__new__(mcs, name, bases, namespace)


class Struct(metaclass=_StructMeta):
    """Base of every declared struct; whole requests and responses derive from Message."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # a mutable value, which is how Python spells unhashable

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """Base of the requests and responses."""


# The helpers return a Field and are typed as what the attribute will hold, as dataclasses.field() does.


def _field(kind: Kind, default: object, **facts: Any) -> Any:  # Any: see the line above
    return Field(kind=kind, default=default, **facts)


def boolean(
    *, default: bool = False, since: int = 0, until: int = VERSION_MAX, tag: int | None = None
) -> bool:
    return cast(bool, _field(Kind.BOOLEAN, default, since=since, until=until, tag=tag))


def int8(*, default: int = 0, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> int:
    return cast(int, _field(Kind.INT8, default, since=since, until=until, tag=tag))


def int16(*, default: int = 0, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> int:
    return cast(int, _field(Kind.INT16, default, since=since, until=until, tag=tag))


def int32(*, default: int = 0, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> int:
    return cast(int, _field(Kind.INT32, default, since=since, until=until, tag=tag))


def int64(*, default: int = 0, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> int:
    return cast(int, _field(Kind.INT64, default, since=since, until=until, tag=tag))


def float64(
    *, default: float = 0.0, since: int = 0, until: int = VERSION_MAX, tag: int | None = None
) -> float:
    return cast(float, _field(Kind.FLOAT64, default, since=since, until=until, tag=tag))


def uuid(*, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> bytes:
    """Sixteen raw bytes; the default is ZERO_UUID, Kafka's "none"."""
    return cast(bytes, _field(Kind.UUID, ZERO_UUID, since=since, until=until, tag=tag))


@overload
def string(*, default: str = "", since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> str: ...
@overload
def string(
    *,
    nullable_since: int,
    default: str | None = "",
    since: int = 0,
    until: int = VERSION_MAX,
    tag: int | None = None,
) -> str | None: ...
def string(
    *,
    nullable_since: int | None = None,
    default: str | None = "",
    since: int = 0,
    until: int = VERSION_MAX,
    tag: int | None = None,
) -> str | None:
    facts = {"nullable_since": nullable_since, "since": since, "until": until, "tag": tag}
    return cast(str | None, _field(Kind.STRING, default, **facts))


def bytestring(*, since: int = 0, until: int = VERSION_MAX) -> bytes:
    return cast(bytes, _field(Kind.BYTES, b"", since=since, until=until))


def record_slice() -> memoryview | None:
    """The records of a request: a slice of the frame, never a copy."""
    return cast(memoryview | None, _field(Kind.RECORDS, None, nullable_since=0))


def record_pieces() -> list[bytes | memoryview]:
    """The records of a response: buffers that are sent as they are. None of them means an empty byte string,
    never null, which librdkafka's share consumer takes for a protocol error."""
    return cast(list[bytes | memoryview], _field(Kind.RECORD_PIECES, []))


S = TypeVar("S", bound=Struct)


def array(element: type[S], *, since: int = 0, until: int = VERSION_MAX, tag: int | None = None) -> list[S]:
    return cast(list[S], _field(Kind.ARRAY, [], element=element, since=since, until=until, tag=tag))


def nullable_array(
    element: type[S], *, nullable_since: int, since: int = 0, until: int = VERSION_MAX
) -> list[S] | None:
    """The default is an empty array even so: Java clients crash on some nulls that Kafka allows."""
    facts = {"element": element, "nullable_since": nullable_since, "since": since, "until": until}
    return cast(list[S] | None, _field(Kind.ARRAY, [], **facts))


def int32_array(*, since: int = 0, until: int = VERSION_MAX) -> list[int]:
    return cast(list[int], _field(Kind.ARRAY, [], element=Kind.INT32, since=since, until=until))


def nullable_int32_array(
    *, nullable_since: int, since: int = 0, until: int = VERSION_MAX
) -> list[int] | None:
    facts = {"element": Kind.INT32, "nullable_since": nullable_since, "since": since, "until": until}
    return cast(list[int] | None, _field(Kind.ARRAY, [], **facts))


def string_array(*, since: int = 0, until: int = VERSION_MAX) -> list[str]:
    return cast(list[str], _field(Kind.ARRAY, [], element=Kind.STRING, since=since, until=until))


def nullable_string_array(
    *, nullable_since: int, since: int = 0, until: int = VERSION_MAX
) -> list[str] | None:
    facts = {"element": Kind.STRING, "nullable_since": nullable_since, "since": since, "until": until}
    return cast(list[str] | None, _field(Kind.ARRAY, [], **facts))


def nullable_struct(element: type[S], *, since: int = 0, until: int = VERSION_MAX) -> S | None:
    """A struct behind a presence byte; None by default."""
    facts = {"element": element, "nullable_since": 0, "since": since, "until": until}
    return cast(S | None, _field(Kind.STRUCT, None, **facts))


def tagged_struct(element: type[S], *, tag: int, since: int = 0, until: int = VERSION_MAX) -> S | None:
    """A struct among the tagged fields. None means absent, which stands for a struct of defaults: an answer
    that carries none of these costs no object, and no shared default instance can be changed by accident."""
    return cast(S | None, _field(Kind.STRUCT, None, element=element, since=since, until=until, tag=tag))
