"""What counts as committed: the leader's own term, a majority of voters, and disks only."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.errors import LogFull, NotLeader
from tidings.raft.messages import Append, AppendReply


def acknowledge(network: Network, member: int, match_index: int, *, counts: bool = True) -> None:
    """A follower's word that it has everything up to an index."""
    leader = network.leader()
    network.deliver(
        AppendReply(
            GROUP,
            leader.term,
            member,
            leader.member,
            True,
            match_index,
            match_index,
            match_index,
            0,
            0,
            False,
            counts,
            0,
            leader.progress[member].session,
        )
    )


def test_an_entry_is_committed_when_a_majority_has_it_on_disk() -> None:
    network = running()
    network.slow_disks.add(3)

    network.propose(b"a")
    network.settle()

    assert network.committed(1) == [b"a"]


def test_the_leaders_own_disk_counts_only_when_it_is_done() -> None:
    network = running()
    network.slow_disks |= {1, 3}
    entry = network.propose(b"a")
    network.settle()

    assert network.leader().progress[2].match_index == entry.index
    assert network.leader().commit_index < entry.index
    network.write(1)

    assert network.leader().commit_index == entry.index


def test_followers_alone_can_be_the_majority() -> None:
    network = running()
    network.slow_disks.add(1)

    entry = network.propose(b"a")
    network.settle()

    assert network.leader().durable_index < entry.index
    assert network.leader().commit_index == entry.index


def test_a_single_voter_commits_with_its_own_flush() -> None:
    network = Network([1])
    network.slow_disks.add(1)
    network.create()
    network.settle()
    assert network.group(1).commit_index == 0

    network.write(1)

    assert network.group(1).commit_index == 1


def test_a_learner_does_not_count() -> None:
    network = Network([1, 2, 3, 9])
    network.create([1, 2, 3], learners=(9,))
    network.until(lambda: bool(network.leaders()))
    network.pass_time(100)
    network.crash(2)
    network.crash(3)

    entry = network.propose(b"a")
    network.settle()

    assert network.leader().progress[9].match_index == entry.index
    assert network.leader().commit_index < entry.index


def test_an_entry_of_an_earlier_term_is_not_committed_by_counting_copies() -> None:
    """Raft, figure 8: the copies of an old entry on a majority may still be replaced."""
    network = Network([1, 2, 3, 4, 5])
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(1, 2, 3, 4, 5)))
    for member in (2, 3, 4):
        network.disks[member].starts[GROUP] = start
        network.disks[member].hard_states[GROUP] = HardState(term=1, vote=1)
        network.disks[member].tails[GROUP] = [records(1, 1, b"old"), records(2, 1, b"older term")]
        network.restart(member)
    network.group(2).campaign(network.now_ms)
    while not network.leaders():
        network.move_once()
    network.drop()
    leader = network.group(2)
    assert (leader.commit_index, leader.term_start_index) == (0, 3)

    for member in (3, 4):
        acknowledge(network, member, 2)
    network.write(2)
    assert leader.commit_index == 0
    network.collect()
    network.write(2)
    for member in (3, 4):
        acknowledge(network, member, 3)

    assert leader.commit_index == 3


def test_a_new_leader_commits_what_the_old_one_left_once_its_own_term_has_begun() -> None:
    network = running()
    network.cut |= {(2, 1), (3, 1)}
    network.propose(b"left")
    network.settle()
    network.crash_noticed(1)

    network.until(lambda: bool(network.leaders()))
    network.pass_time(50)

    for member in (2, 3):
        assert network.committed(member) == [b"left"]


def test_a_doubtful_followers_acknowledgement_is_not_counted() -> None:
    network = running()
    network.slow_disks |= {2, 3}
    entry = network.propose(b"a")
    network.settle()

    acknowledge(network, 2, entry.index, counts=False)

    assert network.leader().commit_index < entry.index
    acknowledge(network, 2, entry.index)
    assert network.leader().commit_index == entry.index


def test_the_commit_offset_counts_records_and_no_other_entries() -> None:
    network = running()
    assert network.leader().commit_offset == 0

    network.propose(b"a", record_count=5)
    network.settle()
    network.elect(2)
    network.propose(b"b", record_count=2)
    network.settle()
    network.pass_time(50)

    assert [network.group(member).commit_offset for member in (1, 2, 3)] == [7, 7, 7]
    assert network.leader().next_offset == network.leader().durable_offset == 7


def test_too_much_that_waits_for_a_majority_is_refused_and_taken_again_later() -> None:
    network = running(config=RaftConfig(uncommitted_bytes_max=1000))
    network.slow_disks |= {2, 3}
    network.propose(bytes(900))

    with pytest.raises(LogFull):
        network.propose(bytes(200))

    network.slow_disks.clear()
    network.settle()
    network.propose(bytes(200))


def test_one_entry_is_always_taken_however_large() -> None:
    network = running(
        config=RaftConfig(uncommitted_bytes_max=100, append_bytes_max=10, inflight_bytes_max=10)
    )

    network.propose(bytes(5000))
    network.settle()

    assert network.committed(1) == [bytes(5000)]


def test_only_the_leader_takes_proposals() -> None:
    network = running()

    with pytest.raises(NotLeader) as refusal:
        network.group(2).propose(EntryKind.RECORDS, b"a", 1, network.now_ms)

    assert refusal.value.leader == 1


def test_followers_hear_of_a_commit_though_nothing_follows_it() -> None:
    network = running()
    network.propose(b"a")
    network.settle()

    network.pass_time(20)

    assert [network.committed(member) for member in (1, 2, 3)] == [[b"a"]] * 3


def test_a_commit_notice_that_was_lost_is_repeated() -> None:
    network = running()
    network.propose(b"a")
    network.settle()
    network.now_ms += 10
    network.tick()
    network.collect()
    network.drop()

    network.pass_time(1_500)

    assert network.committed(2) == [b"a"]


# -- replacing what was written


def records(index: int, term: int, payload: bytes) -> Entry:
    return Entry(index, term, EntryKind.RECORDS, index - 1, 1, payload)


def test_a_flush_that_was_overtaken_by_a_replacement_makes_nothing_durable() -> None:
    """An entry that is replaced, and then written again as it was: the flush of its first writing proves
    nothing, for the write-ahead log holds the replacement behind it."""
    network = Network([1])
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(2, 3, 1)))
    network.disks[1].starts[GROUP] = start
    network.restart(1)
    group = network.group(1)
    network.slow_disks.add(1)

    def append(term: int, leader: int, entry: Entry, prev_term: int) -> None:
        message = append_of(term, leader, entry, prev_term)
        group.step(message, network.now_ms)
        network.collect()

    append(2, 2, records(1, 2, b"a"), 0)
    append(3, 3, records(1, 3, b"b"), 0)
    append(4, 2, records(1, 2, b"a"), 0)
    network.write(1, count=1)
    assert group.durable_index == 0
    network.write(1, count=1)
    assert group.durable_index == 0
    network.write(1, count=1)

    assert group.durable_index == 1
    assert network.disks[1].tails[GROUP] == [records(1, 2, b"a")]


def append_of(term: int, leader: int, entry: Entry, prev_term: int) -> Append:
    return Append(GROUP, term, leader, 1, entry.index - 1, prev_term, 0, [entry], 0, 0)


def test_a_persisted_entry_that_was_replaced_meanwhile_is_not_taken_for_durable() -> None:
    network = Network([1])
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(2, 3, 1)))
    network.disks[1].starts[GROUP] = start
    network.restart(1)
    network.slow_disks.add(1)
    group = network.group(1)
    group.step(append_of(2, 2, records(1, 2, b"a"), 0), network.now_ms)
    group.step(append_of(2, 2, records(2, 2, b"b"), 2), network.now_ms)
    network.collect()
    group.step(append_of(3, 3, records(2, 3, b"c"), 2), network.now_ms)
    network.collect()

    network.write(1, count=1)

    assert group.durable_index == 1
    network.write(1)
    assert group.durable_index == 2
