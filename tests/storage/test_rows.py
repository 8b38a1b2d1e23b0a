"""Rows of the index file."""

from __future__ import annotations

import pytest

from tests.storage.broker_disk import batch, records, term_start
from tidings.raft.entries import Entry, EntryKind
from tidings.storage.errors import Damaged
from tidings.storage.rows import NO_TIMESTAMP, ROW_BYTES, decode_row, decode_rows, encode_row, max_timestamp


def test_a_row_says_all_of_its_entry_but_the_payload() -> None:
    entry = records(7, term=3, offset=1000, count=5, timestamp=99)

    row = decode_row(encode_row(entry, 4096, 99))

    assert (row.index, row.term, row.kind) == (7, 3, EntryKind.RECORDS)
    assert (row.base_offset, row.record_count, row.next_offset) == (1000, 5, 1005)
    assert (row.position, row.payload_bytes, row.end) == (4096, 70, 4166)
    assert row.max_timestamp == 99


def test_rows_stand_one_behind_the_other() -> None:
    content = encode_row(records(1), 0, 0) + encode_row(term_start(2, term=2, offset=1), 0, NO_TIMESTAMP)

    assert len(content) == 2 * ROW_BYTES
    assert [row.index for row in decode_rows(content)] == [1, 2]


def test_a_flipped_bit_anywhere_is_damage() -> None:
    content = encode_row(records(7), 4096, 99)
    for position in range(ROW_BYTES):
        flipped = bytearray(content)
        flipped[position] ^= 1

        with pytest.raises(Damaged):
            decode_row(bytes(flipped))


def test_a_row_that_is_not_whole_is_damage() -> None:
    with pytest.raises(Damaged):
        decode_row(encode_row(records(7), 0, 0)[:-1])


def test_only_batches_have_a_timestamp() -> None:
    short = Entry(1, 1, EntryKind.RECORDS, 0, 1, b"short")

    assert max_timestamp(records(1, timestamp=55)) == 55
    assert max_timestamp(Entry(1, 1, EntryKind.COMMAND, 0, 0, batch(1, timestamp=55))) == NO_TIMESTAMP
    assert max_timestamp(short) == NO_TIMESTAMP
