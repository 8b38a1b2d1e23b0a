"""The leader's side: sending ahead, finding out what is there, and never asking a follower for more than it
can hold."""

from __future__ import annotations

from tests.raft.network import GROUP, Network, running
from tidings.raft.config import RaftConfig
from tidings.raft.messages import Append, AppendReply, Message
from tidings.raft.progress import Progress, ProgressState


def appends_to(network: Network, member: int, since: int = 0) -> list[Append]:
    return [m for m in network.sent[since:] if isinstance(m, Append) and m.receiver == member]


def is_append(message: Message) -> bool:
    return isinstance(message, Append)


def test_what_was_proposed_in_one_turn_travels_in_one_append() -> None:
    network = running()
    sent = len(network.sent)

    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
    network.collect()

    (append,) = appends_to(network, 2, sent)
    assert [entry.payload for entry in append.entries] == [b"a", b"b", b"c"]


def test_appends_follow_each_other_without_waiting_for_answers() -> None:
    network = running()
    sent = len(network.sent)

    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
        network.collect()

    assert [append.entries[0].payload for append in appends_to(network, 2, sent)] == [b"a", b"b", b"c"]
    network.settle()
    assert network.committed(1) == [b"a", b"b", b"c"]


def test_a_large_backlog_is_cut_into_appends_of_bounded_size() -> None:
    network = running(config=RaftConfig(append_bytes_max=1000))
    sent = len(network.sent)

    for _ in range(10):
        network.propose(bytes(300))
    network.collect()

    assert [len(append.entries) for append in appends_to(network, 2, sent)] == [2] * 5


def test_a_follower_that_does_not_answer_is_sent_no_more_than_its_window() -> None:
    network = running(config=RaftConfig(append_bytes_max=500, inflight_bytes_max=1000))
    network.slow_disks.add(2)
    sent = len(network.sent)

    for _ in range(20):
        network.propose(bytes(400))
        network.settle()

    assert len(appends_to(network, 2, sent)) <= 3
    network.slow_disks.clear()
    network.settle()
    assert network.payloads(2) == [bytes(400)] * 20


def test_a_full_transport_is_given_nothing_more_until_it_has_room() -> None:
    network = running()
    network.hosts[1].send_paused(2, True)
    sent = len(network.sent)
    network.propose(b"a")
    network.settle()
    assert appends_to(network, 2, sent) == []

    network.hosts[1].send_paused(2, False)
    network.settle()

    assert network.payloads(2) == [b"a"]


def test_lost_appends_are_noticed_by_the_next_one() -> None:
    network = running()
    network.propose(b"a")
    network.collect()
    network.drop(is_append)

    network.propose(b"b")
    network.settle()

    assert network.payloads(2) == network.payloads(3) == [b"a", b"b"]


def test_a_lost_append_that_nothing_follows_is_noticed_by_the_silence() -> None:
    network = running()
    network.propose(b"a")
    network.collect()
    network.drop(is_append)

    took_ms = network.until(lambda: network.committed(1) == [b"a"])

    assert took_ms <= 1_100


def test_lost_answers_are_asked_for_again() -> None:
    network = running()
    network.propose(b"a")
    network.collect()
    network.deliver_all()
    network.write(2)
    network.write(3)
    network.collect()
    network.drop(lambda message: isinstance(message, AppendReply))

    network.until(lambda: network.committed(1) == [b"a"], within_ms=1_100)


def test_a_new_connection_brings_what_was_lost_with_the_old_one_at_once() -> None:
    network = running()
    network.propose(b"a")
    network.collect()
    network.drop(is_append)

    network.connect(2)
    network.settle()

    assert network.payloads(2) == [b"a"]


def test_a_refusal_goes_back_by_a_whole_term() -> None:
    """The leader's log is long in term 3, the follower's in term 2: one question per term, not one per
    entry."""
    network = running()
    network.isolate(1)
    for _ in range(50):
        network.propose(b"never committed", group=GROUP)
    network.settle()
    network.until(lambda: any(member != 1 for member in network.leaders()))
    network.crash(1)
    for _ in range(50):
        network.propose(b"committed")
        network.settle()
    network.heal()
    sent = len(network.sent)

    network.restart(1)
    network.pass_time(300)

    assert network.payloads(1) == [b"committed"] * 50
    refusals = [m for m in network.sent[sent:] if isinstance(m, AppendReply) and not m.accepted]
    assert len(refusals) <= 2


def test_a_late_refusal_does_not_move_the_leader_back() -> None:
    network = running()
    for payload in (b"a", b"b"):
        network.propose(payload)
        network.settle()
    follower = network.leader().progress[2]
    before = (follower.state, follower.next_index, follower.match_index)

    network.deliver(AppendReply(GROUP, 1, 2, 1, False, 1, 0, 0, 0, 0, False, True, 0, follower.session))
    network.collect()

    assert (follower.state, follower.next_index, follower.match_index) == before


def test_late_and_repeated_answers_change_nothing() -> None:
    network = running()
    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
        network.settle()
    leader = network.leader()
    before = (leader.commit_index, leader.progress[2].match_index, leader.progress[2].next_index)

    for reply in network.sent_by(2, AppendReply):
        network.deliver(reply)
    network.settle()

    assert (leader.commit_index, leader.progress[2].match_index, leader.progress[2].next_index) == before


def test_an_answer_from_before_the_follower_lost_its_promises_counts_for_nothing() -> None:
    network = running()
    network.slow_disks.add(3)
    entry = network.propose(b"a")
    network.collect()
    leader = network.leader()
    leader.progress[2].forget_promises()

    late = AppendReply(
        GROUP, 1, 2, 1, True, entry.index - 1, entry.index, entry.index, 0, 0, False, True, 0, 0
    )
    network.deliver(late)

    assert leader.progress[2].match_index == 0


# -- entries that left memory


def test_entries_that_left_memory_are_asked_of_storage() -> None:
    network = running(config=RaftConfig(append_bytes_max=1000))
    network.crash(2)
    for number in range(5):
        network.propose(b"%d" % number)
        network.settle()
    stored = {entry.index: entry for entry in network.leader().log.entries_from(1)}
    network.leader().release(network.leader().commit_index)
    assert network.leader().log.window_first > 5

    network.restart(2)
    network.settle()
    outbox = network.hosts[1].outbox
    while outbox.reads:
        read = outbox.reads.pop()
        assert (read.group, read.member, read.bytes_max) == (GROUP, 2, 1000)
        found = [stored[index] for index in range(read.first_index, read.first_index + 2) if index in stored]
        network.leader().entries_read(2, found, network.now_ms)
        network.settle()

    assert network.payloads(2) == [b"0", b"1", b"2", b"3", b"4"]
    assert network.leader().progress[2].state is ProgressState.REPLICATE


def test_a_read_that_failed_is_asked_for_again() -> None:
    network = running()
    network.crash(2)
    network.propose(b"a")
    network.settle()
    network.leader().release(network.leader().commit_index)
    network.restart(2)
    network.settle()
    outbox = network.hosts[1].outbox
    outbox.reads.clear()

    network.leader().entries_read(2, [], network.now_ms)
    network.pass_time(600)

    assert [read.member for read in outbox.reads] == [2]


def test_entries_that_are_not_committed_or_not_durable_stay_in_memory() -> None:
    network = running()
    network.slow_disks.add(1)
    network.propose(b"a")
    network.settle()
    assert network.leader().commit_index == 2

    network.leader().release(99)
    assert network.leader().log.window_first == 2, "its own disk does not have it yet"
    network.write(1)
    network.leader().release(99)

    assert network.leader().log.window_first == 3


# -- how far behind


def test_a_follower_is_behind_since_the_moment_as_of_which_it_had_everything() -> None:
    follower = Progress(2, 1, is_voter=True, now_ms=0)

    follower.committed(10, 1000)
    assert follower.behind_since_ms == 1000
    follower.match_index = 9
    follower.measure_lag(20, 1500)
    assert follower.behind_since_ms == 1000
    follower.match_index = 10
    follower.measure_lag(20, 1600)
    assert follower.behind_since_ms == 1000, "what was committed at 1000 it has now, what came later not"
    follower.match_index = 20
    follower.measure_lag(30, 1700)
    assert follower.behind_since_ms == 1600
    follower.match_index = 30
    follower.measure_lag(30, 1800)

    assert follower.behind_since_ms == 0


def test_a_dead_follower_falls_behind_and_a_busy_one_does_not() -> None:
    network = running()
    network.crash(3)

    for _ in range(20):
        network.propose(b"a")
        network.settle()
        network.pass_time(100)

    progress = network.leader().progress_of()
    assert progress[2].behind_since_ms == 0
    assert network.now_ms - progress[3].behind_since_ms >= 1900
