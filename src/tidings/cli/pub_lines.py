"""Lines of `tidings pub`: a message alone, with its key, or as `sub --json` prints it.

Rule: a line that does not say what was asked of it ends the input, named by its number.
Must not know: publishing. Tests: tests/cli/test_pub_lines.py
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from tidings.cli.failure import Failure
from tidings.config.exits import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message as a line tells it. A value of None removes what a compacted topic keeps of its key."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class _NotALine(ValueError):
    """What is wrong with a line."""


def plain_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    return (Line(value=line) for line in lines)


def keyed_lines(lines: Iterable[bytes], separator: str) -> Iterator[Line]:
    """KEY, the separator, and the message, which may hold the separator again."""
    between = separator.encode(errors="surrogateescape")
    for number, line in enumerate(lines, start=1):
        key, found, value = line.partition(between)
        if not found:
            hint = f"KEY{separator}MESSAGE"
            raise Failure(f"line {number} has no '{separator}' behind its key", hint=hint, code=Exit.USAGE)
        yield Line(value=value, key=key)


def json_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """Objects with value, key and headers; other fields say where a message was, and are passed over."""
    for number, line in enumerate(lines, start=1):
        try:
            yield _line_of(json.loads(line))
        except ValueError as error:
            problem = str(error) if isinstance(error, _NotALine) else "it is not JSON"
            hint = '{"key":"k","value":"hello"}, as `tidings sub --json` prints it'
            raise Failure(f"line {number} is no message", problem, hint, code=Exit.USAGE) from error


def _line_of(said: object) -> Line:
    if not isinstance(said, dict):
        raise _NotALine("it is not an object")
    if "value" not in said and "value_base64" not in said:
        raise _NotALine("it has no value")
    headers = said.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
        raise _NotALine("headers is no list of objects")
    return Line(
        value=_bytes_of("value", said),
        key=_bytes_of("key", said),
        headers=tuple(_header_of(header) for header in headers),
    )


def _header_of(said: dict[str, object]) -> tuple[str, bytes | None]:
    name = said.get("name")
    if not isinstance(name, str):
        raise _NotALine("a header has no name")
    return name, _bytes_of("value", said)


def _bytes_of(name: str, said: dict[str, object]) -> bytes | None:
    """Text where the bytes are text; NAME_base64 where they are not."""
    encoded = said.get(f"{name}_base64")
    text = said.get(name) if encoded is None else encoded
    if text is None:
        return None
    if not isinstance(text, str):
        raise _NotALine(f"{name} is no text")
    if encoded is None:
        return text.encode(errors="surrogateescape")
    try:
        return base64.b64decode(cast(str, encoded), validate=True)
    except binascii.Error as error:
        raise _NotALine(f"{name}_base64 is not base64") from error
