"""The bytes of a start state. Little endian.

    u8 format version | u64 index | u64 term | i64 offset | i64 log start offset
    u32 membership bytes | membership (entries.py)
    u32 row count | rows: u64 term | u64 index | i64 offset
    u32 state bytes | state

The one rule: bytes that are not exactly this raise WireError. Tests: tests/raft/test_wire.py
"""

from __future__ import annotations

import struct
from itertools import pairwise

from tidings.raft.entries import Membership, StartState, TermStart
from tidings.raft.errors import WireError

_FORMAT_VERSION = 1
_HEAD = struct.Struct("<BQQqq")
_LENGTH = struct.Struct("<I")
_ROW = struct.Struct("<QQq")


def encode_start(start: StartState) -> bytes:
    membership = start.membership.encode()
    parts = [
        _HEAD.pack(_FORMAT_VERSION, start.index, start.term, start.offset, start.log_start_offset),
        _LENGTH.pack(len(membership)),
        membership,
        _LENGTH.pack(len(start.terms)),
        *(_ROW.pack(row.term, row.index, row.offset) for row in start.terms),
        _LENGTH.pack(len(start.state)),
        start.state,
    ]
    return b"".join(parts)


def decode_start(encoded: bytes) -> StartState:
    try:
        return _decode(encoded)
    except (struct.error, ValueError) as error:
        raise WireError(f"start state of {len(encoded)} bytes: {error}") from error


def _decode(encoded: bytes) -> StartState:
    version, index, term, offset, log_start_offset = _HEAD.unpack_from(encoded, 0)
    if version != _FORMAT_VERSION:
        raise WireError(f"start state of format version {version}, this one reads {_FORMAT_VERSION}")
    at = _HEAD.size
    (membership_bytes,) = _LENGTH.unpack_from(encoded, at)
    at += _LENGTH.size
    membership = Membership.decode(encoded[at : at + membership_bytes])
    at += membership_bytes
    (row_count,) = _LENGTH.unpack_from(encoded, at)
    at += _LENGTH.size
    rows_end = at + row_count * _ROW.size
    if rows_end > len(encoded):
        raise WireError(f"{row_count} rows of the epoch table do not fit into {len(encoded)} bytes")
    rows = tuple(
        TermStart(term=row_term, index=row_index, offset=row_offset)
        for row_term, row_index, row_offset in _ROW.iter_unpack(encoded[at:rows_end])
    )
    _check_rows(rows, index, term)
    (state_bytes,) = _LENGTH.unpack_from(encoded, rows_end)
    at = rows_end + _LENGTH.size
    if len(encoded) != at + state_bytes:
        raise WireError(f"state of {state_bytes} bytes at {at} in {len(encoded)} bytes")
    return StartState(
        index=index,
        term=term,
        offset=offset,
        membership=membership,
        log_start_offset=log_start_offset,
        terms=rows,
        state=encoded[at:],
    )


def _check_rows(rows: tuple[TermStart, ...], index: int, term: int) -> None:
    """A table that rises and ends with the start's own term: the log relies on it."""
    for row, following in pairwise(rows):
        if row.term >= following.term or row.index >= following.index or row.offset > following.offset:
            raise WireError(f"epoch table falls from {row} to {following}")
    if rows and (rows[-1].term != term or rows[-1].index > index):
        raise WireError(f"epoch table ends with {rows[-1]}, the start is entry {index} of term {term}")
