"""Tests of broker/producers_codec.py: a saved table goes on as the one that was saved."""

from __future__ import annotations

import pytest

from tests.broker.test_producers import EXPIRATION_MS, NOW_MS, append, header, refusal
from tidings.broker.producers import ProducerTable
from tidings.broker.producers_codec import ProducersError, decode_producers, encode_producers
from tidings.protocol.errors import ErrorCode


def saved(table: ProducerTable) -> ProducerTable:
    return decode_producers(encode_producers(table), expiration_ms=EXPIRATION_MS)


def make_table() -> ProducerTable:
    table = ProducerTable(expiration_ms=EXPIRATION_MS)
    for sequence in range(7):
        table.committed(header(sequence, base_offset=sequence, epoch=3), NOW_MS)
    table.committed(header(2**31 - 1, count=2, producer_id=2**62, base_offset=2**40), NOW_MS + 1)
    return table


def test_a_saved_table_knows_the_same_batches() -> None:
    table = saved(make_table())

    for sequence in range(2, 7):
        written = table.check(header(sequence, epoch=3))
        assert written is not None
        assert (written.base_offset, written.timestamp) == (sequence, 9)
    assert table.check(header(7, epoch=3)) is None
    assert refusal(table, header(1, epoch=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert table.check(header(1, producer_id=2**62)) is None


def test_a_saved_table_does_not_take_batches_of_an_older_epoch_for_those_of_the_newest() -> None:
    table = ProducerTable(expiration_ms=EXPIRATION_MS)
    for sequence in range(3):
        table.committed(header(sequence, base_offset=sequence, epoch=1), NOW_MS)
    table.committed(header(0, base_offset=3, epoch=2), NOW_MS)

    assert refusal(saved(table), header(2, epoch=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_encoding_is_stable_and_follows_changes() -> None:
    table = make_table()
    first = encode_producers(table)

    table.committed(header(7, base_offset=7, epoch=3), NOW_MS)

    assert encode_producers(saved(make_table())) == first
    assert encode_producers(table) != first


def test_what_is_only_appended_is_not_saved() -> None:
    table = ProducerTable(expiration_ms=EXPIRATION_MS)
    append(table, header(0))

    assert len(saved(table)) == 0


def test_expiry_goes_on_in_a_saved_table() -> None:
    table = saved(make_table())

    table.expire(NOW_MS + EXPIRATION_MS)

    assert [producer_id for producer_id, _ in table.producers()] == [2**62]


def test_no_bytes_are_an_empty_table() -> None:
    assert len(decode_producers(b"", expiration_ms=EXPIRATION_MS)) == 0


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x02" + encode_producers(make_table())[1:],
        encode_producers(make_table())[:-1],
        encode_producers(make_table()) + b"\x00",
        b"\x01",
        encode_producers(make_table())[:23] + b"\x06" + encode_producers(make_table())[24:],
        encode_producers(make_table())[:23] + b"\x00" + encode_producers(make_table())[24:],
    ],
    ids=["newer format", "cut", "too long", "no count", "too many batches", "no batch"],
)
def test_bytes_that_are_no_table_are_refused(damaged: bytes) -> None:
    with pytest.raises(ProducersError):
        decode_producers(damaged, expiration_ms=EXPIRATION_MS)
