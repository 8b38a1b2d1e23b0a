"""Primitives: what the generated functions call for the rare cases, and the tables they use.

The one rule: a reader returns the value and the position after it, refuses with ProtocolError what no
well-formed peer sends, and otherwise leaves the end of the frame to the generated code, which checks it once
at its own end. Nothing here knows any message. Tests: tests/protocol/test_primitives.py

Unsigned varint: seven bits per byte, lowest first, the high bit says that another byte follows; at most five
bytes. A compact length is the length plus one as an unsigned varint, and 0 for null (KIP-482).
"""

from __future__ import annotations

from struct import Struct, unpack_from

from tidings.protocol.errors import ProtocolError

VARINT_BYTES_MAX = 5

# One varint byte for each value below 128.
ONE_BYTE = tuple(bytes((value,)) for value in range(128))

# Replica lists are short and many: for those of up to 15 ids, length and ids are packed by one ready format.
_SHORT_COUNT_MAX = 15
_CLASSIC_INT32S = tuple(Struct(f">i{count}i").pack for count in range(_SHORT_COUNT_MAX + 1))
_COMPACT_INT32S = tuple(Struct(f">B{count}i").pack for count in range(_SHORT_COUNT_MAX + 1))
_INT32S = tuple(Struct(f">{count}i").unpack_from for count in range(_SHORT_COUNT_MAX + 1))


def varint(value: int) -> bytes:
    if value < 128:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint_tail(frame: bytes, first: int, position: int) -> tuple[int, int]:
    """The rest of a varint whose first byte, one with the high bit set, has been read."""
    value = first & 127
    for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
        byte = frame[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ProtocolError("varint too long", position=position)


def read_varint(frame: bytes, position: int) -> tuple[int, int]:
    first = frame[position]
    if first < 128:
        return first, position + 1
    return read_varint_tail(frame, first, position + 1)


def skip_tagged_fields(frame: bytes, first: int, position: int, budget: int) -> tuple[int, int]:
    """Step over a section of tagged fields none of which is known: the position after it and the budget left.

    `first` is the first byte of their count. They draw on the message's budget of elements: millions of empty
    fields fit into a large frame, and walking over them would hold up everyone else.
    """
    count = first
    if count > 127:
        count, position = read_varint_tail(frame, first, position)
    if count > budget:
        raise too_many_elements("tagged fields", count)
    for _ in range(count):
        _tag, position = read_varint(frame, position)
        size, position = read_varint(frame, position)
        position += size
    return position, budget - count


def read_int32s(frame: bytes, position: int, count: int) -> list[int]:
    """`count` has been checked against the bytes that remain."""
    if count <= _SHORT_COUNT_MAX:
        return list(_INT32S[count](frame, position))
    return list(unpack_from(f">{count}i", frame, position))


def classic_int32s(values: list[int]) -> bytes:
    count = len(values)
    if count <= _SHORT_COUNT_MAX:
        return _CLASSIC_INT32S[count](count, *values)
    return Struct(f">i{count}i").pack(count, *values)


def compact_int32s(values: list[int]) -> bytes:
    count = len(values)
    if count <= _SHORT_COUNT_MAX:
        return _COMPACT_INT32S[count](count + 1, *values)
    return varint(count + 1) + Struct(f">{count}i").pack(*values)


def tagged_field(tag: int, parts: list[bytes]) -> bytes:
    value = b"".join(parts)
    return varint(tag) + varint(len(value)) + value


def bad_null(field: str) -> ProtocolError:
    return ProtocolError("null where none is allowed", field=field)


def bad_length(field: str, length: int) -> ProtocolError:
    if length == -1:
        return bad_null(field)
    return ProtocolError("negative length", field=field, length=length)


def bad_count(field: str, count: int, remaining_bytes: int) -> ProtocolError:
    if count < 0:
        return bad_length(field, count)
    return ProtocolError(
        "array longer than its frame", field=field, count=count, remaining_bytes=remaining_bytes
    )


def too_many_elements(field: str, count: int) -> ProtocolError:
    return ProtocolError("too many array elements in one message", field=field, count=count)


def bad_tag_size(tag: int, size: int) -> ProtocolError:
    return ProtocolError("tagged field does not fill its size", tag=tag, size=size)


def bad_end(position: int, frame_bytes: int) -> ProtocolError:
    problem = "message longer than its frame" if position > frame_bytes else "frame longer than its message"
    return ProtocolError(problem, position=position, frame_bytes=frame_bytes)
