"""The state machine of retrying producers, and its owner on a leader and on a follower."""

from random import Random

import pytest

from tests.sim.knobs import DISK, REPLICA
from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, EntryKind, Membership, StartState
from tidings.raft.host import RaftHost
from tidings.sim.clock import MS, Agenda
from tidings.sim.disk import Disk
from tidings.sim.flush_log import NO_HARD_STATE
from tidings.sim.replica import Answer, BatchId, ProducerState, Replica, batch_of, encode_batch

ALONE = Membership(voters=(1,))
PAIR = Membership(voters=(1, 2))


class Lonely:
    """A replica on a host of its own; its flushes are durable when `save` is called."""

    def __init__(self, membership: Membership = ALONE) -> None:
        self.agenda = Agenda()
        disk = Disk(self.agenda, Random(1), DISK)
        disk.is_healed = True
        start = StartState(index=0, term=0, offset=0, membership=membership)
        disk.add_group(0, start)
        self.host = RaftHost(member=1, config=RaftConfig(), random=Random(1))
        group = self.host.add(
            group=0,
            start=start,
            hard=NO_HARD_STATE,
            tail=[],
            first_index=1,
            first_offset=0,
            doubtful=False,
            damaged=False,
            now_ms=0,
        )
        self.replica = Replica(group=group, start=start, disk=disk, knobs=REPLICA)
        self.disk = disk
        self.answers: list[Answer] = []

    def lead(self) -> None:
        self.replica.group.campaign(0)
        self.save()
        self.replica.role_changed()
        self.replica.apply(self.replica.newly_committed())

    def append(self, sequence: int) -> None:
        self.replica.append(BatchId(7, sequence), 3, 2, 0, self.answers.append)

    def save(self) -> None:
        for _ in range(3):  # the vote, the term start, and what came with them
            self.host.flush(0)
            flush = self.host.outbox.seal()
            if flush is not None:
                self.host.persisted(flush, 0)

    def commit(self) -> None:
        self.save()
        self.replica.apply(self.replica.newly_committed())

    def wait(self) -> None:
        self.agenda.run_until(self.agenda.now_us + 100 * MS)


@pytest.fixture
def leading() -> Lonely:
    lonely = Lonely()
    lonely.lead()
    return lonely


def test_a_batch_is_answered_when_it_is_committed(leading: Lonely) -> None:
    leading.append(0)
    before = list(leading.answers)

    leading.commit()

    assert before == []
    assert leading.answers == [Answer.ACKED]


def test_a_retry_waits_for_the_original_and_is_appended_once(leading: Lonely) -> None:
    leading.append(0)
    leading.append(0)
    leading.commit()
    leading.append(0)

    assert leading.answers == [Answer.ACKED] * 3
    assert leading.replica.group.next_offset == 2


def test_a_batch_that_is_not_the_next_one_is_refused(leading: Lonely) -> None:
    leading.append(1)

    assert leading.answers == [Answer.OUT_OF_ORDER]


def test_a_replica_that_does_not_lead_says_so() -> None:
    lonely = Lonely(PAIR)

    lonely.append(0)

    assert lonely.answers == [Answer.NOT_LEADER]


def test_who_waits_when_leadership_is_lost_is_told_nothing_certain(leading: Lonely) -> None:
    leading.append(0)

    leading.replica.group.step_down(0)
    leading.replica.role_changed()

    assert leading.answers == [Answer.NOT_LEADER]


def test_a_new_leader_knows_retries_of_what_is_uncommitted_in_its_log(leading: Lonely) -> None:
    leading.append(0)
    leading.replica.group.step_down(0)
    leading.replica.role_changed()
    leading.lead()

    leading.append(0)

    assert leading.answers == [Answer.NOT_LEADER, Answer.ACKED]
    assert leading.replica.group.next_offset == 2


def test_what_leaves_memory_is_in_the_segments(leading: Lonely) -> None:
    leading.append(0)
    leading.commit()

    leading.replica.write()
    leading.wait()

    group = leading.replica.group
    assert group.log.window_first == group.last_index + 1
    assert [e.index for e in leading.disk.images[0].segments] == list(range(1, group.last_index + 1))


def test_the_log_starts_later_once_a_checkpoint_without_the_old_entries_is_saved(leading: Lonely) -> None:
    leading.append(0)
    leading.append(1)
    leading.commit()
    leading.replica.move_log_start(0)
    leading.commit()

    leading.replica.write()
    leading.replica.save_checkpoint()
    leading.wait()

    log = leading.replica.group.log
    assert leading.replica.state.log_start_offset == 4
    assert log.start_index > 0
    assert log.start_offset == 4


def test_a_start_state_of_a_partition_begins_at_the_log_start_with_todays_producers(leading: Lonely) -> None:
    leading.append(0)
    leading.commit()

    start = leading.replica.state_to_send()

    assert start.index == 0
    assert ProducerState.decode(start.state).last_sequences == {7: 0}


def record_entry(sequence: int) -> Entry:
    return Entry(1, 1, EntryKind.RECORDS, 0, 1, encode_batch(BatchId(7, sequence), 3))


def test_folding_ignores_what_the_state_already_counts() -> None:
    state = ProducerState()

    for sequence in (0, 1, 0):
        state.fold(record_entry(sequence))

    assert state.last_sequences == {7: 1}


def test_the_state_survives_its_bytes() -> None:
    state = ProducerState()
    state.fold(record_entry(4))
    state.log_start_offset = 12

    copy = ProducerState.decode(state.encode())

    assert copy.last_sequences == {7: 4}
    assert copy.log_start_offset == 12
    assert ProducerState.decode(b"").last_sequences == {}


def test_a_batch_is_recognised_from_its_payload() -> None:
    assert batch_of(encode_batch(BatchId(7, 9), 100)) == BatchId(7, 9)
