"""Each invariant is shown to fail on what it must never let pass."""

from random import Random

import pytest

from tests.sim.knobs import DISK
from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.messages import AppendReply, VoteReply
from tidings.sim.clock import Agenda
from tidings.sim.disk import Disk
from tidings.sim.invariants import Invariants, Violation
from tidings.sim.replica import BatchId, encode_batch

GROUP = 0
TRIO = Membership(voters=(1, 2, 3))
BLANK = StartState(index=0, term=0, offset=0, membership=TRIO)


def record(index: int, term: int, sequence: int, offset: int | None = None) -> Entry:
    payload = encode_batch(BatchId(1, sequence), 0)
    return Entry(index, term, EntryKind.RECORDS, index - 1 if offset is None else offset, 1, payload)


def replica(member: int, *tail: Entry, term: int = 1) -> Group:
    host = RaftHost(member=member, config=RaftConfig(), random=Random(member))
    return host.add(
        group=GROUP,
        start=BLANK,
        hard=HardState(term=max([term, *(entry.term for entry in tail)]), vote=0),
        tail=list(tail),
        first_index=1,
        first_offset=0,
        doubtful=False,
        damaged=False,
        now_ms=0,
    )


class Watched:
    """Invariants over three disks; `lossy` members may lack what they promised."""

    def __init__(self) -> None:
        self.lossy: set[int] = set()
        self.disks = {member: Disk(Agenda(), Random(1), DISK) for member in TRIO.voters}
        for disk in self.disks.values():
            disk.add_group(GROUP, BLANK)
        self.invariants = Invariants(self.disks, lambda group, member: member in self.lossy)
        self.invariants.group_created(GROUP, TRIO)

    def store(self, entry: Entry, *members: int) -> None:
        for member in members:
            self.disks[member].images[GROUP].note_durable(entry)

    def commit(self, *entries: Entry) -> Group:
        for entry in entries:
            self.store(entry, 1, 2)
        group = replica(1, *entries)
        self.invariants.applied(1, group, list(entries))
        return group

    def look(self, group: Group, *unsaved: Entry) -> None:
        self.invariants.check_turn(group.member, [group], [(GROUP, entry) for entry in unsaved])


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_what_is_committed_must_be_durable_on_a_majority(watched: Watched) -> None:
    entry = record(1, 1, 0)
    watched.store(entry, 1)

    with pytest.raises(Violation, match="durable on"):
        watched.invariants.applied(1, replica(1, entry), [entry])


def test_a_member_that_lost_its_promises_counts_as_long_as_it_does_not_vote(watched: Watched) -> None:
    entry = record(1, 1, 0)
    watched.store(entry, 1)
    watched.lossy.add(2)
    group = replica(1, entry)
    watched.invariants.applied(1, group, [entry])

    watched.lossy.clear()

    with pytest.raises(Violation, match="durable on"):
        watched.invariants.check_still_durable(group)


def test_what_is_committed_never_changes(watched: Watched) -> None:
    watched.commit(record(1, 1, 0))
    other = record(1, 2, 0)

    with pytest.raises(Violation, match="before"):
        watched.invariants.applied(2, replica(2, other), [other])


def test_no_entry_is_committed_behind_a_hole(watched: Watched) -> None:
    entry = record(2, 1, 0, offset=0)

    with pytest.raises(Violation, match="hole"):
        watched.invariants.applied(1, replica(1), [entry])


def test_offsets_have_no_holes(watched: Watched) -> None:
    entry = record(1, 1, 0, offset=5)

    with pytest.raises(Violation, match="offset 5"):
        watched.invariants.applied(1, replica(1), [entry])


def test_a_batch_is_committed_once_and_in_order(watched: Watched) -> None:
    watched.commit(record(1, 1, 0))
    again = record(2, 1, 0)
    watched.store(again, 1, 2)

    with pytest.raises(Violation, match="expected 1"):
        watched.invariants.applied(1, replica(1), [again])


def test_one_voter_changes_at_a_time(watched: Watched) -> None:
    change = Entry(1, 1, EntryKind.MEMBERSHIP, 0, 0, Membership(voters=(4, 5, 3)).encode())

    with pytest.raises(Violation, match="voters went"):
        watched.invariants.applied(1, replica(1), [change])


def test_a_term_has_one_leader(watched: Watched) -> None:
    for member in (1, 2):
        watched.look(replica(member))
    first, second = replica(1), replica(2)
    for group in (first, second):
        lead(group)
    watched.look(first)

    with pytest.raises(Violation, match="second leader"):
        watched.look(second)


def lead(group: Group) -> None:
    """Make a leader of it, whoever voted."""
    group.campaign(0)
    for pre in (True, False):
        for voter in (1, 2, 3):
            asked_term = group.term + 1 if pre else group.term
            group.step(VoteReply(GROUP, group.term, voter, group.member, pre, True, asked_term), 0)


def test_a_leader_has_all_that_was_committed_before(watched: Watched) -> None:
    watched.commit(record(1, 1, 0))
    group = replica(3)
    lead(group)

    with pytest.raises(Violation, match="without committed entry 1"):
        watched.look(group)


def test_a_term_never_falls_and_a_vote_never_changes(watched: Watched) -> None:
    group = replica(1, term=4)
    group.vote = 2
    watched.look(group)

    group.vote = 3
    with pytest.raises(Violation, match="vote for 2"):
        watched.look(group)
    group.term = 3
    with pytest.raises(Violation, match="term fell"):
        watched.look(group)


def test_a_commit_index_never_falls_within_a_life(watched: Watched) -> None:
    group = watched.commit(record(1, 1, 0))
    group.commit_index = 1
    watched.look(group)
    group.commit_index = 0

    with pytest.raises(Violation, match="commit fell"):
        watched.look(group)

    watched.invariants.life_ended(1)
    watched.look(group)


def test_nothing_is_replaced_at_or_below_the_commit_index(watched: Watched) -> None:
    group = watched.commit(record(1, 1, 0))
    group.commit_index = 1
    watched.look(group)

    with pytest.raises(Violation, match="replaced below commit"):
        watched.look(group, record(1, 2, 0))


def test_a_vote_is_given_to_one_candidate_also_across_lives(watched: Watched) -> None:
    watched.invariants.sent(VoteReply(GROUP, 5, 1, 2, False, True, 5))
    watched.invariants.life_ended(1)

    with pytest.raises(Violation, match="voted in term 5"):
        watched.invariants.sent(VoteReply(GROUP, 5, 1, 3, False, True, 5))


def test_a_pre_vote_binds_nobody(watched: Watched) -> None:
    for candidate in (2, 3):
        watched.invariants.sent(VoteReply(GROUP, 5, 1, candidate, True, True, 6))


def test_what_is_promised_is_durable(watched: Watched) -> None:
    reply = AppendReply(GROUP, 1, 1, 2, True, 0, 1, 1, 1, 0, False, True, 0, 0)

    with pytest.raises(Violation, match="promised entry 1"):
        watched.invariants.sent(reply)

    watched.store(record(1, 1, 0), 1)
    watched.invariants.sent(reply)


def test_logs_that_share_an_entry_agree_before_it(watched: Watched) -> None:
    ours = replica(1, record(1, 1, 0), record(2, 2, 1))
    theirs = replica(2, record(1, 2, 0), record(2, 2, 1))

    with pytest.raises(Violation, match="differ at entry 1"):
        watched.invariants.check_log_matching([ours, theirs])


def test_logs_that_have_parted_may_differ(watched: Watched) -> None:
    ours = replica(1, record(1, 1, 0), record(2, 1, 1))
    theirs = replica(2, record(1, 1, 0), record(2, 2, 1))

    watched.invariants.check_log_matching([ours, theirs])


def test_what_was_acknowledged_is_committed(watched: Watched) -> None:
    watched.commit(record(1, 1, 0))
    watched.invariants.check_acked(GROUP, {BatchId(1, 0): 1})

    with pytest.raises(Violation, match="not committed"):
        watched.invariants.check_acked(GROUP, {BatchId(1, 1): 2})
