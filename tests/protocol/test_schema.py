"""The declaration language: what a declared class is as a Python class."""

from __future__ import annotations

import pytest

from tidings.protocol.messages.metadata import MetadataResponseBroker
from tidings.protocol.schema import ZERO_UUID, Message, Struct, array, int16, int32, string, uuid


class _Part(Struct):
    index: int = int32()


class _Whole(Message):
    name: str | None = string(nullable_since=1, default=None)
    parts: list[_Part] = array(_Part)
    epoch: int = int16(default=-1)
    identity: bytes = uuid()


def test_every_field_has_a_default() -> None:
    whole = _Whole()

    assert (whole.name, whole.parts, whole.epoch, whole.identity) == (None, [], -1, ZERO_UUID)


def test_list_defaults_are_not_shared() -> None:
    first, second = _Whole(), _Whole()

    first.parts.append(_Part(index=1))

    assert second.parts == []


def test_structs_of_equal_fields_are_equal_and_have_no_hash() -> None:
    assert _Whole(parts=[_Part(index=1)]) == _Whole(parts=[_Part(index=1)])
    assert _Whole(parts=[_Part(index=1)]) != _Whole(parts=[_Part(index=2)])
    assert _Part() != _Whole()
    with pytest.raises(TypeError, match="unhashable"):
        hash(_Part())


def test_a_struct_shows_its_fields() -> None:
    assert repr(_Whole(name="a", parts=[_Part(index=1)], identity=b"i")) == (
        "_Whole(name='a', parts=[_Part(index=1)], epoch=-1, identity=b'i')"
    )


def test_an_undeclared_attribute_is_refused() -> None:
    with pytest.raises(AttributeError):
        _Part().offset = 1  # type: ignore[attr-defined]  # the point of the test
    with pytest.raises(TypeError):
        _Part(offset=1)  # type: ignore[call-arg]  # the point of the test


def test_fields_know_their_versions() -> None:
    rack = next(field for field in MetadataResponseBroker.FIELDS if field.name == "rack")

    assert [rack.is_valid_in(version) for version in (0, 1, 13)] == [False, True, True]
    assert [rack.is_nullable_in(version) for version in (0, 1)] == [False, True]
