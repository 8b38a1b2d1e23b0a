"""What a log is made of, and the bytes of a membership."""

from __future__ import annotations

import struct

import pytest

from tidings.raft.entries import Entry, EntryKind, Membership


def test_an_entry_with_records_takes_as_many_offsets() -> None:
    entry = Entry(5, 2, EntryKind.RECORDS, 100, 3, b"batch")

    assert entry.next_offset == 103


def test_an_entry_without_records_takes_no_offset() -> None:
    entry = Entry(5, 2, EntryKind.TERM_START, 100, 0, b"")

    assert entry.next_offset == 100


def test_a_membership_comes_back_from_its_bytes() -> None:
    membership = Membership(voters=(1, 2**64 - 1, 3), learners=(9,))

    assert Membership.decode(membership.encode()) == membership


@pytest.mark.parametrize("encoded", [b"", b"\x01\x00", Membership(voters=(1,)).encode() + b"\0"])
def test_bytes_that_are_no_membership_are_refused(encoded: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        Membership.decode(encoded)
