"""Tests of node/replicas.py: which partitions a broker holds, and what of them it has in memory and on disk.

Removed topics: tests/node/test_deletion.py; damaged replicas: tests/node/test_damage.py.
"""

from __future__ import annotations

import pytest

from tests.node.client import Client
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.node.jobs import (
    BeginGroup,
    DropBelow,
    Dropped,
    RemoveGroup,
    ResetLog,
    SegmentFacts,
    SegmentLimits,
    StorageJob,
    WriteEntries,
    Written,
)
from tidings.node.recovered import RecoveredGroup
from tidings.node.replicas import Replicas
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState

FAR = 1 << 40
LIMITS = SegmentLimits(segment_bytes=FAR, segment_ms=FAR)
UNKNOWN_GROUP = 77


def jobs_of(machine: Machine) -> list[StorageJob]:
    """The jobs that the next turn hands out."""
    return machine.node.turn(0, may_flush=False).storage_jobs


def window_bytes(machine: Machine) -> int:
    """What the machine holds of partitions in memory."""
    replicas = machine.node.replicas.by_group.values()
    return sum(
        len(entry.payload)
        for replica in replicas
        for entry in replica.group.log.entries_from(replica.group.log.window_first)
    )


def follower_of(world: World, group: int) -> Machine:
    leader = world.lead(group)
    return next(machine for machine in world.running if machine is not leader)


# -- which


def test_a_broker_holds_what_is_placed_on_it_and_nothing_else(world: World, client: Client) -> None:
    first, second = client.create_topic(assignments=((1, 2), (2, 3)))

    held = {machine.broker_id: set(machine.node.replicas.by_group) for machine in world.running}

    assert held == {1: {first}, 2: {first, second}, 3: {second}}


def test_a_new_replica_has_no_files_before_its_first_entry(world: World) -> None:
    machine = world[1]
    machine.holds_jobs = True
    Client(world).send_create_topic()
    world.run(200)
    (group,) = machine.node.replicas.by_group

    files_before = group in machine.disk.groups
    machine.release_jobs()
    world.run(200)

    assert not files_before
    assert group in machine.disk.groups


def test_a_replica_with_files_is_not_begun_again(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(3, group=group)
    world.run(CHECKPOINT_MS + 500)
    machine = world[1]
    world.crash(1)
    recovered = machine.disk.start()[group]

    assert recovered.has_files
    world.start(1)
    begun = [job for job in jobs_of(machine) if isinstance(job, BeginGroup)]
    assert begun == []


def test_files_of_a_group_that_the_metadata_has_not_spoken_of_are_kept(world: World) -> None:
    machine = world[1]
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(machine.member,)))
    unknown = RecoveredGroup(group=UNKNOWN_GROUP, start=start, first=start, has_files=True)
    replicas = Replicas(machine.node, {UNKNOWN_GROUP: unknown})

    replicas.open_all(world.now_ms)
    replicas.placed([], world.now_ms)

    assert replicas.may_return(UNKNOWN_GROUP)
    assert not [job for job in jobs_of(machine) if isinstance(job, RemoveGroup)]


def test_the_log_of_a_group_keeps_its_founders_when_a_topic_is_placed_anew(
    world: World, client: Client
) -> None:
    (group,) = client.create_topic(assignments=((1, 2),))

    founders = world[1].node.broker.cluster.partitions[group].founders

    assert world[1].replica(group).group.membership.voters == founders
    assert founders == (world[1].member, world[2].member)


# -- what is written


def test_committed_entries_are_written_at_the_next_tick(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce(b"a", group=group)

    world.run(50)

    entries = world.lead(group).disk.groups[group].entries()
    assert [entry.kind for entry in entries] == [EntryKind.TERM_START, EntryKind.RECORDS]


@pytest.mark.parametrize(("size_bytes", "waits"), [(1_000, True), (2_000_000, False)])
def test_many_committed_bytes_are_written_before_the_next_tick(
    world: World, client: Client, size_bytes: int, waits: bool
) -> None:
    (group,) = client.create_topic()
    replicas = world.lead(group).node.replicas
    replicas.has_unwritten(replicas.by_group[group], size_bytes)

    replicas.advanced(group, world.now_ms)

    assert replicas.has_unwritten_entries == waits


def test_what_is_written_stays_in_memory_within_the_budget() -> None:
    world = World(recent_bytes_max=20_000)
    client = Client(world)
    world.run_until(world.is_serving)
    first, second = client.create_topic(assignments=((1, 2, 3), (1, 2, 3)))
    world.run_until(lambda: world.is_led(first) and world.is_led(second))

    client.produce_many(60, group=first, size=1_000)
    world.run(200)

    for machine in world.running:
        assert 10_000 <= window_bytes(machine) <= 20_000


def test_what_is_not_on_disk_stays_in_memory_whatever_the_budget() -> None:
    world = World(recent_bytes_max=1_024)
    client = Client(world)
    world.run_until(world.is_serving)
    (group,) = client.create_topic()
    leader = world.lead(group)
    leader.holds_jobs = True

    client.produce_many(20, group=group, size=1_000)
    world.run(200)

    assert window_bytes(leader) > 20_000
    leader.release_jobs()
    world.run(200)
    assert window_bytes(leader) <= 2_500


# -- jobs of a log that was replaced meanwhile


@pytest.fixture
def refilling(world: World, client: Client) -> tuple[Machine, int]:
    """A follower that was found damaged, and the group; its leader has not answered yet."""
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    world.run_until(lambda: world.is_even(group))
    machine = follower_of(world, group)
    machine.damage(group)
    return machine, group


def written_job(group: int, index: int) -> WriteEntries:
    entry = Entry(index, 1, EntryKind.RECORDS, index - 1, 1, bytes(100))
    return WriteEntries(group=group, entries=[entry], limits=LIMITS)


def test_what_was_written_of_a_replaced_log_is_of_no_interest(
    world: World, refilling: tuple[Machine, int]
) -> None:
    machine, group = refilling
    facts = (SegmentFacts(base_offset=0, next_offset=5, size_bytes=500, max_timestamp=0),)

    machine.node.stored(written_job(group, 6), Written(segments=facts), world.now_ms)

    replica = machine.replica(group)
    assert (replica.written_index, list(replica.segments)) == (0, [])


def test_what_was_dropped_of_a_replaced_log_is_of_no_interest(
    world: World, refilling: tuple[Machine, int]
) -> None:
    machine, group = refilling
    dropped = Dropped(index=3, term=1, offset=2, segments=())

    machine.node.stored(DropBelow(group=group, log_start_offset=2), dropped, world.now_ms)

    assert machine.replica(group).group.log.start_index == 0


def test_a_reset_that_new_damage_has_overtaken_is_not_taken_for_the_awaited_one(
    world: World, refilling: tuple[Machine, int]
) -> None:
    machine, group = refilling
    start = StartState(index=0, term=0, offset=0, membership=machine.replica(group).group.membership)

    machine.node.stored(ResetLog(group=group, start=start, title="old"), None, world.now_ms)

    assert machine.replica(group).group.damaged
    assert machine.replica(group).has_no_files


def test_nothing_is_saved_or_written_while_files_are_replaced(refilling: tuple[Machine, int]) -> None:
    machine, group = refilling
    jobs_of(machine)

    saved = machine.node.replicas.save_checkpoint(group)
    machine.node.replicas.tick(0)

    assert saved is None
    assert [job for job in jobs_of(machine) if job.group == group] == []


def test_jobs_of_a_group_that_is_gone_are_of_no_interest(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    machine = world.lead(group)
    client.delete_topic()

    machine.node.stored(written_job(group, 6), Written(segments=()), world.now_ms)
    machine.node.damaged(group, world.now_ms)

    assert group not in machine.node.replicas.by_group


def test_a_damaged_replica_keeps_its_term_and_vote(world: World, refilling: tuple[Machine, int]) -> None:
    machine, group = refilling
    damaged = machine.replica(group).group

    machine.wake()
    world.run(1)

    assert damaged.term == world.lead(group).replica(group).leader_epoch
    world.run(5)
    assert machine.disk.log.hard_states[group] == HardState(term=damaged.term, vote=damaged.vote)


def test_a_second_report_of_damage_changes_nothing(world: World, refilling: tuple[Machine, int]) -> None:
    machine, group = refilling
    damaged = machine.replica(group).group

    machine.node.damaged(group, world.now_ms)

    assert machine.replica(group).group is damaged
