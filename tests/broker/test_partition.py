"""Tests of broker/partition.py: where a batch comes to stand, who waits for it, what a change of leader
leaves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from tests.fakes.timers import START_MS
from tests.fakes.world import World, make_batch
from tidings.broker.partition import Partition
from tidings.broker.ports import LogFull, NotLeader, StorageFull
from tidings.broker.producers import SequenceRefused
from tidings.protocol.errors import ErrorCode
from tidings.protocol.record_codec import decode_records
from tidings.protocol.records import BatchError, CheckedBatch, check_produced, crc_is_right, read_header

DAY_MS = 24 * 60 * 60 * 1_000


def checked(batch: bytes) -> CheckedBatch:
    return check_produced(batch, batch_bytes_max=1_000_000, produce_version=9)


@dataclass
class Waiting:
    """A waiter that notes how it was settled."""

    offset: int
    deadline_ms: int = START_MS + 1_000
    codes: list[ErrorCode] = field(default_factory=list)

    def settle(self, code: ErrorCode) -> None:
        self.codes.append(code)


@dataclass(eq=False)
class Watching:
    """A reader that counts how often it was woken."""

    wake_count: int = 0

    def wake(self, now_ms: int) -> None:
        self.wake_count += 1


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def partition(world: World) -> Partition:
    return world.create_topic("t")[0]


# Appending


def test_a_batch_gets_its_offset_and_the_leader_epoch_and_keeps_the_rest(
    world: World, partition: Partition
) -> None:
    first, second = make_batch(b"a", b"b"), make_batch(b"c")
    partition.append(checked(first), world.now_ms)

    placed = partition.append(checked(second), world.now_ms)

    stored = world.logs[partition.group].batches[1]
    assert (placed.base_offset, placed.end_offset, placed.append_time_ms) == (2, 3, -1)
    assert (read_header(stored).base_offset, read_header(stored).leader_epoch) == (2, 1)
    assert stored[16:] == second[16:]


def test_with_log_append_time_every_record_has_the_time_of_the_broker(world: World) -> None:
    partition = world.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})[0]

    placed = partition.append(checked(make_batch(b"a", timestamps=(5,))), world.now_ms)

    stored = world.logs[partition.group].batches[0]
    assert placed.append_time_ms == world.now_ms
    assert crc_is_right(stored)
    records = decode_records(stored, decoded_bytes_max=1_000)
    assert [record.timestamp for record in records] == [world.now_ms]


@pytest.mark.parametrize(
    ("option", "timestamp"),
    [
        ("message.timestamp.after.max.ms", START_MS + 1_001),
        ("message.timestamp.before.max.ms", START_MS - 1_001),
    ],
)
def test_timestamps_too_far_from_the_clock_are_refused(world: World, option: str, timestamp: int) -> None:
    partition = world.create_topic("t", configs={option: "1000"})[0]

    with pytest.raises(BatchError) as raised:
        partition.append(checked(make_batch(b"a", timestamps=(timestamp,))), world.now_ms)

    assert raised.value.code is ErrorCode.INVALID_TIMESTAMP
    assert world.logs[partition.group].end_offset == 0


def test_a_refused_batch_leaves_the_producer_where_it_was(world: World, partition: Partition) -> None:
    world.logs[partition.group].refusal = LogFull("full")
    batch = checked(make_batch(b"a", producer_id=7, epoch=0, sequence=0))
    with pytest.raises(LogFull):
        partition.append(batch, world.now_ms)
    world.logs[partition.group].refusal = None

    placed = partition.append(batch, world.now_ms)

    assert (placed.base_offset, placed.end_offset) == (0, 1)


@pytest.mark.parametrize("first_sequence", [0, 1], ids=["unknown producer", "known producer"])
def test_what_follows_a_refused_batch_is_refused_like_it_until_that_is_taken(
    world: World, partition: Partition, first_sequence: int
) -> None:
    log = world.logs[partition.group]
    batches = [checked(make_batch(b"a", producer_id=7, epoch=0, sequence=number)) for number in range(4)]
    for batch in batches[:first_sequence]:
        partition.append(batch, world.now_ms)
    log.refusal = StorageFull("full")
    with pytest.raises(StorageFull):
        partition.append(batches[first_sequence], world.now_ms)
    log.refusal = None

    with pytest.raises(StorageFull):
        partition.append(batches[first_sequence + 1], world.now_ms)

    placed = [partition.append(batch, world.now_ms).base_offset for batch in batches[first_sequence:]]
    assert placed == list(range(first_sequence, 4))


def test_a_follower_takes_nothing_and_remembers_whom_it_refused(world: World, partition: Partition) -> None:
    log = world.logs[partition.group]
    first, second = (
        checked(make_batch(b"a", producer_id=7, epoch=0, sequence=number)) for number in range(2)
    )
    log.is_leader = False
    with pytest.raises(NotLeader):
        partition.append(first, world.now_ms)
    log.is_leader = True

    with pytest.raises(NotLeader):
        partition.append(second, world.now_ms)

    assert log.end_offset == 0


def test_behind_a_batch_whose_fate_is_open_comes_no_gap(world: World, partition: Partition) -> None:
    log = world.logs[partition.group]
    batches = [checked(make_batch(b"a", producer_id=7, epoch=0, sequence=number)) for number in range(3)]
    partition.append(batches[0], world.now_ms)
    world.commit(partition.group)
    partition.append(batches[1], world.now_ms)
    partition.lost_leadership(world.now_ms)
    log.truncate(1)
    partition.became_leader([], world.now_ms)

    with pytest.raises(NotLeader):
        partition.append(batches[2], world.now_ms)

    assert partition.append(batches[1], world.now_ms).base_offset == 1
    assert partition.append(batches[2], world.now_ms).base_offset == 2


def test_a_repeated_batch_is_not_appended_again(world: World, partition: Partition) -> None:
    batch = checked(make_batch(b"a", b"b", producer_id=7, epoch=0, sequence=0))
    first = partition.append(batch, world.now_ms)
    partition.append(checked(make_batch(b"c", producer_id=7, epoch=0, sequence=2)), world.now_ms)

    assert partition.append(batch, world.now_ms) == first
    assert world.logs[partition.group].end_offset == 3


def test_a_repetition_is_told_the_time_of_the_first_append(world: World) -> None:
    partition = world.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})[0]
    batch = checked(make_batch(b"a", producer_id=7, epoch=0, sequence=0))
    first = partition.append(batch, world.now_ms)

    again = partition.append(batch, world.now_ms + 500)
    world.commit(partition.group)

    assert again == first
    assert partition.append(batch, world.now_ms + 900) == first


# Waiting


def test_waiters_for_commit_disk_and_log_start_wait_for_different_things(
    world: World, partition: Partition
) -> None:
    log = world.logs[partition.group]
    committed, durable, started = Waiting(3), Waiting(3), Waiting(3)
    partition.await_commit(committed)
    partition.await_durable(durable)
    partition.await_log_start(started)

    log.durable_offset = 3
    partition.advanced(world.now_ms)
    assert (committed.codes, durable.codes, started.codes) == ([], [ErrorCode.NONE], [])
    log.high_watermark = 3
    partition.advanced(world.now_ms)
    assert (committed.codes, started.codes) == ([ErrorCode.NONE], [])
    log.log_start_offset = 4
    partition.advanced(world.now_ms)

    assert started.codes == [ErrorCode.NONE]


def test_each_waiter_times_out_at_its_own_deadline(world: World, partition: Partition) -> None:
    late, early = Waiting(1, START_MS + 500), Waiting(2, START_MS + 100)
    partition.await_commit(late)
    partition.await_durable(early)

    world.timers.advance(100)
    assert (late.codes, early.codes) == ([], [ErrorCode.REQUEST_TIMED_OUT])
    world.timers.advance(400)

    assert late.codes == [ErrorCode.REQUEST_TIMED_OUT]
    assert world.timers.pending_count == 0


def test_many_waiters_of_one_time_limit_share_one_alarm(world: World, partition: Partition) -> None:
    for offset in range(1, 50):
        partition.await_commit(Waiting(offset, START_MS + 1_000 + offset))

    assert world.timers.pending_count == 1


def test_who_waits_when_leadership_goes_is_told_to_ask_the_next_leader(
    world: World, partition: Partition
) -> None:
    waiting = [Waiting(1), Waiting(1), Waiting(1)]
    partition.await_commit(waiting[0])
    partition.await_durable(waiting[1])
    partition.await_log_start(waiting[2])

    world.follow(partition.group, 2, epoch=2)

    assert [waiter.codes for waiter in waiting] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 3


def test_a_closed_partition_leaves_nobody_waiting_and_no_alarm(world: World, partition: Partition) -> None:
    waiter, reader = Waiting(1), Watching()
    partition.await_commit(waiter)
    partition.park(reader)

    world.broker.close_partition(partition.group, world.now_ms)

    assert waiter.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert reader.wake_count == 1
    assert world.timers.pending_count == 0
    assert world.broker.partition(partition.group) is None


def test_readers_are_woken_when_the_high_watermark_moves_and_only_then(
    world: World, partition: Partition
) -> None:
    reader = Watching()
    partition.park(reader)
    partition.append(checked(make_batch(b"a")), world.now_ms)

    world.logs[partition.group].durable_offset = 1
    partition.advanced(world.now_ms)
    assert reader.wake_count == 0
    world.commit(partition.group)
    assert reader.wake_count == 1
    partition.unpark(reader)
    partition.append(checked(make_batch(b"a")), world.now_ms)
    world.commit(partition.group)

    assert reader.wake_count == 1


def test_readers_are_woken_when_a_leader_may_tell_its_end(world: World, partition: Partition) -> None:
    log, reader = world.logs[partition.group], Watching()
    log.term_start_committed = False
    partition.became_leader([], world.now_ms)
    partition.park(reader)

    log.term_start_committed = True
    partition.advanced(world.now_ms)

    assert reader.wake_count == 1


# A change of leader


def test_the_next_leader_knows_the_batches_that_were_committed(world: World, partition: Partition) -> None:
    batch = make_batch(b"a", producer_id=7, epoch=0, sequence=0)
    world.follow(partition.group, 2, epoch=2)
    partition.committed(0, batch, world.now_ms)
    log = world.logs[partition.group]
    log.batches.append(batch)
    log.end_offset = log.high_watermark = 1

    world.lead(partition.group, epoch=3)
    placed = partition.append(checked(batch), world.now_ms)

    assert (placed.base_offset, placed.end_offset) == (0, 1)
    assert log.end_offset == 1


def test_a_new_leader_checks_sequences_against_its_uncommitted_tail(
    world: World, partition: Partition
) -> None:
    batch = make_batch(b"a", producer_id=7, epoch=0, sequence=0)
    partition.append(checked(batch), world.now_ms)
    world.follow(partition.group, 2, epoch=2)

    world.lead(partition.group, epoch=3)

    assert partition.append(checked(batch), world.now_ms).base_offset == 0
    with pytest.raises(SequenceRefused):
        partition.append(checked(make_batch(b"c", producer_id=7, epoch=0, sequence=2)), world.now_ms)


def test_a_batch_that_was_replaced_by_another_leader_may_be_sent_again(
    world: World, partition: Partition
) -> None:
    batch = make_batch(b"a", producer_id=7, epoch=0, sequence=0)
    partition.append(checked(batch), world.now_ms)
    log = world.logs[partition.group]
    world.follow(partition.group, 2, epoch=2)
    log.batches.clear()
    log.end_offset = 0

    world.lead(partition.group, epoch=3)
    partition.append(checked(batch), world.now_ms)

    assert log.end_offset == 1


def test_a_saved_state_goes_on_on_another_replica(world: World, partition: Partition) -> None:
    batch = make_batch(b"a", producer_id=7, epoch=0, sequence=0)
    partition.append(checked(batch), world.now_ms)
    world.commit(partition.group)
    other = World().create_topic("t")[0]

    other.restore(partition.state())
    other.committed(0, batch, world.now_ms)

    assert other.append(checked(batch), world.now_ms).base_offset == 0


def test_silent_producers_are_forgotten_after_a_day(world: World, partition: Partition) -> None:
    partition.append(checked(make_batch(b"a", producer_id=7, epoch=0, sequence=0)), world.now_ms)
    world.commit(partition.group)

    partition.advanced(world.now_ms + DAY_MS)

    assert len(partition.producers) == 0


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epochs_of_clients_are_compared_with_the_leaders(
    world: World, partition: Partition, epoch: int, code: ErrorCode
) -> None:
    world.lead(partition.group, epoch=5)

    assert partition.check_epoch(epoch) is code


def test_settings_are_those_of_the_last_change(world: World, partition: Partition) -> None:
    partition.settings = replace(partition.settings, is_log_append_time=True)

    placed = partition.append(checked(make_batch(b"a")), world.now_ms)

    assert placed.append_time_ms == world.now_ms
