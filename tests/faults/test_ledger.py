"""The ledger finds what a cluster may do to messages; an account that adds up has no findings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.faults.ledger import Ledger, Outcome


def account(*, acknowledged: Sequence[int], refused: int = 0) -> Ledger:
    """Messages 0, 1, 2, ... of writer w to partition 0, acknowledged at these offsets, then refused ones."""
    ledger = Ledger()
    for number, offset in enumerate(acknowledged):
        ledger.acknowledged(ledger.sent("w", 0, number), offset)
    for number in range(len(acknowledged), len(acknowledged) + refused):
        ledger.refused(ledger.sent("w", 0, number))
    return ledger


def read_all(ledger: Ledger, rows: Sequence[tuple[int, str]], reader: str = "last") -> None:
    for offset, value in rows:
        ledger.read(reader, 0, offset, value.encode())
    ledger.read_all(reader, 0, max((offset for offset, _ in rows), default=-1) + 1)


def kinds(ledger: Ledger) -> set[str]:
    return {finding.kind for finding in ledger.findings()}


def test_an_account_that_adds_up_has_no_findings() -> None:
    ledger = account(acknowledged=[0, 1])

    read_all(ledger, [(0, "w.0.0"), (1, "w.0.1")])

    assert ledger.findings() == []
    assert ledger.count(Outcome.OK) == 2
    assert ledger.end_acknowledged(0) == 2


def test_an_unknown_outcome_may_be_there_or_not() -> None:
    ledger = account(acknowledged=[0])
    ledger.sent("w", 0, 1)
    ledger.sent("w", 0, 2)

    read_all(ledger, [(0, "w.0.0"), (1, "w.0.2")])

    assert ledger.findings() == []
    assert ledger.count(Outcome.UNKNOWN) == 2


@pytest.mark.parametrize(
    ("acknowledged", "rows", "expected"),
    [
        ([0, 1], [(0, "w.0.0")], {"lost"}),
        ([0, 1], [(1, "w.0.1")], {"lost", "hole"}),
        ([0], [(1, "w.0.0")], {"moved", "hole"}),
        ([0], [(0, "w.0.0"), (1, "w.0.0")], {"duplicate", "moved"}),
        ([0], [(0, "w.0.0"), (1, "x.0.0")], {"phantom"}),
        ([0], [(0, "w.0.0"), (1, "w.1.0")], {"phantom"}),
        ([1, 0], [(0, "w.0.1"), (1, "w.0.0")], {"disorder"}),
        ([0, 1], [(1, "w.0.1"), (0, "w.0.0")], {"backwards"}),
        ([0, 2], [(0, "w.0.0"), (2, "w.0.1")], {"hole"}),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else None,
)
def test_what_does_not_add_up_is_named(
    acknowledged: list[int], rows: list[tuple[int, str]], expected: set[str]
) -> None:
    ledger = account(acknowledged=acknowledged)

    read_all(ledger, rows)

    assert kinds(ledger) == expected


def test_a_reader_need_not_find_what_came_later() -> None:
    ledger = account(acknowledged=[0, 1])
    read_all(ledger, [(0, "w.0.0")], reader="early")

    read_all(ledger, [(0, "w.0.0"), (1, "w.0.1")])

    assert ledger.findings() == []


def test_what_lies_below_the_logs_start_is_not_missed() -> None:
    ledger = account(acknowledged=[0, 1, 2])
    ledger.read("last", 0, 2, b"w.0.2")

    ledger.read_all("last", 0, 3, start_offset=2)

    assert ledger.findings() == []


def test_two_readers_that_disagree_on_an_offset_are_a_finding() -> None:
    ledger = account(acknowledged=[])
    ledger.sent("w", 0, 0)
    ledger.sent("w", 0, 1)
    ledger.read("early", 0, 0, b"w.0.1")

    read_all(ledger, [(0, "w.0.0")])

    assert kinds(ledger) == {"inconsistent"}


def test_a_refused_message_that_is_read_is_a_phantom() -> None:
    ledger = account(acknowledged=[], refused=1)

    read_all(ledger, [(0, "w.0.0")])

    assert kinds(ledger) == {"phantom"}


def test_a_refused_message_that_is_nowhere_is_no_finding() -> None:
    ledger = account(acknowledged=[], refused=1)

    read_all(ledger, [])

    assert ledger.findings() == []
    assert ledger.count(Outcome.FAILED) == 1


def test_an_error_told_to_a_client_is_a_finding() -> None:
    ledger = account(acknowledged=[])
    ledger.complained("watcher", "offset out of range")

    read_all(ledger, [])

    assert kinds(ledger) == {"error"}


def test_without_a_full_reading_there_is_no_verdict() -> None:
    ledger = account(acknowledged=[0])

    with pytest.raises(AssertionError, match="nobody has read all"):
        ledger.findings()
