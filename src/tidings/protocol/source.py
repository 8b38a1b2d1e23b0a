"""Source: the text of a function while it is being generated, and the constants it will need.

Why generate code at all: a loop over field declarations costs about a microsecond per field, and a produce
request has a budget of 60 for everything. Straight-line functions made from the same declarations cost about
a tenth, and `exec` is the language's own way to them (dataclasses are made so). Nothing from outside the
program gets into the text: names and numbers come from the declarations alone. Tests:
tests/protocol/test_codec.py
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from struct import Struct as Format

from tidings.protocol.schema import Kind

FIXED_FORMATS = {
    Kind.BOOLEAN: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
    Kind.UUID: "16s",
}


def format_bytes(formats: str) -> int:
    return Format(">" + formats).size


class FunctionSource:
    """Lines, indentation, fresh variable names, and the namespace in which the function will live."""

    def __init__(self, namespace: dict[str, object]) -> None:
        self._namespace = namespace
        self._lines: list[str] = []
        self._depth = 0
        self._numbers = count(1)

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """The lines within belong to the compound statement `opening`."""
        self.line(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, hint: str) -> str:
        return f"{hint}_{next(self._numbers)}"

    def constant(self, name: str, value: object) -> str:
        """The name under which `value` is known to the function; equal names mean equal values."""
        self._namespace.setdefault(name, value)
        return name

    def function(self, name: str, title: str) -> object:
        """Compile the lines, which define the function `name`; `title` stands for a file name in
        tracebacks."""
        exec(compile("\n".join(self._lines), f"<{title}>", "exec"), self._namespace)
        return self._namespace[name]
