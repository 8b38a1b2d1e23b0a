"""Encoding: the function that writes one version of one message, generated from the message's declaration.

The one rule: records are never copied. The function returns buffers: small parts joined, pieces of records as
they came, in the order of the wire; the first buffer is always bytes. A value that does not fit its field is
our own mistake and ends in Python's error for it. Nothing here knows a particular message. Tests:
tests/protocol/test_codec.py, test_oracles.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import cast

from tidings.protocol import primitives
from tidings.protocol.schema import Field, Kind, Message, Struct
from tidings.protocol.source import FIXED_FORMATS, FunctionSource

Encoder = Callable[[Message], list[bytes | memoryview]]

# As they stand in the generated text.
_ZERO_BYTE = r"b'\x00'"
_MINUS_ONE_BYTE = r"b'\xff'"
_MINUS_ONE_INT32 = r"b'\xff\xff\xff\xff'"


def compile_encoder(message: type[Message], version: int, *, flexible: bool) -> Encoder:
    return _EncoderSource(version, flexible=flexible).compile(message)


class _EncoderSource(FunctionSource):
    """Writes `encode(message)`. Fixed-size fields gather in `_run` until something else is to be written, and
    are then packed by one precompiled struct."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(
            {
                "ONE_BYTE": primitives.ONE_BYTE,
                "classic_int32s": primitives.classic_int32s,
                "compact_int32s": primitives.compact_int32s,
                "tagged_field": primitives.tagged_field,
                "varint": primitives.varint,
            }
        )
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []
        self._add = "add"

    def compile(self, message: type[Message]) -> Encoder:
        with self.block("def encode(message):"):
            self.line("parts = []")
            self.line("add = parts.append")
            self.line("buffers = []")
            self._struct(message, "message")
            self._flush()
            with self.block("if parts or not buffers:"):
                self.line("buffers.append(b''.join(parts))")
            self.line("return buffers")
        return cast(Encoder, self.function("encode", f"encode {message.__name__} version {self._version}"))

    def _struct(self, declared: type[Struct], value: str) -> None:
        tagged: list[Field] = []
        for field in declared.FIELDS:
            if not field.is_valid_in(self._version):
                continue
            if field.tag is not None:
                tagged.append(field)
            else:
                self._field(field, f"{value}.{field.name}")
        assert self._flexible or not tagged, declared
        if not self._flexible:
            return
        if tagged:
            self._tagged_fields(sorted(tagged, key=lambda field: field.tag or 0), value)
        else:
            self._run.append(("x", ""))  # no tagged fields: a zero byte

    def _field(self, field: Field, value: str) -> None:
        match field.kind:
            case kind if kind in FIXED_FORMATS:
                self._run.append((FIXED_FORMATS[kind], value))
            case Kind.STRING:
                self._bytes(field, f"{value}", ".encode()", "h")
            case Kind.BYTES:
                self._bytes(field, f"{value}", "", "i")
            case Kind.RECORDS:
                self._records(value)
            case Kind.RECORD_PIECES:
                self._record_pieces(value)
            case Kind.ARRAY:
                self._array(field, value)
            case Kind.STRUCT:
                self._nullable_struct(field, value)
            case _:
                raise AssertionError(field)

    def _flush(self, extra: tuple[tuple[str, str], ...] = ()) -> None:
        """Write the gathered fixed-size fields and the `extra` ones; only the former are done with."""
        run = [*self._run, *extra]
        if not run:
            return
        formats = "".join(format_ for format_, _ in run)
        values = ", ".join(value for _, value in run if value)
        pack = self.constant(f"pack_{formats.replace('?', 'o')}", struct.Struct(">" + formats).pack)
        self.line(f"{self._add}({pack}({values}))")
        self._run = [] if not extra else self._run

    def _length(self, length: str, classic_format: str) -> None:
        """Write the run and a length after it. `length` is a variable, plus one in compact encodings."""
        if not self._flexible:
            self._run.append((classic_format, length))
            self._flush()
            return
        if self._run:
            with self.block(f"if {length} < 128:"):
                self._flush(extra=(("B", length),))
            with self.block("else:"):
                self._flush()
                self.line(f"{self._add}(varint({length}))")
        else:
            self.line(f"{self._add}(ONE_BYTE[{length}] if {length} < 128 else varint({length}))")

    def _set_length(self, length: str, value: str, *, nullable: bool) -> None:
        stored = f"len({value}) + 1" if self._flexible else f"len({value})"
        null = "0" if self._flexible else "-1"
        self.line(
            f"{length} = {null} if {value} is None else {stored}" if nullable else f"{length} = {stored}"
        )

    def _bytes(self, field: Field, value: str, conversion: str, classic_format: str) -> None:
        text, length = self.variable("text"), self.variable("length")
        nullable = field.is_nullable_in(self._version)
        if nullable and conversion:
            self.line(f"{text} = {value}")
            with self.block(f"if {text} is not None:"):
                self.line(f"{text} = {text}{conversion}")
        else:
            self.line(f"{text} = {value}{conversion}")
        self._set_length(length, text, nullable=nullable)
        self._length(length, classic_format)
        if nullable:
            with self.block(f"if {text}:"):
                self.line(f"{self._add}({text})")
        else:
            self.line(f"{self._add}({text})")

    def _records(self, value: str) -> None:
        records, length = self.variable("records"), self.variable("length")
        self.line(f"{records} = {value}")
        self._set_length(length, records, nullable=True)
        self._length(length, "i")
        with self.block(f"if {records}:"):
            self._hand_over(f"buffers.append({records})")

    def _record_pieces(self, value: str) -> None:
        pieces, length = self.variable("pieces"), self.variable("length")
        self.line(f"{pieces} = {value}")
        self.line(f"{length} = sum(map(len, {pieces})){' + 1' if self._flexible else ''}")
        self._length(length, "i")
        with self.block(f"if {pieces}:"):
            self._hand_over(f"buffers += {pieces}")

    def _hand_over(self, statement: str) -> None:
        """Join what has been written so far and put the records after it."""
        assert self._add == "add", "no records within tagged fields"
        self.line("buffers.append(b''.join(parts))")
        self.line("parts.clear()")
        self.line(statement)

    def _array(self, field: Field, value: str) -> None:
        array = self.variable(field.name)
        nullable = field.is_nullable_in(self._version)
        self.line(f"{array} = {value}")
        if field.element is Kind.INT32:
            self._flush()
            encoded = f"{'compact' if self._flexible else 'classic'}_int32s({array})"
            null = _ZERO_BYTE if self._flexible else _MINUS_ONE_INT32
            self.line(f"{self._add}({f'{null} if {array} is None else {encoded}' if nullable else encoded})")
            return
        length, element = self.variable("length"), self.variable("element")
        self._set_length(length, array, nullable=nullable)
        self._length(length, "i")
        with self.block(f"for {element} in {array}{' or ()' if nullable else ''}:"):
            if field.element is Kind.STRING:
                self._bytes(Field(kind=Kind.STRING, default=""), element, ".encode()", "h")
            else:
                self._struct(field.struct, element)
                self._flush()

    def _nullable_struct(self, field: Field, value: str) -> None:
        """A presence byte, -1 for null and 1 for a struct to follow."""
        present = self.variable(field.name)
        self.line(f"{present} = {value}")
        self._flush()
        with self.block(f"if {present} is None:"):
            self.line(f"{self._add}({_MINUS_ONE_BYTE})")
        with self.block("else:"):
            self._run.append(("b", "1"))
            self._struct(field.struct, present)
            self._flush()

    def _tagged_fields(self, tagged: list[Field], value: str) -> None:
        """The fields that differ from their defaults: count, then tag, size and value of each, by tag."""
        self._flush()
        conditions = [self._differs(field, f"{value}.{field.name}") for field in tagged]
        sections, outer_add = self.variable("sections"), self._add
        with self.block(f"if {' or '.join(conditions)}:"):
            self.line(f"{sections} = []")
            for field, condition in zip(tagged, conditions, strict=True):
                with self.block(f"if {condition}:"):
                    self._tagged_field(field, f"{value}.{field.name}", sections)
            self.line(f"{outer_add}(varint(len({sections})) + b''.join({sections}))")
        with self.block("else:"):
            self.line(f"{outer_add}({_ZERO_BYTE})")

    def _tagged_field(self, field: Field, value: str, sections: str) -> None:
        parts, outer_add = self.variable("parts"), self._add
        self._add = self.variable("add")
        self.line(f"{parts} = []")
        self.line(f"{self._add} = {parts}.append")
        if field.kind is Kind.STRUCT:
            self._struct(field.struct, value)
        else:
            self._field(field, value)
        self._flush()
        self.line(f"{sections}.append(tagged_field({field.tag}, {parts}))")
        self._add = outer_add

    def _differs(self, field: Field, value: str) -> str:
        """The condition under which a tagged field travels."""
        if field.kind is Kind.STRUCT:
            default = self.constant(f"DEFAULT_{field.struct.__name__}", field.struct())
            return f"({value} is not None and {value} != {default})"
        if field.default is None:
            return f"{value} is not None"
        return value if field.default == [] else f"{value} != {field.default!r}"
