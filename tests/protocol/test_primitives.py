"""Variable-length integers and the arrays of ids."""

from __future__ import annotations

import pytest

from tidings.protocol.errors import ProtocolError
from tidings.protocol.primitives import (
    bad_count,
    classic_int32s,
    compact_int32s,
    read_int32s,
    read_varint,
    skip_tagged_fields,
    varint,
)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (16_384, b"\x80\x80\x01"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_a_varint_is_written_and_read(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded
    assert read_varint(b"." + encoded + b".", 1) == (value, 1 + len(encoded))


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(ProtocolError, match="varint too long"):
        read_varint(b"\xff\xff\xff\xff\xff\x01", 0)


@pytest.mark.parametrize("count", [0, 1, 3, 15, 16, 126, 127, 200])
def test_arrays_of_ids_are_written_and_read_whatever_their_length(count: int) -> None:
    values = [(-1) ** number * number * 1_000_003 for number in range(count)]
    classic, compact = classic_int32s(values), compact_int32s(values)

    assert classic[:4] == count.to_bytes(4, "big")
    assert read_int32s(classic, 4, count) == values
    assert compact == varint(count + 1) + classic[4:]


def test_skipped_tagged_fields_draw_on_the_budget() -> None:
    section = b"\x02" + b"\x00\x01a" + b"\x05\x00"

    assert skip_tagged_fields(section, 2, 1, 10) == (len(section), 8)
    with pytest.raises(ProtocolError, match="too many"):
        skip_tagged_fields(section, 2, 1, 1)


@pytest.mark.parametrize(
    ("count", "problem"),
    [(-1, "null where none is allowed"), (-7, "negative length"), (9, "array longer than its frame")],
)
def test_a_bad_count_is_told_by_what_is_wrong_with_it(count: int, problem: str) -> None:
    assert bad_count("topics", count, remaining_bytes=3).problem == problem
