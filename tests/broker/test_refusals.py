"""Tests of broker/refusals.py: what follows a refused batch is refused for the same reason."""

from __future__ import annotations

import pytest

from tests.fakes.world import make_batch
from tidings.broker.ports import LogFull, NotLeader, StorageFull
from tidings.broker.refusals import PRODUCERS_MAX, UNDER_WAY_MS_MAX, Refusals
from tidings.protocol.records import SEQUENCE_COUNT, BatchHeader, read_header

NOW_MS = 1_000_000
PRODUCER = 7


def header(sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> BatchHeader:
    return read_header(make_batch(b"x", producer_id=producer_id, epoch=epoch, sequence=sequence))


@pytest.fixture
def refusals() -> Refusals:
    refusals = Refusals()
    refusals.note(PRODUCER, 0, 5, StorageFull, NOW_MS)
    return refusals


def test_what_follows_a_refused_batch_is_refused_for_the_same_reason(refusals: Refusals) -> None:
    assert refusals.reason_for(header(6), NOW_MS) is StorageFull
    assert refusals.reason_for(header(60), NOW_MS) is StorageFull


@pytest.mark.parametrize(
    "other", [header(5), header(4), header(6, epoch=1), header(6, producer_id=8)], ids=str
)
def test_the_batch_itself_older_ones_and_those_of_others_have_reasons_of_their_own(
    refusals: Refusals, other: BatchHeader
) -> None:
    assert refusals.reason_for(other, NOW_MS) is None


def test_the_first_refused_batch_counts_with_the_newest_reason(refusals: Refusals) -> None:
    refusals.note(PRODUCER, 0, 6, NotLeader, NOW_MS)

    assert refusals.reason_for(header(6), NOW_MS) is NotLeader


def test_an_earlier_batch_that_is_refused_later_counts(refusals: Refusals) -> None:
    refusals.note(PRODUCER, 0, 3, LogFull, NOW_MS)

    assert refusals.reason_for(header(4), NOW_MS) is LogFull


def test_a_producers_new_epoch_begins_anew(refusals: Refusals) -> None:
    refusals.note(PRODUCER, 1, 9, LogFull, NOW_MS)

    assert refusals.reason_for(header(6), NOW_MS) is None
    assert refusals.reason_for(header(10, epoch=1), NOW_MS) is LogFull


def test_a_batch_that_is_taken_ends_it(refusals: Refusals) -> None:
    refusals.taken(PRODUCER)

    assert refusals.reason_for(header(6), NOW_MS) is None


def test_sequences_are_counted_round_and_round() -> None:
    refusals = Refusals()
    refusals.note(PRODUCER, 0, SEQUENCE_COUNT - 1, NotLeader, NOW_MS)

    assert refusals.reason_for(header(0), NOW_MS) is NotLeader


def test_a_gap_that_stays_is_one(refusals: Refusals) -> None:
    assert refusals.reason_for(header(6), NOW_MS + UNDER_WAY_MS_MAX + 1) is None


def test_of_too_many_producers_the_oldest_are_forgotten(refusals: Refusals) -> None:
    for producer_id in range(100, 100 + PRODUCERS_MAX):
        refusals.note(producer_id, 0, 0, NotLeader, NOW_MS)

    assert refusals.reason_for(header(6), NOW_MS) is None
    assert refusals.reason_for(header(6, producer_id=100), NOW_MS) is NotLeader
