"""Tests of node/salvage.py: whose a log is to decide about, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.storage.lone_log import batch_of, log_of, start_behind
from tidings.broker.commands import (
    Command,
    CreateTopic,
    FormCluster,
    RegisterBroker,
    SkipNumbers,
    encode_command,
)
from tidings.broker.producers_codec import decode_producers
from tidings.node.messages import PROPOSAL_ID_BYTES
from tidings.node.salvage import (
    NEW_TERMS,
    SKIPPED,
    Holdings,
    Owner,
    Standing,
    cluster_after,
    rewrite_of,
    why_beyond_help,
)
from tidings.protocol.record_codec import Record, encode_batch
from tidings.protocol.records import stamp
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.storage.checkpoint import Checkpoint, LogStart
from tidings.storage.recovery import RecoveredGroup
from tidings.storage.salvage import Examined, Rewrite
from tidings.storage.scan_log import LogScan
from tidings.storage.scan_segment import Position
from tidings.storage.wal_format import LastEntry

OWN = 11
MEMBERS = {1: OWN, 2: 12, 3: 13}
VOTERS = tuple(MEMBERS.values())
NOTHING = LogStart(index=0, term=0, offset=0)
NOW_MS = 5_000


def register(broker_id: int, member: int) -> RegisterBroker:
    return RegisterBroker(
        broker_id=broker_id,
        member=member,
        directory=bytes(16),
        host="h",
        port=1,
        peer_host="h",
        peer_port=2,
        replaces=True,
    )


def create(name: str, *replicas: int) -> CreateTopic:
    return CreateTopic(
        name=name,
        topic_id=name.encode().ljust(16),
        partition_count=1,
        replication_factor=len(replicas),
        assignments=(replicas,),
    )


def commands(*given: Command, first_index: int = 1) -> list[Entry]:
    return [
        Entry(index, 1, EntryKind.COMMAND, 0, 0, bytes(PROPOSAL_ID_BYTES) + encode_command(command))
        for index, command in enumerate(given, first_index)
    ]


def membership_entry(index: int, *voters: int) -> Entry:
    return Entry(index, 1, EntryKind.MEMBERSHIP, 0, 0, Membership(voters=voters).encode())


def group_with(
    group: int,
    *,
    voters: Sequence[int] | None = None,
    learners: Sequence[int] = (),
    tail: Sequence[Entry] = (),
    damaged: str | None = None,
    title: str = "",
) -> RecoveredGroup:
    """A group with a checkpoint that names the voters; without voters a young one."""
    checkpoint = None
    if voters is not None:
        membership = Membership(voters=tuple(voters), learners=tuple(learners))
        start = StartState(index=0, term=0, offset=0, membership=membership)
        checkpoint = Checkpoint(group=group, start=start, log_start=NOTHING, title=title)
    return RecoveredGroup(
        group=group,
        checkpoint=checkpoint,
        hard=HardState(term=1, vote=0),
        tail=list(tail),
        damaged=damaged,
        vote_lost=False,
        doubtful=False,
    )


METADATA = commands(
    FormCluster(cluster_id="c"),
    *(register(broker_id, member) for broker_id, member in MEMBERS.items()),
    create("alone", 1),
    create("shared", 1, 2, 3),
)


def holdings(*groups: RecoveredGroup, metadata: Sequence[Entry] = METADATA) -> Holdings:
    known = [group_with(0, voters=VOTERS, tail=metadata), *groups]
    owner = Owner(broker_id=1, member=OWN, founders=MEMBERS)
    return Holdings({group.group: group for group in known}, owner)


def examined(
    recovered: RecoveredGroup, *, end: Position, tail: Sequence[Entry] = (), newest_term: int = 1
) -> Examined:
    scan = LogScan(log_start=NOTHING, segments=(), end=end, terms=(), problem=None)
    return Examined(
        group=recovered.group,
        recovered=recovered,
        scan=scan,
        tail=tuple(tail),
        newest_term=newest_term,
        known_end=LastEntry(end.index, end.term),
        known_offset=end.offset,
    )


def no_entries(first_index: int) -> Iterator[Entry]:
    return iter(())


# -- whose a log is


def test_a_log_of_one_voter_is_for_this_broker_alone() -> None:
    held = holdings(group_with(1, voters=[OWN]))

    assert held.standing(1, lost=()) is Standing.ALONE


@pytest.mark.parametrize(
    ("lost", "standing"),
    [((), Standing.SHARED), ((2,), Standing.SHARED), ((2, 3), Standing.MAJORITY_LOST)],
)
def test_a_log_of_three_is_for_this_broker_when_two_are_lost(
    lost: tuple[int, ...], standing: Standing
) -> None:
    held = holdings(group_with(2, voters=VOTERS))

    assert held.standing(2, lost=lost) is standing


def test_of_two_voters_one_is_no_majority() -> None:
    held = holdings(group_with(2, voters=[OWN, 12]))

    assert held.standing(2, lost=[2]) is Standing.MAJORITY_LOST


def test_a_disk_that_was_replaced_is_lost_with_the_others_and_never_by_itself() -> None:
    held = holdings(group_with(2, voters=[OWN, 99]))

    assert held.standing(2, lost=()) is Standing.SHARED
    assert held.standing(2, lost=[3]) is Standing.MAJORITY_LOST


def test_a_learner_that_is_left_may_go_on_and_a_stranger_may_not() -> None:
    learner = group_with(1, voters=[12, 13], learners=[OWN])
    stranger = group_with(2, voters=[12, 13])
    held = holdings(learner, stranger)

    assert held.standing(1, lost=[2, 3]) is Standing.MAJORITY_LOST
    assert held.standing(2, lost=[2, 3]) is Standing.STRANGER


def test_the_newest_membership_in_the_log_counts() -> None:
    held = holdings(group_with(1, voters=[OWN], tail=[membership_entry(1, OWN, 12)]))

    assert held.standing(1, lost=()) is Standing.SHARED


def test_a_young_group_has_the_members_that_the_metadata_names() -> None:
    held = holdings(group_with(1), group_with(2))

    assert held.standing(1, lost=()) is Standing.ALONE
    assert held.standing(2, lost=()) is Standing.SHARED


def test_a_lost_checkpoint_may_have_known_of_more_members_than_the_first_ones() -> None:
    replaced = commands(register(1, 77), first_index=len(METADATA) + 1)
    held = holdings(group_with(1, damaged="gone"), metadata=[*METADATA, *replaced])

    assert held.membership(1) == Membership(voters=(OWN, 77))


def test_nobody_decides_about_a_group_that_nothing_is_known_of() -> None:
    held = holdings(group_with(9))

    assert held.standing(9, lost=[2, 3]) is Standing.UNKNOWN


def test_metadata_without_a_checkpoint_begins_with_the_founders() -> None:
    held = Holdings({0: group_with(0)}, Owner(broker_id=1, member=OWN, founders=MEMBERS))

    assert held.membership(0) == Membership(voters=(11, 12, 13))
    assert held.brokers() == [1, 2, 3]
    assert held.broker_of(12) == 2


def test_groups_are_named_after_their_topics_as_far_as_anybody_knows() -> None:
    held = holdings(group_with(1), group_with(8, voters=[OWN], title="old-0"), group_with(9))

    assert [held.title(group) for group in (0, 1, 8, 9)] == ["metadata", "alone-0", "old-0", "group 9"]


def test_metadata_that_cannot_be_read_is_told() -> None:
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(OWN,)), state=b"?")
    metadata = group_with(0, voters=[OWN])
    assert metadata.checkpoint is not None
    broken = replace(metadata, checkpoint=replace(metadata.checkpoint, start=start))

    held = Holdings({0: broken}, Owner(broker_id=1, member=OWN, founders=MEMBERS))

    assert "format" in str(held.metadata_problem)


# -- how it goes on


def test_a_log_goes_on_with_one_voter_in_a_term_that_nobody_has_seen() -> None:
    recovered = group_with(2, voters=VOTERS)
    tail = [membership_entry(1, OWN, 12), batch_of(2, term=1, offset=0)]
    one = examined(recovered, end=Position(index=0, term=0, offset=0), tail=tail, newest_term=7)

    rewrite = rewrite_of(one, holdings(recovered), now_ms=NOW_MS)

    assert rewrite.hard == HardState(term=7 + NEW_TERMS, vote=0)
    assert rewrite.title == "shared-0"
    assert rewrite.start_of(no_entries).membership == Membership(voters=(OWN,))
    assert [entry.index for entry in rewrite.entries] == [1, 2]
    assert Membership.decode(rewrite.entries[0].payload) == Membership(voters=(OWN,))
    assert rewrite.entries[1] == tail[1]


def metadata_rewrite(held: Holdings) -> Rewrite:
    one = examined(held.groups[0], end=Position(index=0, term=0, offset=0), tail=METADATA)
    return rewrite_of(one, held, now_ms=NOW_MS)


def test_metadata_goes_on_behind_all_numbers_that_may_have_been_given_out() -> None:
    held = holdings()
    before = cluster_after(held.groups[0].start, METADATA)

    rewrite = metadata_rewrite(held)

    after = cluster_after(held.groups[0].start, rewrite.entries)
    assert after.next_group == before.next_group + SKIPPED.group_count
    assert after.next_producer_id == before.next_producer_id + SKIPPED.producer_id_count
    assert after.topics == before.topics
    assert [entry.kind for entry in rewrite.entries[-2:]] == [EntryKind.TERM_START, EntryKind.COMMAND]
    assert {entry.term for entry in rewrite.entries[-2:]} == {rewrite.hard.term}


def test_metadata_keeps_the_state_of_its_checkpoint() -> None:
    recovered = group_with(0, voters=[OWN])
    one = examined(recovered, end=Position(index=0, term=0, offset=0))

    assert rewrite_of(one, holdings(), now_ms=NOW_MS).start_of(no_entries).state == b""


ENTRIES = log_of((1, 4))


def with_checkpoint(entries: Sequence[Entry], *, state: bytes, log_start_offset: int = 0) -> RecoveredGroup:
    recovered = group_with(1, voters=[OWN])
    assert recovered.checkpoint is not None
    start = start_behind(entries, state=state, log_start_offset=log_start_offset)
    return replace(recovered, checkpoint=replace(recovered.checkpoint, start=start))


def behind(entries: Sequence[Entry]) -> Position:
    return Position(index=entries[-1].index, term=entries[-1].term, offset=entries[-1].next_offset)


def start_of(one: Examined, entries: Sequence[Entry]) -> StartState:
    rewrite = rewrite_of(one, holdings(), now_ms=NOW_MS)
    return rewrite.start_of(lambda first_index: iter([e for e in entries if e.index >= first_index]))


def idempotent(index: int, *, offset: int, sequence: int) -> Entry:
    record = Record(offset=0, timestamp=1, key=None, value=b"v")
    made = encode_batch([record], producer_id=5, producer_epoch=0, base_sequence=sequence)
    return Entry(index, 1, EntryKind.RECORDS, offset, 1, stamp(made, offset, 1))


PRODUCED = [idempotent(1 + number, offset=number, sequence=number) for number in range(4)]


def last_sequences(state: bytes) -> list[int]:
    table = decode_producers(state, expiration_ms=1)
    return [producer.batches[-1].last_sequence for _, producer in table.producers()]


def test_a_log_that_ends_at_its_checkpoint_keeps_its_producers() -> None:
    recovered = with_checkpoint(ENTRIES, state=b"saved", log_start_offset=2)

    start = start_of(examined(recovered, end=behind(ENTRIES)), ENTRIES)

    assert (start.state, start.log_start_offset) == (b"saved", 2)


def test_a_log_that_ends_before_its_checkpoint_knows_the_producers_of_what_is_left() -> None:
    recovered = with_checkpoint(PRODUCED, state=b"of batches that are lost")

    start = start_of(examined(recovered, end=behind(PRODUCED[:2])), PRODUCED[:2])

    assert last_sequences(start.state) == [1]


def test_a_log_that_goes_on_behind_its_checkpoint_knows_the_producers_since() -> None:
    saved = start_of(examined(with_checkpoint(PRODUCED, state=b""), end=behind(PRODUCED[:2])), PRODUCED[:2])
    recovered = with_checkpoint(PRODUCED[:2], state=saved.state)

    start = start_of(examined(recovered, end=behind(PRODUCED)), PRODUCED)

    assert last_sequences(start.state) == [3]


def test_the_log_start_never_lies_behind_the_end() -> None:
    recovered = with_checkpoint(ENTRIES, state=b"", log_start_offset=8)

    start = start_of(examined(recovered, end=behind(ENTRIES[:2])), ENTRIES[:2])

    assert (start.offset, start.log_start_offset) == (2, 2)


def test_a_log_start_that_moved_behind_the_checkpoint_counts() -> None:
    moved = Entry(6, 1, EntryKind.LOG_START, 8, 0, (6).to_bytes(8, "little"))
    recovered = with_checkpoint(ENTRIES, state=b"")

    start = start_of(examined(recovered, end=behind([*ENTRIES, moved])), [*ENTRIES, moved])

    assert start.log_start_offset == 6


# -- what cannot go on


def test_metadata_without_a_beginning_is_beyond_help() -> None:
    lost = replace(
        examined(group_with(0, damaged="gone"), end=Position(index=0, term=0, offset=0)),
        known_end=LastEntry(40, 2),
    )

    assert why_beyond_help(lost) is not None
    assert why_beyond_help(replace(lost, tail=tuple(METADATA))) is None
    assert why_beyond_help(replace(lost, recovered=group_with(0, voters=[OWN]))) is None
    assert why_beyond_help(replace(lost, group=1)) is None


def test_groups_whose_creation_is_lost_are_orphans() -> None:
    """What a topic was deleted of is not: a start removes it."""
    held = holdings(group_with(1), group_with(2), group_with(3), group_with(7))
    one = examined(held.groups[0], end=Position(index=0, term=0, offset=0), tail=METADATA[:-1])

    assert held.orphans(one) == [2, 3, 7]
    assert held.orphans(None) == []


def test_groups_among_skipped_numbers_are_orphans_at_any_time() -> None:
    skipped = commands(SkipNumbers(group_count=10, producer_id_count=1), first_index=len(METADATA) + 1)
    held = holdings(group_with(1), group_with(5), group_with(20), metadata=[*METADATA, *skipped])

    assert held.orphans(None) == [5]
