"""Tests of node/replica.py: Raft's entries, Kafka's offsets and the segment files of one partition agree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.fakes.world import make_batch
from tests.node.client import EARLIEST, Client
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.broker import ports
from tidings.broker.ports import TIME_OF_NEWEST
from tidings.node.jobs import SegmentLimits
from tidings.node.replica import Replica
from tidings.protocol.records import read_header, stamp
from tidings.raft.entries import EntryKind

FAR = 1 << 40
LIMITS = SegmentLimits(segment_bytes=FAR, segment_ms=FAR)


@pytest.fixture
def group(client: Client) -> int:
    (group,) = client.create_topic()
    return group


@pytest.fixture
def leader(world: World, group: int) -> Machine:
    return world.lead(group)


@pytest.fixture
def replica(leader: Machine, group: int) -> Replica:
    """The leader's."""
    return leader.replica(group)


def append(replica: Replica, *values: bytes, at_ms: int = 0) -> int:
    """Append a batch as a partition does; the offset behind it."""
    batch = memoryview(make_batch(*values, timestamps=(at_ms,) * len(values)))
    stamped = stamp(batch, replica.end_offset, replica.leader_epoch)
    return replica.append(stamped, len(values), 0)


def append_all(replica: Replica, values: Sequence[bytes]) -> None:
    """Each in a batch of its own."""
    for value in values:
        append(replica, value)


def commit(world: World, leader: Machine) -> None:
    leader.wake()
    world.run(20)


def offsets(batches: list[bytes] | None) -> list[int]:
    assert batches is not None
    return [read_header(batch).base_offset for batch in batches]


# -- appending


def test_entries_without_records_take_no_offset(world: World, leader: Machine, replica: Replica) -> None:
    append(replica, b"a", b"b")
    replica.append_log_start(1, 0)
    append(replica, b"c")
    commit(world, leader)

    entries = replica.group.log.entries_from(replica.group.log.window_first)
    kinds = [entry.kind for entry in entries if entry.index > 1][-3:]
    assert kinds == [EntryKind.RECORDS, EntryKind.LOG_START, EntryKind.RECORDS]
    assert (replica.end_offset, replica.high_watermark, replica.durable_offset) == (3, 3, 3)


def test_the_end_moves_at_once_and_the_high_watermark_when_a_majority_has_it(
    world: World, leader: Machine, replica: Replica
) -> None:
    assert append(replica, b"a", b"b") == 2
    ends = (replica.end_offset, replica.durable_offset, replica.high_watermark)

    commit(world, leader)

    assert ends == (2, 0, 0)
    assert replica.high_watermark == 2


def test_a_follower_takes_no_batch(world: World, leader: Machine, group: int) -> None:
    follower = next(machine for machine in world.running if machine is not leader)

    with pytest.raises(ports.NotLeader):
        append(follower.replica(group), b"a")


def test_a_full_disk_takes_no_batch_and_lets_the_log_start_move(leader: Machine, replica: Replica) -> None:
    leader.node.is_storage_full = True

    with pytest.raises(ports.StorageFull):
        append(replica, b"a")
    replica.append_log_start(0, 0)


def test_a_log_of_which_too_much_is_uncommitted_takes_no_batch() -> None:
    world = World(uncommitted_bytes_max=16 * 1024, batch_bytes_max=1024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    replica = world.lead(group).replica(group)

    with pytest.raises(ports.LogFull):
        append_all(replica, [bytes(900)] * 40)


def test_a_sealed_replica_takes_nothing(replica: Replica) -> None:
    news = [replica.seal(), replica.seal()]

    with pytest.raises(ports.StorageDamaged):
        append(replica, b"a")
    with pytest.raises(ports.StorageDamaged):
        replica.append_log_start(0, 0)
    assert news == [True, False]


# -- reading


@pytest.fixture
def filled(world: World, leader: Machine, replica: Replica) -> Replica:
    """Offsets 0-1, 2, 3-5 in three batches, all committed."""
    append(replica, b"a", b"b", at_ms=100)
    append(replica, b"c", at_ms=300)
    append(replica, b"d", b"e", b"f", at_ms=200)
    commit(world, leader)
    return replica


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, [0, 2, 3]), (1, [0, 2, 3]), (2, [2, 3]), (3, [3]), (5, [3]), (6, [])]
)
def test_reading_begins_with_the_batch_that_holds_the_offset(
    filled: Replica, offset: int, expected: list[int]
) -> None:
    assert offsets(filled.read(offset, FAR, filled.high_watermark)) == expected


def test_reading_stops_at_the_offset_that_limits_it(filled: Replica) -> None:
    assert offsets(filled.read(0, FAR, 3)) == [0, 2]
    assert offsets(filled.read(0, FAR, 2)) == [0]
    assert filled.read(3, FAR, 3) == []


def test_reading_gives_one_batch_however_large_and_more_only_as_they_fit(filled: Replica) -> None:
    first, second = (len(batch) for batch in (filled.read(0, FAR, 3) or []))

    assert offsets(filled.read(0, 0, 6)) == [0]
    assert offsets(filled.read(0, first + second - 1, 6)) == [0]
    assert offsets(filled.read(0, first + second, 6)) == [0, 2]


def test_what_left_memory_is_not_read_from_memory(filled: Replica) -> None:
    world_end = filled.high_watermark
    filled.group.release(filled.group.commit_index - 1)

    assert filled.read(0, FAR, world_end) is None
    assert offsets(filled.read(3, FAR, world_end)) == [3]


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(0, 0), (100, 0), (101, 2), (300, 2), (TIME_OF_NEWEST, 2)]
)
@pytest.mark.parametrize("in_memory", [0, 1, 3], ids=["on disk", "on both", "in memory"])
def test_a_time_is_found_wherever_its_batch_is(
    world: World, leader: Machine, filled: Replica, timestamp: int, expected: int, in_memory: int
) -> None:
    world.run(200)  # for the segments to be written
    filled.group.release(filled.group.commit_index - in_memory)
    found: list[list[bytes] | None] = []

    filled.find_batch_by_time(timestamp, found.append)
    leader.wake()
    world.run(20)

    assert found[0]
    assert read_header(found[0][0]).base_offset == expected


def test_a_time_after_all_batches_finds_none(world: World, leader: Machine, filled: Replica) -> None:
    found: list[list[bytes] | None] = []

    filled.find_batch_by_time(301, found.append)
    leader.wake()
    world.run(20)

    assert found == [[]]


def test_a_time_is_not_looked_for_in_memory_alone_where_the_disk_cannot_be_read(
    world: World, leader: Machine, filled: Replica
) -> None:
    world.run(200)
    leader.disk.bad_reads.add(filled.group.group)
    found: list[list[bytes] | None] = []

    filled.find_batch_by_time(101, found.append)
    leader.wake()
    world.run(20)

    assert found == [None]


def test_a_time_is_found_though_its_batch_goes_to_disk_meanwhile(
    world: World, leader: Machine, filled: Replica
) -> None:
    leader.holds_reads = True
    found: list[list[bytes] | None] = []
    filled.find_batch_by_time(0, found.append)
    leader.wake()
    world.run(200)
    append(filled, b"g", at_ms=400)
    commit(world, leader)
    world.run(200)

    filled.group.release(filled.group.commit_index)
    leader.release_reads()
    world.run(20)

    assert found[0]
    assert read_header(found[0][0]).base_offset == 0


def test_batches_below_the_log_start_have_no_time(world: World, leader: Machine, filled: Replica) -> None:
    filled.append_log_start(2, 0)
    commit(world, leader)
    found: list[list[bytes] | None] = []

    filled.find_batch_by_time(0, found.append)
    leader.wake()
    world.run(20)

    assert found[0]
    assert read_header(found[0][0]).base_offset == 2


# -- epochs


def test_an_epoch_ends_where_the_next_one_begins(world: World, client: Client, group: int) -> None:
    client.produce(b"a", b"b", group=group)
    old = world.lead(group)
    first_epoch = old.replica(group).leader_epoch
    world.crash(old.broker_id)
    client.produce(b"c", group=group)
    replica = world.lead(group).replica(group)

    ends = [replica.epoch_end(epoch) for epoch in (0, first_epoch, replica.leader_epoch, 99)]

    assert [(end.epoch, end.end_offset) for end in ends] == [
        (ports.NO_EPOCH, ports.NO_OFFSET),
        (first_epoch, 2),
        (replica.leader_epoch, 3),
        (replica.leader_epoch, 3),
    ]


# -- applying and writing


def test_what_is_committed_is_written_once_and_in_order(
    world: World, leader: Machine, replica: Replica, group: int
) -> None:
    for number in range(20):
        append(replica, b"%d" % number)
        if number % 3 == 0:
            commit(world, leader)
    world.run(200)

    indexes = [entry.index for entry in leader.disk.groups[group].entries()]
    assert indexes == list(range(1, replica.group.commit_index + 1))
    assert replica.written_index == replica.applied_index == replica.group.commit_index


def test_what_is_committed_elsewhere_is_applied_when_it_is_on_the_own_disk(
    world: World, leader: Machine, replica: Replica, group: int
) -> None:
    leader.holds_flushes = True
    append(replica, b"a")
    commit(world, leader)
    states = (replica.high_watermark, replica.applied_index == replica.group.commit_index)

    leader.release_flushes()
    world.run(20)

    assert states == (1, False)
    assert replica.applied_index == replica.group.commit_index


def test_nothing_is_handed_out_to_be_written_twice(world: World, leader: Machine, filled: Replica) -> None:
    world.run(200)

    assert filled.write_job(LIMITS) is None


def test_a_checkpoint_holds_the_replica_as_of_what_is_applied(
    world: World, leader: Machine, filled: Replica, group: int
) -> None:
    for machine in world.running:
        if machine is not leader:
            machine.holds_flushes = True
    append(filled, b"not committed")
    commit(world, leader)

    state = filled.state_to_save()

    assert (state.index, state.offset) == (filled.applied_index, 6)
    assert state.term == filled.leader_epoch
    assert [start.term for start in state.terms] == [filled.leader_epoch]


# -- the log start


def test_the_log_start_moves_up_only_and_on_every_replica(world: World, client: Client, group: int) -> None:
    client.produce(b"a", b"b", b"c", group=group)
    leader = world.lead(group)

    for offset in (2, 1):
        leader.replica(group).append_log_start(offset, world.now_ms)
        commit(world, leader)
    world.run_until(lambda: world.is_even(group))

    assert [machine.replica(group).log_start_offset for machine in world.running] == [2, 2, 2]
    assert client.offset_of(EARLIEST, to=leader).offset == 2


def test_the_log_start_survives_a_restart_with_and_without_a_checkpoint(
    world: World, client: Client, group: int
) -> None:
    client.produce(b"a", b"b", b"c", group=group)
    found = []
    for offset in (1, 2):
        client.delete_records(offset, group=group)
        world.run_until(lambda: world.is_even(group))
        for broker_id in (1, 2, 3):
            world.crash(broker_id)
        for broker_id in (1, 2, 3):
            world.start(broker_id)
        found.append(client.offset_of(EARLIEST, to=world.lead(group)).offset)
        world.run(CHECKPOINT_MS + 500)

    assert found == [1, 2]


def test_the_log_start_is_never_below_what_can_be_read(world: World, client: Client) -> None:
    (group,) = client.create_topic("small", configs={"segment.bytes": "16384"})
    for _ in range(20):
        client.produce(bytes(2_000), group=group, topic="small")
    world.run(CHECKPOINT_MS + 500)
    client.delete_records(15, group=group, topic="small")
    world.run(CHECKPOINT_MS + 500)

    replica = world.lead(group).replica(group)

    assert 0 < replica.group.log.start_offset <= replica.log_start_offset == 15
    assert replica.state_to_send().offset == replica.group.log.start_offset
    assert replica.state_to_send().log_start_offset == 15
