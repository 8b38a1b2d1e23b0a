"""Start states: what a follower goes on from when the entries it needs are gone."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.config import RaftConfig
from tidings.raft.entries import EntryKind, StartState
from tidings.raft.errors import WireError
from tidings.raft.messages import AppendReply, InstallReply, InstallStart
from tidings.raft.progress import ProgressState
from tidings.raft.start_codec import encode_start

SMALL_PIECES = RaftConfig(start_piece_bytes=50)


def start_of(network: Network) -> StartState:
    """What the leader's owner gives: the state as of the start of the leader's log."""
    log = network.leader().log
    return StartState(
        index=log.start_index,
        term=log.start_term,
        offset=log.start_offset,
        membership=network.leader().membership_at(log.start_index),
        log_start_offset=log.start_offset,
        terms=tuple(row for row in log.terms if row.index <= log.start_index),
        state=bytes(range(200)),
    )


def give(network: Network) -> None:
    """The leader's owner answers what is wanted."""
    outbox = network.hosts[network.leaders()[0]].outbox
    wanted, outbox.starts_wanted = outbox.starts_wanted, []
    for request in wanted:
        network.leader().give_start(request.member, start_of(network), network.now_ms)


def install(network: Network, member: int) -> StartState:
    """The follower's owner replaces what it has."""
    (installed,) = network.hosts[member].outbox.starts_installed
    network.hosts[member].outbox.starts_installed = []
    network.disks[member].starts[GROUP] = installed.start
    network.hosts[member].start_installed(GROUP)
    return installed.start


def below_the_start(config: RaftConfig | None = None) -> Network:
    """Member 3 was away while the leader's log moved on beyond what it has."""
    network = running(config=config)
    network.crash(3)
    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
        network.settle()
    network.leader().log.move_start_to(3)
    network.restart(3)
    network.settle()
    return network


def test_a_follower_below_the_log_start_is_given_a_start_and_goes_on_from_there() -> None:
    network = below_the_start()
    assert [wanted.member for wanted in network.hosts[1].outbox.starts_wanted] == [3]

    give(network)
    network.settle()
    start = install(network, 3)
    network.pass_time(50)

    assert start == start_of(network)
    assert network.committed(3) == [b"c"]
    assert network.group(3).commit_offset == network.leader().commit_offset
    assert network.leader().progress[3].state is ProgressState.REPLICATE


def test_the_write_ahead_log_is_told_that_the_log_was_replaced_before_anything_of_the_new_one() -> None:
    network = below_the_start()
    network.slow_disks.add(3)

    give(network)
    network.settle()

    (flush,) = network.unwritten[3]
    ((_, entry),) = flush.entries
    assert (entry.kind, entry.index, entry.base_offset) == (EntryKind.START, 3, 2)


def test_nothing_is_acknowledged_before_the_start_is_durable() -> None:
    network = below_the_start()
    give(network)
    network.settle()
    sent = len(network.sent)

    network.propose(b"d")
    network.pass_time(300)

    assert not [m for m in network.sent[sent:] if isinstance(m, AppendReply | InstallReply) and m.sender == 3]
    install(network, 3)
    network.pass_time(600)
    assert network.committed(3) == [b"c", b"d"]


def test_a_large_start_travels_in_pieces_one_at_a_time() -> None:
    network = below_the_start(SMALL_PIECES)
    total_bytes = len(encode_start(start_of(network)))

    give(network)
    network.settle()

    pieces = [m for m in network.sent_by(1, InstallStart) if isinstance(m, InstallStart)]
    assert [piece.piece_offset for piece in pieces] == list(range(0, total_bytes, 50))
    assert all(len(piece.piece) <= 50 for piece in pieces)
    install(network, 3)


def test_an_interrupted_transfer_goes_on_where_it_stopped() -> None:
    network = below_the_start(SMALL_PIECES)
    give(network)
    for _ in range(4):
        network.move_once()
    network.drop()
    sent = len(network.sent)

    network.connect(3)
    network.settle()

    offsets = [m.piece_offset for m in network.sent[sent:] if isinstance(m, InstallStart)]
    assert offsets[0] > 0
    install(network, 3)
    network.pass_time(50)
    assert network.committed(3) == [b"c"]


def test_a_piece_that_was_lost_is_sent_again_when_nothing_is_heard() -> None:
    network = below_the_start()
    give(network)
    network.collect()
    network.drop(lambda message: isinstance(message, InstallStart))

    network.pass_time(1_100)

    assert network.group(3).installing


def test_repeated_and_strange_pieces_do_no_harm() -> None:
    network = below_the_start(SMALL_PIECES)
    give(network)
    network.collect()
    (first,) = [m for m in network.under_way if isinstance(m, InstallStart)]

    for _ in range(3):
        network.deliver(first)
    strange = InstallStart(GROUP, 1, 1, 3, 3, 1, 150, first.total_bytes, b"x" * 50, first.session)
    network.deliver(strange)
    network.settle()

    assert install(network, 3) == start_of(network)


def test_a_start_that_says_another_place_than_its_message_is_refused() -> None:
    network = below_the_start()
    encoded = encode_start(start_of(network))
    message = InstallStart(GROUP, 1, 1, 3, 4, 1, 0, len(encoded), encoded, 0)

    with pytest.raises(WireError):
        network.group(3).step(message, network.now_ms)

    assert not network.group(3).installing


def test_a_start_larger_than_any_owner_makes_is_not_collected() -> None:
    network = below_the_start(RaftConfig(start_piece_bytes=10, start_bytes_max=100))
    message = InstallStart(GROUP, 1, 1, 3, 3, 1, 0, 101, b"x" * 10, 0)

    network.group(3).step(message, network.now_ms)

    assert network.group(3).incoming is None


def test_a_start_at_what_is_committed_here_replaces_nothing() -> None:
    network = running()
    for payload in (b"a", b"b"):
        network.propose(payload)
        network.settle()
    network.pass_time(50)
    encoded = encode_start(start_of(network))

    network.deliver(InstallStart(GROUP, 1, 1, 2, 2, 1, 0, len(encoded), encoded, 0))
    network.collect()

    (reply,) = network.sent_by(2, InstallReply)
    assert isinstance(reply, InstallReply)
    assert reply.installed
    assert network.payloads(2) == [b"a", b"b"]


def test_a_start_that_the_log_already_contains_only_moves_the_commit_index() -> None:
    network = running()
    network.propose(b"a")
    network.settle()
    assert network.group(2).commit_index == 1
    assert network.group(2).log.last_index == 2

    network.deliver(InstallStart(GROUP, 1, 1, 2, 2, 1, 0, 500, b"x", 0))

    assert network.group(2).commit_index == 2
    assert network.payloads(2) == [b"a"]


def test_an_owner_that_does_not_answer_is_asked_again() -> None:
    network = below_the_start()
    outbox = network.hosts[1].outbox
    outbox.starts_wanted.clear()

    network.pass_time(1_100)

    assert [wanted.member for wanted in outbox.starts_wanted] == [3]


def test_a_second_answer_of_the_owner_does_not_restart_the_transfer() -> None:
    network = below_the_start(SMALL_PIECES)
    give(network)
    network.move_once()
    sending = network.leader().progress[3].sending

    network.leader().give_start(3, start_of(network), network.now_ms)

    assert network.leader().progress[3].sending is sending


def test_a_flush_of_the_old_log_makes_nothing_of_the_new_one_durable() -> None:
    network = running()
    network.slow_disks.add(3)
    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
        network.settle()
    group = network.group(3)
    assert group.durable_index == 1
    network.leader().log.move_start_to(4)
    encoded = encode_start(start_of(network))
    group.damaged = True
    network.deliver(InstallStart(GROUP, 1, 1, 3, 4, 1, 0, len(encoded), encoded, 0))

    network.collect()
    network.write(3, count=3)

    assert group.installing
    assert group.durable_index == group.log.last_index == 4


def test_a_new_learner_of_a_long_log_begins_with_a_start() -> None:
    network = running([1, 2, 3])
    for payload in (b"a", b"b", b"c"):
        network.propose(payload)
        network.settle()
    network.leader().log.move_start_to(3)
    membership = network.leader().membership
    learners = type(membership)(voters=membership.voters, learners=(4,))
    network.disks[4] = type(network.disks[1])()
    network.start(4)
    network.create_replica(4, membership)
    network.connect(4)

    network.leader().propose_membership(learners, network.now_ms)
    network.settle()
    give(network)
    network.settle()
    install(network, 4)
    network.pass_time(100)

    assert network.committed(4) == [b"c"]
    assert network.group(4).membership.learners == (4,)
