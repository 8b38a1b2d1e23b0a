"""Checkpoint files."""

from __future__ import annotations

import struct
from dataclasses import replace

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.files import FakeFiles
from tidings.raft.entries import Membership, StartState, TermStart
from tidings.storage.checkpoint import (
    Checkpoint,
    LogStart,
    SegmentView,
    decode_checkpoint,
    encode_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from tidings.storage.errors import Damaged, FormatTooNew

FULL = Checkpoint(
    group=77,
    start=StartState(
        index=120,
        term=9,
        offset=5000,
        membership=Membership(voters=(1, 2, (1 << 64) - 1), learners=(4,)),
        log_start_offset=1200,
        terms=(TermStart(term=3, index=1, offset=0), TermStart(term=9, index=80, offset=4000)),
        state=b"state of the owner",
    ),
    log_start=LogStart(index=50, term=3, offset=1000),
    segments=(
        SegmentView(1000, 51, 40, 9000, 0, 1, 99, 3000, 3),
        SegmentView(3000, 91, 30, 8000, 70, -1, -1, 5000, 9),
    ),
    reset_sequence=12,
    title="größe-0",
)

numbers = st.integers(0, (1 << 63) - 1)


def test_what_was_written_is_read() -> None:
    files = FakeFiles()

    write_checkpoint(files, "groups/77", FULL)

    assert read_checkpoint(files, "groups/77") == FULL


def test_a_group_without_one_has_none() -> None:
    assert read_checkpoint(FakeFiles(), "groups/77") is None


@given(
    index=numbers,
    offset=numbers,
    voters=st.lists(numbers, max_size=5),
    terms=st.lists(st.builds(TermStart, term=numbers, index=numbers, offset=numbers), max_size=5),
    state=st.binary(max_size=200),
    title=st.text(max_size=20),
)
def test_any_checkpoint_survives_encoding(
    index: int, offset: int, voters: list[int], terms: list[TermStart], state: bytes, title: str
) -> None:
    start = StartState(
        index=index,
        term=1,
        offset=offset,
        membership=Membership(voters=tuple(voters)),
        terms=tuple(terms),
        state=state,
    )
    checkpoint = replace(FULL, start=start, title=title)

    assert decode_checkpoint(encode_checkpoint(checkpoint), "p") == checkpoint


def test_a_flipped_bit_anywhere_is_damage() -> None:
    content = encode_checkpoint(FULL)
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 0x20

        with pytest.raises(Damaged):
            decode_checkpoint(bytes(flipped), "p")


def test_a_cut_at_any_length_is_damage() -> None:
    content = encode_checkpoint(FULL)
    for length in range(len(content)):
        with pytest.raises(Damaged):
            decode_checkpoint(content[:length], "p")


def test_a_newer_version_is_refused_by_name() -> None:
    body = encode_checkpoint(FULL)[16:]
    crc = google_crc32c.extend(google_crc32c.value((2).to_bytes(4, "little")), body)
    content = struct.pack("<8sII", b"TIDECKP\n", 2, crc) + body

    with pytest.raises(FormatTooNew, match="groups/7/checkpoint has format version 2"):
        decode_checkpoint(content, "groups/7/checkpoint")


def test_one_that_the_disk_cannot_read_is_damage() -> None:
    files = FakeFiles()
    write_checkpoint(files, "groups/77", FULL)
    files.unreadable.add("groups/77/checkpoint")

    with pytest.raises(Damaged):
        read_checkpoint(files, "groups/77")
