"""Tests of node/recovered.py: how a group begins, given what its files say."""

from __future__ import annotations

from dataclasses import replace

from tidings.node.formation import Founding
from tidings.node.recovered import RecoveredGroup, begin_group, begin_metadata
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState, TermStart

MEMBER = 11
FOUNDERS = (11, 12, 13)
HARD = HardState(term=3, vote=12)


def start_at(index: int, *voters: int) -> StartState:
    return StartState(
        index=index,
        term=2 if index else 0,
        offset=index,
        membership=Membership(voters=voters or FOUNDERS),
        terms=(TermStart(term=2, index=1, offset=0),) if index else (),
        state=b"state" if index else b"",
    )


def entry(index: int, kind: EntryKind = EntryKind.RECORDS, payload: bytes = b"") -> Entry:
    return Entry(index, 2, kind, index - 1, 1 if kind == EntryKind.RECORDS else 0, payload)


def with_files(*voters: int, is_damaged: bool = False) -> RecoveredGroup:
    """A checkpoint at entry 5, and two entries behind it."""
    return RecoveredGroup(
        group=1,
        start=start_at(5, *voters),
        first=start_at(0),
        tail=[entry(6), entry(7)],
        hard=HARD,
        has_files=True,
        is_damaged=is_damaged,
    )


def young(*, is_damaged: bool = False) -> RecoveredGroup:
    """Two entries in the write-ahead log, and no checkpoint that names members."""
    nothing = StartState(index=0, term=0, offset=0, membership=Membership(voters=()))
    return RecoveredGroup(
        group=1, start=nothing, first=nothing, tail=[entry(1), entry(2)], hard=HARD, is_damaged=is_damaged
    )


def test_a_group_that_was_never_here_begins_with_its_founders_and_nothing_else() -> None:
    begin = begin_group(None, 1, FOUNDERS, member=MEMBER)

    assert begin.start == start_at(0)
    assert (list(begin.tail), begin.has_files, begin.hard) == ([], False, HardState(term=0, vote=0))


def test_a_group_with_files_begins_with_what_they_say() -> None:
    recovered = with_files(11, 14)

    assert begin_group(recovered, 1, FOUNDERS, member=MEMBER) is recovered


def test_a_young_group_begins_with_its_founders_and_its_entries() -> None:
    begin = begin_group(young(), 1, FOUNDERS, member=MEMBER)

    assert begin.start.membership.voters == FOUNDERS
    assert [held.index for held in begin.tail] == [1, 2]
    assert begin.hard == HARD


def test_a_damaged_group_begins_without_its_log_and_with_its_vote_and_members() -> None:
    begin = begin_group(with_files(11, 12, is_damaged=True), 1, FOUNDERS, member=MEMBER)

    assert begin.is_damaged
    assert (begin.start.index, list(begin.tail), begin.first.index) == (0, [], 0)
    assert begin.start.membership.voters == (11, 12)
    assert begin.hard == HARD


def test_a_damaged_young_group_begins_without_its_log_and_with_its_founders() -> None:
    begin = begin_group(young(is_damaged=True), 1, FOUNDERS, member=MEMBER)

    assert begin.is_damaged
    assert list(begin.tail) == []
    assert begin.start.membership.voters == FOUNDERS


def test_a_damaged_group_whose_only_voter_is_here_is_kept_for_reading() -> None:
    begin = begin_group(with_files(MEMBER, is_damaged=True), 1, FOUNDERS, member=MEMBER)

    assert begin.is_read_only
    assert not begin.is_damaged
    assert (begin.start.index, [held.index for held in begin.tail]) == (5, [6, 7])


def test_a_damaged_group_whose_only_voter_is_elsewhere_is_refilled_from_there() -> None:
    begin = begin_group(with_files(12, is_damaged=True), 1, FOUNDERS, member=MEMBER)

    assert begin.is_damaged
    assert not begin.is_read_only


def test_a_change_of_members_behind_the_checkpoint_tells_whether_somebody_else_votes() -> None:
    recovered = with_files(MEMBER, is_damaged=True)
    joined = entry(6, EntryKind.MEMBERSHIP, Membership(voters=(11, 12)).encode())

    begin = begin_group(replace(recovered, tail=[joined]), 1, FOUNDERS, member=MEMBER)

    assert begin.is_damaged
    assert not begin.is_read_only


def test_a_damaged_young_group_of_one_replica_is_kept_for_reading() -> None:
    begin = begin_group(young(is_damaged=True), 1, (MEMBER,), member=MEMBER)

    assert begin.is_read_only
    assert [held.index for held in begin.tail] == [1, 2]


def test_new_metadata_begins_with_the_founders_of_the_cluster() -> None:
    founding = Founding(cluster_id="c", members={1: 11, 2: 12, 3: 13})

    begin = begin_metadata(None, founding, member=MEMBER)

    assert begin.start.membership.voters == FOUNDERS


def test_metadata_of_one_broker_of_which_nothing_can_be_read_is_not_begun_anew() -> None:
    founding = Founding(cluster_id="c", members={1: MEMBER})
    nothing = replace(young(is_damaged=True), tail=[])

    begin = begin_metadata(nothing, founding, member=MEMBER)

    assert begin.is_damaged
    assert not begin.is_read_only
