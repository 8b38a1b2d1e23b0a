"""Records inside a batch: as kafka-python and aiokafka read and write them, and as nobody should."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any  # the libraries compared with are untyped

import google_crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaReader
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.protocol.compression import Compression
from tidings.protocol.errors import ProtocolError
from tidings.protocol.record_codec import (
    Record,
    RecordHeader,
    append_varint,
    decode_records,
    encode_batch,
    find_timestamp,
    max_timestamp_record,
)
from tidings.protocol.records import (
    HEADER_BYTES,
    check_produced,
    crc_is_right,
    read_header,
    stamp_append_time,
)

with warnings.catch_warnings():
    # It reads its own resources in a way that Python 3.11 deprecates and 3.13 took back.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonReader
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

NOW_MS = 1_700_000_000_000
DECODED_BYTES_MAX = 1 << 20

# Long enough that every compression makes it smaller: the other libraries send it plain otherwise.
RECORDS = [
    Record(0, NOW_MS, b"key", b"value" * 100),
    Record(1, NOW_MS - 7, None, b""),
    Record(2, NOW_MS + 100_000, b"", None),
    Record(3, NOW_MS, None, None, (RecordHeader("trace", b"\x00\xff"), RecordHeader("trace", None))),
    Record(4, NOW_MS + 1, b"key", b"value" * 100, (RecordHeader("", b""), RecordHeader("größe", b"1"))),
]


def decode(batch: bytes) -> list[Record]:
    return list(decode_records(batch, decoded_bytes_max=DECODED_BYTES_MAX))


def resealed(batch: bytes) -> bytes:
    """`batch` with the CRC of its bytes."""
    crc: int = google_crc32c.value(batch[21:])
    return batch[:17] + crc.to_bytes(4, "big") + batch[21:]


def with_payload(payload: bytes, record_count: int = 1) -> bytes:
    """A batch of `record_count` records, whatever its payload holds."""
    header = bytearray(encode_batch([Record(0, NOW_MS, None, None)])[:HEADER_BYTES])
    header[8:12] = (HEADER_BYTES - 12 + len(payload)).to_bytes(4, "big")
    header[23:27] = (record_count - 1).to_bytes(4, "big", signed=True)
    header[57:61] = record_count.to_bytes(4, "big", signed=True)
    return bytes(header) + payload


def varints(*numbers: int) -> bytes:
    buffer = bytearray()
    for number in numbers:
        append_varint(buffer, number)
    return bytes(buffer)


def record_bytes(body: bytes) -> bytes:
    """A record of `body`: what follows its attributes."""
    return varints(len(body) + 1) + b"\0" + body


Library = Callable[..., Any]  # Any: the readers and builders of two libraries that share no type
BUILDERS: dict[str, Library] = {"kafka-python": KafkaPythonBuilder, "aiokafka": AiokafkaBuilder}
READERS: dict[str, Library] = {"kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader}
# kafka-python has no snappy without one more package; aiokafka's is made by the same framing.
OTHERS = [
    (library, codec)
    for library in BUILDERS
    for codec in Compression
    if (library, codec) != ("kafka-python", Compression.SNAPPY)
]


@pytest.mark.parametrize(("library", "codec"), OTHERS)
def test_batches_of_other_libraries_are_read(library: str, codec: Compression) -> None:
    builder = BUILDERS[library](2, int(codec), True, 9, 3, 42, DECODED_BYTES_MAX)
    for record in RECORDS:
        headers = [(header.key, header.value) for header in record.headers]
        builder.append(record.offset, record.timestamp, record.key, record.value, headers)
    batch = bytes(builder.build())

    header = check_produced(batch, batch_bytes_max=len(batch), produce_version=9).header

    assert decode(batch) == RECORDS
    assert header.compression == codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, 42)
    assert header.is_transactional
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 100_000)


@pytest.mark.parametrize(("library", "codec"), OTHERS)
def test_our_batches_are_read_by_other_libraries(library: str, codec: Compression) -> None:
    batch = encode_batch(RECORDS, compression=codec, producer_id=9, producer_epoch=3, base_sequence=42)

    reader = READERS[library](batch)
    read = [
        Record(record.offset, record.timestamp, record.key, record.value, as_headers(record.headers))
        for record in reader
    ]

    assert read == RECORDS
    assert READERS[library](batch).validate_crc()


def as_headers(pairs: list[tuple[str, bytes | None]]) -> tuple[RecordHeader, ...]:
    return tuple(RecordHeader(name, value) for name, value in pairs)


def test_an_uncompressed_batch_has_the_bytes_of_kafka_python() -> None:
    builder = KafkaPythonBuilder(2, 0, False, -1, -1, -1, DECODED_BYTES_MAX)
    for record in RECORDS:
        headers = [(header.key, header.value) for header in record.headers]
        builder.append(record.offset, record.timestamp, record.key, record.value, headers)

    assert encode_batch(RECORDS, leader_epoch=0)[21:] == bytes(builder.build())[21:]


timestamps = st.integers(0, 2**62)
nullable_bytes = st.none() | st.binary(max_size=40)
record_headers = st.builds(RecordHeader, st.text(max_size=10), nullable_bytes)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**62))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        headers = tuple(draw(st.lists(record_headers, max_size=3)))
        records.append(Record(offset, draw(timestamps), draw(nullable_bytes), draw(nullable_bytes), headers))
        offset += draw(st.integers(1, 3))
    return records


@given(records=record_lists(), codec=st.sampled_from(Compression))
def test_what_is_written_is_read_bit_for_bit(records: list[Record], codec: Compression) -> None:
    batch = encode_batch(records, compression=codec)

    assert decode(batch) == records
    assert crc_is_right(batch)
    assert read_header(batch).next_offset == records[-1].offset + 1


def test_flags_and_numbers_of_a_control_batch_are_written() -> None:
    marker = Record(7, NOW_MS, b"\0\0\0\1", b"\0\0\0\0\0\5")

    header = read_header(
        encode_batch(
            [marker], producer_id=9, producer_epoch=3, transactional=True, control=True, leader_epoch=8
        )
    )

    assert header.is_control
    assert header.is_transactional
    assert (header.base_offset, header.leader_epoch, header.base_sequence) == (7, 8, -1)


def test_a_base_timestamp_of_choice_is_kept_apart_from_the_records() -> None:
    batch = encode_batch(RECORDS, base_timestamp=5)

    assert read_header(batch).base_timestamp == 5
    assert decode(batch) == RECORDS


def test_a_batch_without_records_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        encode_batch([])


def test_header_names_that_are_no_text_survive() -> None:
    batch = encode_batch([Record(0, NOW_MS, None, None, (RecordHeader("name", b"value"),))])
    strange = resealed(batch.replace(b"name", b"\xff\xfe\x80x"))

    records = decode(strange)

    assert records[0].headers[0].key == "\udcff\udcfe\udc80x"
    assert encode_batch(records) == strange


def test_with_log_append_time_every_record_has_the_brokers_time() -> None:
    batch = stamp_append_time(encode_batch(RECORDS, compression=Compression.LZ4), 100, 1, NOW_MS + 5)

    records = decode(batch)

    assert {record.timestamp for record in records} == {NOW_MS + 5}
    assert [record.offset for record in records] == [100, 101, 102, 103, 104]


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(0, 0), (NOW_MS, 0), (NOW_MS + 1, 2), (NOW_MS + 100_000, 2), (NOW_MS + 100_001, None)],
)
@pytest.mark.parametrize("codec", Compression)
def test_the_first_record_of_a_time_or_later_is_found(
    codec: Compression, timestamp: int, offset: int | None
) -> None:
    batch = encode_batch(RECORDS, compression=codec)

    found = find_timestamp(batch, timestamp, decoded_bytes_max=DECODED_BYTES_MAX)

    assert found == (None if offset is None else RECORDS[offset])


@pytest.mark.parametrize(("timestamp", "offset"), [(0, 50), (NOW_MS + 5, 50), (NOW_MS + 6, None)])
def test_with_log_append_time_the_first_record_or_none_is_found(timestamp: int, offset: int | None) -> None:
    batch = stamp_append_time(encode_batch(RECORDS), 50, 1, NOW_MS + 5)

    found = find_timestamp(batch, timestamp, decoded_bytes_max=DECODED_BYTES_MAX)

    assert (None if found is None else found.offset) == offset


def test_the_newest_record_is_found_and_the_first_of_equals() -> None:
    records = [*RECORDS, replace(RECORDS[2], offset=5)]

    assert max_timestamp_record(encode_batch(records), decoded_bytes_max=DECODED_BYTES_MAX) == RECORDS[2]


@given(records=record_lists(), timestamp=timestamps)
def test_searches_agree_with_reading_everything(records: list[Record], timestamp: int) -> None:
    batch = encode_batch(records)
    newest = max(record.timestamp for record in records)

    at_or_later = find_timestamp(batch, timestamp, decoded_bytes_max=DECODED_BYTES_MAX)
    of_newest = max_timestamp_record(batch, decoded_bytes_max=DECODED_BYTES_MAX)

    assert at_or_later == next((record for record in records if record.timestamp >= timestamp), None)
    assert of_newest == next(record for record in records if record.timestamp == newest)


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    empty = with_payload(b"", record_count=0)

    assert decode(empty) == []
    assert find_timestamp(empty, 0, decoded_bytes_max=0) is None
    assert max_timestamp_record(empty, decoded_bytes_max=0) is None


NULLS = varints(-1, -1, 0)  # key, value, headers
WHOLE = record_bytes(varints(0, 0) + NULLS)
WHOLE_BATCH = with_payload(WHOLE)
MALFORMED = {
    "no record": (with_payload(b""), "within a number"),
    "fewer records than counted": (with_payload(WHOLE, record_count=2), "within a number"),
    "bytes behind the last record": (with_payload(WHOLE + b"\0"), "behind the last record"),
    "more records than counted": (with_payload(WHOLE, record_count=0), "behind the last record"),
    "a negative count": (with_payload(WHOLE, record_count=-1), "behind the last record"),
    "a record beyond the end": (with_payload(WHOLE[:-1]), "length does not fit"),
    "a record of no bytes": (with_payload(varints(0) + WHOLE), "length does not fit"),
    "a record of negative length": (with_payload(varints(-1) + WHOLE), "length does not fit"),
    "a record shorter than its numbers": (
        with_payload(varints(2) + b"\0" + varints(0, 0) + NULLS),
        "shorter than its numbers",
    ),
    "a record longer than its fields": (
        with_payload(record_bytes(varints(0, 0) + NULLS + b"\0")),
        "length is wrong",
    ),
    "an endless varint": (with_payload(b"\xff" * 20), "too long"),
    "a varint of 33 bits": (with_payload(b"\x80\x80\x80\x80\x10"), "too large"),
    "a varlong of 65 bits": (
        with_payload(record_bytes(b"\x80" * 9 + b"\x02" + varints(0) + NULLS)),
        "too large",
    ),
    "a number that never ends": (with_payload(record_bytes(b"\x80")), "within a number"),
    "an offset before the batch": (
        with_payload(record_bytes(varints(0, -1) + NULLS)),
        "offset is out of order",
    ),
    "an offset behind the batch": (
        with_payload(record_bytes(varints(0, 1) + NULLS)),
        "offset is out of order",
    ),
    "an offset twice": (with_payload(WHOLE + WHOLE, record_count=2), "offset is out of order"),
    "a time beyond 64 bits": (
        with_payload(record_bytes(varints(2**63 - 1, 0) + NULLS)),
        "timestamp is out of range",
    ),
    "a key beyond the record": (
        with_payload(record_bytes(varints(0, 0, 100, -1, 0))),
        "does not fit its record",
    ),
    "a key of length -2": (with_payload(record_bytes(varints(0, 0, -2, -1, 0))), "does not fit its record"),
    "a value beyond the record": (
        with_payload(record_bytes(varints(0, 0, -1, 2, 0))),
        "does not fit its record",
    ),
    "a negative header count": (with_payload(record_bytes(varints(0, 0, -1, -1, -1))), "header count"),
    "more headers than bytes": (with_payload(record_bytes(varints(0, 0, -1, -1, 2**31 - 1))), "header count"),
    "a header without a name": (with_payload(record_bytes(varints(0, 0, -1, -1, 1, -1, -1))), "has no name"),
    "a header's name beyond the record": (
        with_payload(record_bytes(varints(0, 0, -1, -1, 1, 2, 0))),
        "does not fit its record",
    ),
    "format 1": (WHOLE_BATCH[:16] + b"\1" + WHOLE_BATCH[17:], "format is unknown"),
    "less than a header": (WHOLE_BATCH[:60], "cut short"),
    "a byte behind the batch": (WHOLE_BATCH + b"\0", "not one batch"),
    "compression 5": (WHOLE_BATCH[:21] + b"\0\5" + WHOLE_BATCH[23:], "compression is unknown"),
    "plain bytes called gzip": (WHOLE_BATCH[:21] + b"\0\1" + WHOLE_BATCH[23:], "records are malformed"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_batches_are_refused(name: str) -> None:
    batch, problem = MALFORMED[name]

    with pytest.raises(ProtocolError, match=problem):
        decode(batch)


def test_the_right_batch_beside_the_malformed_ones_is_read() -> None:
    assert decode(WHOLE_BATCH) == [Record(0, NOW_MS, None, None)]


@settings(max_examples=300)
@given(codec=st.sampled_from(Compression), seed=st.integers(0, 2**32))
def test_mutations_end_in_records_or_in_a_refusal(codec: Compression, seed: int) -> None:
    chance = random.Random(seed)
    batch = bytearray(encode_batch(RECORDS, compression=codec))
    for _ in range(chance.randint(1, 4)):
        batch[chance.randrange(12, len(batch))] = chance.randrange(256)
    mutated = bytes(batch)

    for read in (
        lambda: decode(mutated),
        lambda: find_timestamp(mutated, NOW_MS + 1, decoded_bytes_max=DECODED_BYTES_MAX),
        lambda: max_timestamp_record(mutated, decoded_bytes_max=DECODED_BYTES_MAX),
    ):
        try:
            read()
        except ProtocolError:
            continue


@given(payload=st.binary(max_size=200), record_count=st.integers(0, 2**31 - 1))
def test_random_payloads_end_in_records_or_in_a_refusal(payload: bytes, record_count: int) -> None:
    try:
        records = decode(with_payload(payload, record_count))
    except ProtocolError:
        return
    assert len(records) == record_count


def test_a_batch_that_decompresses_to_more_than_its_reader_allows_is_refused() -> None:
    batch = encode_batch([Record(0, NOW_MS, None, bytes(10_000))], compression=Compression.GZIP)

    with pytest.raises(ProtocolError, match="limit"):
        list(decode_records(batch, decoded_bytes_max=9_000))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varints_are_zigzag(number: int, encoded: str) -> None:
    assert varints(number).hex() == encoded


def test_a_number_of_more_than_64_bits_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        append_varint(bytearray(), 2**63)
