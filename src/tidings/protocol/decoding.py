"""Decoding: the function that reads one version of one message, generated from the message's declaration.

The one rule: whatever the bytes are, the outcome is a message or ProtocolError, in time and memory bounded by
the size of the frame. Positions only ever grow, and reading past the end is an IndexError or a struct.error,
both translated at the one border; a slice that was cut short moves the position past the end, which is seen
at the next read or at the end. So one comparison at the end replaces a check per field. Nothing here knows a
particular message. Tests: tests/protocol/test_codec.py, test_mutations.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import cast

from tidings.protocol import primitives
from tidings.protocol.errors import ProtocolError
from tidings.protocol.schema import Field, Kind, Message, Struct
from tidings.protocol.source import FIXED_FORMATS, FunctionSource, format_bytes

# Array elements and unknown tagged fields of one message, all together. A struct takes some hundred bytes of
# memory for as few as two in the frame; with this bound a hostile frame of any size is worth about 50 MB for
# a moment. A thousand topics of a hundred partitions, fetched at once, need less than half.
ELEMENTS_MAX = 2**18

# Bytes behind the message that are skipped. librdkafka ends its question for all topics (Metadata, compact
# lengths) with three of them; a frame of which more is padding only serves to hold memory.
PADDING_BYTES_MAX = 16

Decoder = Callable[[bytes, int], Message]


def compile_decoder(message: type[Message], version: int, *, flexible: bool) -> Decoder:
    return _DecoderSource(version, flexible=flexible).compile(message)


class _DecoderSource(FunctionSource):
    """Writes `decode(frame, position)`. Fixed-size fields gather in `_run` until something else is to be
    read, and are then read by one precompiled struct."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(
            {
                "ProtocolError": ProtocolError,
                "MALFORMED": (IndexError, struct.error, UnicodeDecodeError),
                "bad_count": primitives.bad_count,
                "bad_end": primitives.bad_end,
                "bad_length": primitives.bad_length,
                "bad_tag_size": primitives.bad_tag_size,
                "read_int32s": primitives.read_int32s,
                "read_varint": primitives.read_varint,
                "read_varint_tail": primitives.read_varint_tail,
                "skip_tagged_fields": primitives.skip_tagged_fields,
                "too_many_elements": primitives.too_many_elements,
            }
        )
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []

    def compile(self, message: type[Message]) -> Decoder:
        with self.block("def decode(frame, position):"):
            with self.block("try:"):
                self.line("limit = len(frame)")
                self.line("view = memoryview(frame)")
                self.line(f"budget = {ELEMENTS_MAX}")
                self.line(f"message = {self._struct(message)}")
            with self.block("except MALFORMED as error:"):
                self.line("raise ProtocolError('malformed message', reason=error) from error")
            with self.block(f"if not 0 <= limit - position <= {PADDING_BYTES_MAX}:"):
                self.line("raise bad_end(position, limit)")
            self.line("return message")
        return cast(Decoder, self.function("decode", f"decode {message.__name__} version {self._version}"))

    def _struct(self, declared: type[Struct]) -> str:
        """Read the fields; returns the expression that makes the struct."""
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for field in declared.FIELDS:
            if not field.is_valid_in(self._version):
                values[field.name] = repr(field.default)
            elif field.tag is not None:
                values[field.name] = self.variable(field.name)
                tagged.append(field)
            else:
                values[field.name] = self._field(field)
        assert self._flexible or not tagged, declared
        if self._flexible:
            self._tagged_fields(tagged, values)
        self._flush()
        return f"{self.constant(declared.__name__, declared)}({', '.join(values.values())})"

    def _field(self, field: Field) -> str:
        """Read one field; returns the variable that holds it once the run is flushed."""
        value = self.variable(field.name)
        match field.kind:
            case kind if kind in FIXED_FORMATS:
                self._run.append((FIXED_FORMATS[kind], value))
            case Kind.STRING:
                self._bytes(field, value, self._length("h"), "frame[position:end].decode()")
            case Kind.BYTES:
                self._bytes(field, value, self._length("i"), "frame[position:end]")
            case Kind.RECORDS:
                self._bytes(field, value, self._length("i"), "view[position:end]")
            case Kind.RECORD_PIECES:
                self._record_pieces(value)
            case Kind.ARRAY:
                self._array(field, value)
            case Kind.STRUCT:
                self._nullable_struct(field, value)
            case _:
                raise AssertionError(field)
        return value

    def _flush(self) -> None:
        """Read the gathered fixed-size fields."""
        if not self._run:
            return
        formats = "".join(format_ for format_, _ in self._run)
        targets = [target for _, target in self._run]
        self._run = []
        if formats == "B":
            self.line(f"{targets[0]} = frame[position]")
        else:
            unpack = self.constant(
                f"unpack_{formats.replace('?', 'o')}", struct.Struct(">" + formats).unpack_from
            )
            self.line(f"{', '.join(targets)}, = {unpack}(frame, position)")
        self.line(f"position += {format_bytes(formats)}")

    def _varint(self, hint: str) -> str:
        value = self.variable(hint)
        self._run.append(("B", value))
        self._flush()
        with self.block(f"if {value} > 127:"):
            self.line(f"{value}, position = read_varint_tail(frame, {value}, position)")
        return value

    def _length(self, classic_format: str) -> str:
        """Read a length or count; -1 stands for null in both encodings."""
        if self._flexible:
            length = self._varint("length")
            self.line(f"{length} -= 1")
        else:
            length = self.variable("length")
            self._run.append((classic_format, length))
            self._flush()
        return length

    def _bytes(self, field: Field, value: str, length: str, expression: str) -> None:
        if field.is_nullable_in(self._version):
            with self.block(f"if {length} == -1:"):
                self.line(f"{value} = None")
            with self.block("else:"):
                self._bytes_present(field.name, value, length, expression)
        else:
            self._bytes_present(field.name, value, length, expression)

    def _bytes_present(self, name: str, value: str, length: str, expression: str) -> None:
        with self.block(f"if {length} < 0:"):
            self.line(f"raise bad_length({name!r}, {length})")
        self.line(f"end = position + {length}")
        self.line(f"{value} = {expression}")
        self.line("position = end")

    def _record_pieces(self, value: str) -> None:
        length = self._length("i")
        with self.block(f"if {length} > 0:"):
            self.line(f"end = position + {length}")
            self.line(f"{value} = [view[position:end]]")
            self.line("position = end")
        with self.block("else:"):
            self.line(f"{value} = []")

    def _array(self, field: Field, value: str) -> None:
        count = self._length("i")
        if field.is_nullable_in(self._version):
            with self.block(f"if {count} == -1:"):
                self.line(f"{value} = None")
            with self.block("else:"):
                self._array_present(field, value, count)
        else:
            self._array_present(field, value, count)

    def _array_present(self, field: Field, value: str, count: str) -> None:
        name, element = field.name, field.element
        element_bytes_min = _element_bytes_min(field, self._version, flexible=self._flexible)
        with self.block(f"if {count} < 0 or {count} * {element_bytes_min} > limit - position:"):
            self.line(f"raise bad_count({name!r}, {count}, limit - position)")
        self.line(f"budget -= {count}")
        with self.block("if budget < 0:"):
            self.line(f"raise too_many_elements({name!r}, {count})")
        if element is Kind.INT32:
            self.line(f"{value} = read_int32s(frame, position, {count})")
            self.line(f"position += {count} * 4")
            return
        self.line(f"{value} = []")
        with self.block(f"for _ in range({count}):"):
            if element is Kind.STRING:
                text = self.variable(name)
                self._bytes_present(name, text, self._length("h"), "frame[position:end].decode()")
                self.line(f"{value}.append({text})")
            else:
                self.line(f"{value}.append({self._struct(field.struct)})")

    def _nullable_struct(self, field: Field, value: str) -> None:
        """A presence byte, -1 for null and anything else for a struct to follow."""
        presence = self.variable("presence")
        self._run.append(("b", presence))
        self._flush()
        with self.block(f"if {presence} < 0:"):
            self.line(f"{value} = None")
        with self.block("else:"):
            self.line(f"{value} = {self._struct(field.struct)}")

    def _tagged_fields(self, tagged: list[Field], values: dict[str, str]) -> None:
        count = self.variable("tagged_count")
        self._run.append(("B", count))
        self._flush()
        for field in tagged:
            self.line(f"{values[field.name]} = {field.default!r}")
        with self.block(f"if {count}:"):
            if not tagged:
                self.line(f"position, budget = skip_tagged_fields(frame, {count}, position, budget)")
                return
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, position = read_varint_tail(frame, {count}, position)")
            self.line(f"budget -= {count}")
            with self.block("if budget < 0:"):
                self.line(f"raise too_many_elements('tagged fields', {count})")
            with self.block(f"for _ in range({count}):"):
                self._tagged_field(tagged, values)

    def _tagged_field(self, tagged: list[Field], values: dict[str, str]) -> None:
        tag, size, tagged_end = self.variable("tag"), self.variable("size"), self.variable("tagged_end")
        self.line(f"{tag}, position = read_varint(frame, position)")
        self.line(f"{size}, position = read_varint(frame, position)")
        self.line(f"{tagged_end} = position + {size}")
        keyword = "if"
        for field in tagged:
            with self.block(f"{keyword} {tag} == {field.tag}:"):
                if field.kind is Kind.STRUCT:
                    self.line(f"{values[field.name]} = {self._struct(field.struct)}")
                else:
                    read = self._field(field)
                    self._flush()
                    self.line(f"{values[field.name]} = {read}")
            keyword = "elif"
        with self.block("else:"):
            self.line(f"position = {tagged_end}")
        with self.block(f"if position != {tagged_end}:"):
            self.line(f"raise bad_tag_size({tag}, {size})")


def _element_bytes_min(field: Field, version: int, *, flexible: bool) -> int:
    """The fewest bytes an element can take in the frame."""
    if field.element is Kind.INT32:
        return 4
    if field.element is Kind.STRING:
        return 1 if flexible else 2
    return _struct_bytes_min(field.struct, version, flexible=flexible)


def _struct_bytes_min(declared: type[Struct], version: int, *, flexible: bool) -> int:
    size = 1 if flexible else 0
    for field in declared.FIELDS:
        if not field.is_valid_in(version) or field.tag is not None:
            continue
        if field.kind in FIXED_FORMATS:
            size += format_bytes(FIXED_FORMATS[field.kind])
        elif flexible or field.kind is Kind.STRUCT:
            size += 1
        else:
            size += 2 if field.kind is Kind.STRING else 4
    return size
