"""Tests of node/removals.py: the files of a deleted topic's groups go, and not too early."""

from __future__ import annotations

from tests.node.client import Client
from tests.node.world import CHECKPOINT_MS, World
from tidings.broker.cluster import METADATA_GROUP
from tidings.node.checkpoints import Checkpoints
from tidings.node.jobs import RemoveGroup, StorageJob
from tidings.node.removals import Removals

APPLIED = 9


class FakeOwner:
    """A node that has applied the metadata up to an index."""

    def __init__(self) -> None:
        self.index = APPLIED
        self.can_save = True
        self.asked: list[int] = []
        self.jobs: list[StorageJob] = []
        self.checkpoints = Checkpoints(self, file_count_max=1, interval_ms=1, now_ms=0)

    def metadata_index(self) -> int:
        return self.index

    def save_checkpoint(self, group: int) -> int | None:
        assert group == METADATA_GROUP
        self.asked.append(self.index)
        return self.index if self.can_save else None

    def store(self, job: StorageJob) -> None:
        self.jobs.append(job)

    def is_carried(self, group: int, *, is_too_long: bool) -> bool:
        return False

    def is_given_up(self, group: int) -> bool:
        return False

    def may_return(self, group: int) -> bool:
        return True

    def last_index(self, group: int) -> int:
        return 0

    def carry(self, group: int, first_index: int | None) -> int | None:
        return None

    def cut_log(self, below_file: int) -> None:
        pass


def test_a_group_is_removed_when_the_metadata_is_saved_without_it() -> None:
    owner = FakeOwner()
    removals = Removals(owner, saved_index=5)

    removals.add(1)
    removals.metadata_saved(APPLIED - 1)
    jobs_before = list(owner.jobs)
    removals.metadata_saved(APPLIED)

    assert jobs_before == []
    assert owner.jobs == [RemoveGroup(group=1)]
    assert not removals


def test_a_group_that_the_saved_metadata_does_not_hold_is_removed_at_once() -> None:
    owner = FakeOwner()

    Removals(owner, saved_index=APPLIED).add(1)

    assert owner.jobs == [RemoveGroup(group=1)]


def test_a_checkpoint_is_asked_for_once_per_need() -> None:
    owner = FakeOwner()
    removals = Removals(owner, saved_index=5)
    removals.tick()
    asked_without_need = list(owner.asked)

    removals.add(1)
    removals.tick()
    removals.tick()
    owner.index += 1
    removals.add(2)
    removals.tick()

    assert asked_without_need == []
    assert owner.asked == [APPLIED, APPLIED + 1]


def test_a_checkpoint_that_cannot_be_made_is_asked_for_again() -> None:
    owner = FakeOwner()
    owner.can_save = False
    removals = Removals(owner, saved_index=5)
    removals.add(1)

    removals.tick()
    owner.can_save = True
    removals.tick()
    removals.tick()

    assert len(owner.asked) == 2
    assert 1 in removals


def test_files_go_within_a_moment_of_the_deletion(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    client.produce_many(3, group=group)

    client.delete_topic()
    world.run(200)

    assert all(group not in machine.disk.groups for machine in world.running)


def test_a_start_from_older_metadata_finds_the_log_as_it_was(world: World, client: Client) -> None:
    """One broker did not hear of the deletion, the two others are killed before it is in a checkpoint."""
    (group,) = client.create_topic()
    client.produce_many(5, group=group)
    world.run(CHECKPOINT_MS + 500)
    world.crash(3)
    for broker_id in (1, 2):
        world[broker_id].holds_jobs = True
    client.delete_topic()
    world.run(200)

    for broker_id in (1, 2):
        world.crash(broker_id)
    for broker_id in (1, 2, 3):
        world.start(broker_id)
    ends = {machine.replica(group).end_offset for machine in world.running}
    world.run_until(lambda: all(group not in machine.disk.groups for machine in world.running))

    assert ends == {5}


def test_the_log_is_not_held_by_what_was_removed(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    (other,) = client.create_topic("other")
    client.produce_many(20, group=group)

    client.delete_topic()
    for _ in range(3):
        client.produce_many(40, group=other, topic="other")
        world.run(CHECKPOINT_MS + 500)

    for machine in world.running:
        assert machine.disk.log.newest_file - machine.disk.log.oldest_file <= 4
