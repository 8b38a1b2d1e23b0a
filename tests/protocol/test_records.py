"""The header of a batch: reading it, what a producer must not send, stamping, and walking whole batches."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.protocol import records
from tidings.protocol.errors import ErrorCode, ProtocolError
from tidings.protocol.records import (
    BatchError,
    BatchHeader,
    CheckedBatch,
    check_produced,
    check_timestamps,
    crc_is_right,
    read_header,
    split_batches,
    stamp,
    stamp_append_time,
)

NOW_MS = 1_700_000_000_000
I64_MAX = 2**63 - 1


@dataclass(kw_only=True)
class Wanted:
    """A batch to be written field by field, right by default; None means: what is right for the others."""

    base_offset: int = 0
    length: int | None = None
    leader_epoch: int = -1
    magic: int = 2
    crc: int | None = None
    attributes: int = 0
    last_offset_delta: int | None = None
    base_timestamp: int = NOW_MS
    max_timestamp: int = NOW_MS
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = 1
    body: bytes = b"twelve bytes"

    def write(self) -> bytes:
        delta = self.record_count - 1 if self.last_offset_delta is None else self.last_offset_delta
        times = (self.attributes, delta, self.base_timestamp, self.max_timestamp)
        producer = (self.producer_id, self.producer_epoch, self.base_sequence, self.record_count)
        covered = struct.pack(">hiqqqhii", *times, *producer) + self.body
        length = len(covered) + 9 if self.length is None else self.length
        crc = google_crc32c.value(covered) if self.crc is None else self.crc
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc) + covered


def check(
    batch: bytes | memoryview | None, *, produce_version: int = 9, batch_bytes_max: int = 1000
) -> CheckedBatch:
    return check_produced(batch, batch_bytes_max=batch_bytes_max, produce_version=produce_version)


def test_a_right_batch_passes_with_its_header_and_without_a_copy() -> None:
    frame = memoryview(
        b"request" + Wanted(record_count=3, producer_id=5, producer_epoch=1, base_sequence=9).write()
    )

    checked = check(frame[7:])

    assert checked.view.obj is frame.obj
    assert checked.header.record_count == 3
    assert checked.header.batch_bytes == len(checked.view)
    assert checked.header.last_sequence == 11


def test_a_batch_of_exactly_the_limit_passes() -> None:
    batch = Wanted().write()

    assert check(batch, batch_bytes_max=len(batch)).header.batch_bytes == len(batch)


REFUSED = {
    "records null": (None, ErrorCode.INVALID_RECORD),
    "no bytes": (b"", ErrorCode.INVALID_RECORD),
    "less than a magic byte": (Wanted().write()[:16], ErrorCode.INVALID_RECORD),
    "less than a header": (Wanted().write()[:60], ErrorCode.INVALID_RECORD),
    "a byte short": (Wanted().write()[:-1], ErrorCode.INVALID_RECORD),
    "a byte too much": (Wanted().write() + b"\0", ErrorCode.INVALID_RECORD),
    "two batches": (Wanted().write() * 2, ErrorCode.INVALID_RECORD),
    "length below the header": (Wanted(length=48).write(), ErrorCode.CORRUPT_MESSAGE),
    "length zero": (Wanted(length=0).write(), ErrorCode.CORRUPT_MESSAGE),
    "length negative": (Wanted(length=-(2**31)).write(), ErrorCode.CORRUPT_MESSAGE),
    "length of 2 GiB": (Wanted(length=2**31 - 1).write(), ErrorCode.INVALID_RECORD),
    "format 0": (Wanted(magic=0).write(), ErrorCode.INVALID_RECORD),
    "format 1": (Wanted(magic=1).write(), ErrorCode.INVALID_RECORD),
    "format 1 in few bytes": (Wanted(magic=1).write()[:34], ErrorCode.INVALID_RECORD),
    "format 3": (Wanted(magic=3).write(), ErrorCode.CORRUPT_MESSAGE),
    "format negative": (Wanted(magic=-1).write(), ErrorCode.CORRUPT_MESSAGE),
    "larger than the limit": (Wanted(body=b"x" * 1000).write(), ErrorCode.MESSAGE_TOO_LARGE),
    "wrong CRC": (Wanted(crc=1).write(), ErrorCode.CORRUPT_MESSAGE),
    "no records": (Wanted(record_count=0).write(), ErrorCode.INVALID_RECORD),
    "a negative count": (Wanted(record_count=-1).write(), ErrorCode.INVALID_RECORD),
    "a negative delta": (Wanted(last_offset_delta=-1).write(), ErrorCode.INVALID_RECORD),
    "fewer records than offsets": (Wanted(last_offset_delta=1).write(), ErrorCode.INVALID_RECORD),
    "more records than offsets": (
        Wanted(record_count=3, last_offset_delta=1).write(),
        ErrorCode.INVALID_RECORD,
    ),
    "control": (Wanted(attributes=0x20).write(), ErrorCode.INVALID_RECORD),
    "control in a transaction": (
        Wanted(attributes=0x30, producer_id=1, producer_epoch=0, base_sequence=0).write(),
        ErrorCode.INVALID_RECORD,
    ),
    "delete horizon": (Wanted(attributes=0x40).write(), ErrorCode.INVALID_RECORD),
    "log append time": (Wanted(attributes=0x08).write(), ErrorCode.INVALID_TIMESTAMP),
    "compression 5": (Wanted(attributes=5).write(), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "compression 7": (Wanted(attributes=7).write(), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "producer without a sequence": (
        Wanted(producer_id=0, producer_epoch=0).write(),
        ErrorCode.INVALID_RECORD,
    ),
    "producer without an epoch": (Wanted(producer_id=0, base_sequence=0).write(), ErrorCode.INVALID_RECORD),
    "transaction without a producer": (Wanted(attributes=0x10).write(), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_producer_must_not_send_is_refused_with_its_code(name: str) -> None:
    batch, code = REFUSED[name]

    with pytest.raises(BatchError) as refusal:
        check(batch)

    assert refusal.value.code is code
    assert str(refusal.value)


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_the_old_compressions_pass_in_every_version(codec: int) -> None:
    assert check(Wanted(attributes=codec).write(), produce_version=3).header.compression == codec


@pytest.mark.parametrize(("produce_version", "passes"), [(3, False), (6, False), (7, True), (13, True)])
def test_zstd_passes_from_produce_version_7_on(produce_version: int, passes: bool) -> None:
    batch = Wanted(attributes=4).write()

    if passes:
        assert check(batch, produce_version=produce_version).header.compression == 4
        return
    with pytest.raises(BatchError) as refusal:
        check(batch, produce_version=produce_version)

    assert refusal.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_transactional_batch_of_a_producer_passes() -> None:
    checked = check(Wanted(attributes=0x10, producer_id=0, producer_epoch=0, base_sequence=0).write())

    assert checked.header.is_transactional
    assert not checked.header.is_control


def test_unknown_attribute_bits_pass_untouched() -> None:
    assert check(Wanted(attributes=0x4000).write()).header.attributes == 0x4000


@given(position=st.integers(0, 72), flip=st.integers(1, 255))
def test_any_flipped_byte_is_refused_but_in_the_two_numbers_the_broker_writes(
    position: int, flip: int
) -> None:
    batch = bytearray(Wanted().write())
    batch[position] ^= flip

    if position < 8 or 12 <= position < 16:  # base offset, leader epoch
        check(bytes(batch))
        return
    with pytest.raises(BatchError):
        check(bytes(batch))


@given(st.binary(max_size=200))
def test_random_bytes_end_in_nothing_but_a_refusal(noise: bytes) -> None:
    with pytest.raises(BatchError):
        check(noise)


def test_a_header_is_read_field_by_field_where_it_stands() -> None:
    batch = Wanted(
        base_offset=2**40,
        leader_epoch=7,
        crc=0xFFFFFFFF,
        attributes=0x33,
        last_offset_delta=4,
        base_timestamp=1,
        max_timestamp=2,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        record_count=6,
    ).write()

    header = read_header(b"before" + batch + b"behind", 6)

    assert header == BatchHeader(2**40, len(batch), 7, 2, 0xFFFFFFFF, 0x33, 4, 1, 2, 3, 4, 5, 6)
    assert header.next_offset == 2**40 + 5
    assert header.compression == 3
    assert header.is_transactional
    assert header.is_control
    assert not header.is_log_append_time


@pytest.mark.parametrize("position", [13, 73, 1000])
def test_a_header_cut_short_is_malformed(position: int) -> None:
    with pytest.raises(ProtocolError, match="cut short"):
        read_header(Wanted().write(), position)


@pytest.mark.parametrize(
    ("base_sequence", "record_count", "last_sequence"),
    [
        (0, 1, 0),
        (9, 3, 11),
        (2**31 - 2, 2, 2**31 - 1),
        (2**31 - 1, 1, 2**31 - 1),
        (2**31 - 1, 3, 1),
        (-1, 3, -1),
    ],
)
def test_sequences_start_again_at_zero_after_the_greatest(
    base_sequence: int, record_count: int, last_sequence: int
) -> None:
    header = read_header(Wanted(base_sequence=base_sequence, record_count=record_count).write())

    assert header.last_sequence == last_sequence


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_a_stamp_changes_base_offset_and_leader_epoch_alone(kind: type[bytes] | type[memoryview]) -> None:
    batch = Wanted(leader_epoch=-1).write()

    stamped = stamp(kind(batch), 2**40, 7)

    assert type(stamped) is bytes
    assert stamped == Wanted(base_offset=2**40, leader_epoch=7).write()
    assert crc_is_right(stamped)


def test_an_append_time_stamp_sets_bit_and_time_and_a_right_crc() -> None:
    batch = Wanted(attributes=0x02, base_timestamp=5, max_timestamp=6).write()

    stamped = stamp_append_time(memoryview(batch), 100, 3, NOW_MS)

    assert (
        stamped
        == Wanted(
            base_offset=100, leader_epoch=3, attributes=0x0A, base_timestamp=5, max_timestamp=NOW_MS
        ).write()
    )
    assert crc_is_right(stamped)


def test_an_append_time_stamp_keeps_attribute_bits_it_does_not_know() -> None:
    stamped = stamp_append_time(Wanted(attributes=-0x8000).write(), 0, 0, NOW_MS)

    assert read_header(stamped).attributes == -0x8000 | 0x08


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("base_timestamp", "max_timestamp", "passes"),
    [
        (NOW_MS, NOW_MS, True),
        (NOW_MS - 1000, NOW_MS + HOUR_MS, True),
        (NOW_MS - 1001, NOW_MS, False),
        (NOW_MS, NOW_MS + HOUR_MS + 1, False),
        (NOW_MS + HOUR_MS + 1, NOW_MS, False),
        (NOW_MS, NOW_MS - 1001, False),
        (-1, -1, True),
        (-1, NOW_MS + HOUR_MS + 1, False),
        (I64_MAX, I64_MAX, False),
        (-(2**63), NOW_MS, False),
    ],
)
def test_timestamps_too_far_from_the_clock_are_refused(
    base_timestamp: int, max_timestamp: int, passes: bool
) -> None:
    header = read_header(Wanted(base_timestamp=base_timestamp, max_timestamp=max_timestamp).write())

    if passes:
        check_timestamps(header, NOW_MS, 1000, HOUR_MS)
        return
    with pytest.raises(BatchError) as refusal:
        check_timestamps(header, NOW_MS, 1000, HOUR_MS)

    assert refusal.value.code is ErrorCode.INVALID_TIMESTAMP


def test_without_a_limit_no_timestamp_is_too_old() -> None:
    header = read_header(Wanted(base_timestamp=0, max_timestamp=0).write())

    check_timestamps(header, NOW_MS, I64_MAX, HOUR_MS)


def test_whole_batches_are_split_without_a_copy() -> None:
    first, second = Wanted(body=b"first").write(), Wanted(body=b"").write()
    buffer = first + second

    batches = split_batches(buffer)

    assert batches == [first, second]
    assert all(batch.obj is buffer for batch in batches)
    assert split_batches(b"") == []


@pytest.mark.parametrize(
    "buffer",
    [
        Wanted().write()[:-1],
        Wanted().write() + b"\0",
        Wanted().write() + Wanted().write()[:60],
        Wanted().write() + Wanted(length=48).write(),
        Wanted(length=0).write(),
        Wanted(length=-1).write(),
        Wanted(length=2**31 - 1).write(),
    ],
)
def test_anything_but_whole_batches_is_malformed(buffer: bytes) -> None:
    with pytest.raises(ProtocolError):
        split_batches(buffer)


def test_a_crc_is_right_only_for_the_bytes_it_was_made_of() -> None:
    batch = Wanted().write()

    assert crc_is_right(batch)
    assert crc_is_right(memoryview(batch))
    assert not crc_is_right(batch[:-1])
    assert not crc_is_right(batch[:20])
    assert not crc_is_right(Wanted(crc=0).write())


def test_the_header_struct_is_as_long_as_the_header() -> None:
    assert records.HEADER.size == records.HEADER_BYTES == 61
