"""The log in memory: contiguous, with the terms of what is no longer there."""

from __future__ import annotations

import pytest

from tidings.raft.entries import Entry, EntryKind, Membership, StartState, TermStart
from tidings.raft.errors import LogDiverged
from tidings.raft.log import ENTRY_OVERHEAD_BYTES, GroupLog

EMPTY = StartState(index=0, term=0, offset=0, membership=Membership(voters=(1,)))


def batch(index: int, term: int, offset: int, records: int = 2, payload: bytes = b"batch") -> Entry:
    return Entry(index, term, EntryKind.RECORDS, offset, records, payload)


def term_start(index: int, term: int, offset: int) -> Entry:
    return Entry(index, term, EntryKind.TERM_START, offset, 0, b"")


def three_terms() -> GroupLog:
    """Terms 1 (entries 1 to 3), 4 (4, 5) and 5 (6): offsets 0 to 8."""
    return GroupLog(
        EMPTY,
        [
            term_start(1, 1, 0),
            batch(2, 1, 0),
            batch(3, 1, 2),
            term_start(4, 4, 4),
            batch(5, 4, 4),
            batch(6, 5, 6),
        ],
    )


def test_the_term_of_every_entry_is_known() -> None:
    log = three_terms()

    assert [log.term_at(index) for index in range(7)] == [0, 1, 1, 1, 4, 4, 5]
    assert log.terms == [
        TermStart(term=1, index=1, offset=0),
        TermStart(term=4, index=4, offset=4),
        TermStart(term=5, index=6, offset=6),
    ]


@pytest.mark.parametrize(
    "entry",
    [batch(8, 5, 8), batch(6, 5, 8), batch(7, 5, 9), batch(7, 5, 7), batch(7, 4, 8)],
    ids=["gap in index", "index twice", "gap in offset", "offset twice", "term falls"],
)
def test_an_entry_that_does_not_continue_the_log_is_refused(entry: Entry) -> None:
    log = three_terms()

    with pytest.raises(LogDiverged):
        log.append(entry)

    assert (log.last_index, log.next_offset) == (6, 8)


def test_truncation_takes_the_terms_and_offsets_back_too() -> None:
    log = three_terms()

    log.truncate(4)

    assert (log.last_index, log.last_term, log.next_offset) == (3, 1, 4)
    assert log.terms == [TermStart(term=1, index=1, offset=0)]
    log.append(batch(4, 6, 4))
    assert log.term_at(4) == 6


def test_truncation_to_nothing_leaves_an_empty_log() -> None:
    log = three_terms()

    log.truncate(1)

    assert (log.last_index, log.last_term, log.next_offset, log.terms) == (0, 0, 0, [])


def test_terms_below_the_window_are_still_known() -> None:
    log = three_terms()

    log.release(5)

    assert log.window_first == 6
    assert [log.term_at(index) for index in range(7)] == [0, 1, 1, 1, 4, 4, 5]


def test_a_log_begins_behind_its_start_state_and_knows_the_terms_before() -> None:
    start = StartState(
        index=10,
        term=4,
        offset=50,
        membership=EMPTY.membership,
        terms=(TermStart(term=2, index=3, offset=7), TermStart(term=4, index=8, offset=40)),
    )

    log = GroupLog(start, [batch(11, 4, 50)])

    assert [log.term_at(index) for index in (3, 7, 8, 10, 11)] == [2, 2, 4, 4, 4]
    assert (log.window_first, log.last_index, log.next_offset) == (11, 11, 52)


def test_moving_the_start_keeps_the_term_of_the_entry_before_the_first_one_left() -> None:
    log = three_terms()

    log.move_start_to(4)

    assert (log.start_index, log.start_term, log.start_offset) == (4, 4, 4)
    assert log.terms[0] == TermStart(term=4, index=4, offset=4)
    assert [log.term_at(index) for index in (4, 5, 6)] == [4, 4, 5]


@pytest.mark.parametrize(
    ("index", "term", "expected"),
    [(6, 5, 6), (6, 4, 5), (6, 3, 3), (5, 4, 5), (2, 1, 2), (2, 0, 0), (99, 9, 6)],
)
def test_the_newest_entry_of_a_term_or_an_older_one_is_found_by_whole_terms(
    index: int, term: int, expected: int
) -> None:
    assert three_terms().newest_in_terms_up_to(index, term) == expected


@pytest.mark.parametrize(("offset", "index"), [(0, 2), (1, 2), (2, 3), (4, 5), (5, 5), (7, 6)])
def test_an_offset_leads_to_the_batch_that_holds_it(offset: int, index: int) -> None:
    found = three_terms().find_offset(offset)

    assert found is not None
    assert found.index == index


def test_an_offset_outside_of_memory_leads_nowhere() -> None:
    log = three_terms()
    log.release(3)

    assert log.find_offset(8) is None
    assert log.find_offset(3) is None


def test_bytes_between_entries_are_known_wherever_the_window_begins() -> None:
    log = GroupLog(EMPTY, [batch(i, 1, 2 * i - 2, payload=bytes(10 * i)) for i in range(1, 6)])
    each = [10 * i + ENTRY_OVERHEAD_BYTES for i in range(1, 6)]

    assert log.bytes_between(0, 5) == sum(each)
    log.release(2)

    assert log.bytes_between(2, 5) == sum(each[2:])
    assert log.bytes_between(0, 3) == each[2], "what is not in memory weighs nothing"
    assert log.window_bytes() == sum(each[2:])
    log.truncate(5)
    assert log.window_bytes() == sum(each[2:4])


def test_as_many_entries_are_taken_as_fit_and_always_one() -> None:
    log = GroupLog(EMPTY, [batch(i, 1, 2 * i - 2, payload=bytes(100)) for i in range(1, 6)])
    size = 100 + ENTRY_OVERHEAD_BYTES

    assert [entry.index for entry in log.entries_within(2, 2 * size)] == [2, 3]
    assert [entry.index for entry in log.entries_within(2, 2 * size - 1)] == [2]
    assert [entry.index for entry in log.entries_within(4, 1)] == [4]
    assert [entry.index for entry in log.entries_within(1, 10 * size)] == [1, 2, 3, 4, 5]


def test_a_log_matches_an_entry_of_the_same_index_and_term_only() -> None:
    log = three_terms()

    assert log.matches(5, 4)
    assert not log.matches(5, 5)
    assert not log.matches(7, 5)
