"""Tests of broker/producers.py: which sequence is next, which one is a repetition, and which is refused."""

from __future__ import annotations

import pytest

from tidings.broker.producers import BATCHES_REMEMBERED, PRODUCERS_MAX, ProducerTable, SequenceRefused
from tidings.protocol.errors import ErrorCode
from tidings.protocol.records import SEQUENCE_COUNT, BatchHeader

NOW_MS = 1_000_000
EXPIRATION_MS = 1_000


def header(
    sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 7, base_offset: int = 0
) -> BatchHeader:
    return BatchHeader(
        base_offset=base_offset,
        batch_bytes=100,
        leader_epoch=1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=5,
        max_timestamp=9,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def append(table: ProducerTable, batch: BatchHeader) -> None:
    """What a leader does with a batch that is its producer's next."""
    assert table.check(batch) is None
    table.appended(batch, batch.base_offset + batch.last_offset_delta, batch.max_timestamp)


def refusal(table: ProducerTable, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(SequenceRefused) as raised:
        table.check(batch)
    return raised.value.code


@pytest.fixture
def table() -> ProducerTable:
    return ProducerTable(expiration_ms=EXPIRATION_MS)


def test_an_unknown_producer_may_start_anywhere(table: ProducerTable) -> None:
    assert table.check(header(41)) is None


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_next_sequence_follows_the_last_record(table: ProducerTable, is_committed: bool) -> None:
    first = header(0, count=3)
    append(table, first)
    if is_committed:
        table.committed(first, NOW_MS)

    assert table.check(header(3)) is None
    assert refusal(table, header(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(table, header(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_repeated_batch_is_known_by_its_first_place(table: ProducerTable, is_committed: bool) -> None:
    first = header(0, count=3, base_offset=50)
    append(table, first)
    append(table, header(3, base_offset=53))
    if is_committed:
        table.committed(first, NOW_MS)

    written = table.check(header(0, count=3))

    assert written is not None
    assert (written.base_offset, written.last_offset, written.timestamp) == (50, 52, 9)


def test_a_repetition_of_another_length_is_refused(table: ProducerTable) -> None:
    append(table, header(0, count=3))
    append(table, header(3))

    assert refusal(table, header(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_committed_batches_are_remembered(table: ProducerTable) -> None:
    for sequence in range(BATCHES_REMEMBERED + 1):
        batch = header(sequence, base_offset=sequence)
        append(table, batch)
        table.committed(batch, NOW_MS)

    for sequence in range(1, BATCHES_REMEMBERED + 1):
        written = table.check(header(sequence))
        assert written is not None
        assert written.base_offset == sequence
    assert refusal(table, header(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_start_again_at_zero_behind_the_largest(table: ProducerTable) -> None:
    append(table, header(SEQUENCE_COUNT - 2, count=4, base_offset=10))

    written = table.check(header(SEQUENCE_COUNT - 2, count=4))

    assert table.check(header(2)) is None
    assert written is not None
    assert (written.base_offset, written.last_offset) == (10, 13)


def test_an_older_epoch_is_refused(table: ProducerTable) -> None:
    append(table, header(0, epoch=2))

    assert refusal(table, header(1, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_starts_with_sequence_zero(table: ProducerTable) -> None:
    append(table, header(0, epoch=1))

    assert refusal(table, header(1, epoch=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert table.check(header(0, epoch=2)) is None


def test_batches_of_an_older_epoch_are_no_repetitions(table: ProducerTable) -> None:
    first = header(0, epoch=1)
    append(table, first)
    table.committed(first, NOW_MS)
    append(table, header(0, epoch=2, base_offset=1))
    table.committed(header(0, epoch=2, base_offset=1), NOW_MS)

    written = table.check(header(0, epoch=2))

    assert written is not None
    assert written.base_offset == 1


def test_what_was_not_committed_is_forgotten_with_leadership(table: ProducerTable) -> None:
    first = header(0)
    append(table, first)
    table.committed(first, NOW_MS)
    append(table, header(1, base_offset=1))

    table.forget_appended()

    assert table.check(header(1, base_offset=1)) is None


def test_a_replica_that_never_led_knows_what_was_committed(table: ProducerTable) -> None:
    table.committed(header(0, count=2, base_offset=30), NOW_MS)

    written = table.check(header(0, count=2))

    assert written is not None
    assert written.base_offset == 30
    assert table.check(header(2)) is None


def test_batches_below_what_the_table_knows_are_not_counted_again(table: ProducerTable) -> None:
    table.committed(header(0, base_offset=10), NOW_MS)
    table.committed(header(1, base_offset=11), NOW_MS)

    table.committed(header(0, base_offset=10), NOW_MS)

    assert table.check(header(2)) is None


def test_a_silent_producer_expires_and_may_go_on_anywhere(table: ProducerTable) -> None:
    table.committed(header(0, producer_id=1), NOW_MS)
    table.committed(header(0, producer_id=2), NOW_MS + 1)

    table.expire(NOW_MS + EXPIRATION_MS)

    assert [producer_id for producer_id, _ in table.producers()] == [2]
    assert table.check(header(99, producer_id=1)) is None


def test_a_producer_with_a_batch_under_way_does_not_expire(table: ProducerTable) -> None:
    table.committed(header(0), NOW_MS)
    append(table, header(1, base_offset=1))

    table.expire(NOW_MS + EXPIRATION_MS)

    assert len(table) == 1


def test_writing_again_puts_expiry_off(table: ProducerTable) -> None:
    table.committed(header(0, producer_id=1), NOW_MS)
    table.committed(header(0, producer_id=2), NOW_MS)
    table.committed(header(1, producer_id=1, base_offset=1), NOW_MS + EXPIRATION_MS)

    table.expire(NOW_MS + EXPIRATION_MS)

    assert [producer_id for producer_id, _ in table.producers()] == [1]


def test_the_producer_that_wrote_longest_ago_makes_room_for_a_new_one(table: ProducerTable) -> None:
    for producer_id in range(PRODUCERS_MAX):
        table.committed(header(0, producer_id=producer_id), NOW_MS)
    table.committed(header(1, producer_id=0, base_offset=1), NOW_MS)

    table.committed(header(0, producer_id=PRODUCERS_MAX), NOW_MS)

    assert len(table) == PRODUCERS_MAX
    assert table.check(header(5, producer_id=1)) is None
    assert refusal(table, header(5, producer_id=0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
