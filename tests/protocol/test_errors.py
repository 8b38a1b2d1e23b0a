"""Error codes and the exception for malformed bytes."""

from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from tidings.protocol.errors import ErrorCode, ProtocolError


def test_error_codes_are_kafkas() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        code.name.upper(): int(code) for code in KioErrorCode
    }


def test_a_protocol_error_shows_its_facts() -> None:
    assert str(ProtocolError("bad frame length", length=-1, length_max=5)) == (
        "bad frame length (length=-1, length_max=5)"
    )
    assert str(ProtocolError("bad frame length")) == "bad frame length"
