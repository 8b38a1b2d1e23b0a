"""The store of a group that keeps no segments."""

from __future__ import annotations

import pytest

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import FOLDER, recovered_from, start_at
from tidings.storage.errors import DiskFailed, DiskFull
from tidings.storage.recovery import group_folder
from tidings.storage.state_store import StateStore

METADATA = group_folder(FOLDER, 0)


def test_the_state_of_the_newest_checkpoint_is_recovered() -> None:
    files = FakeFiles()
    store = StateStore(files, METADATA, group=0, checkpoint=None)

    store.checkpoint(start_at(5, offset=0, state=b"five"), "metadata")
    store.checkpoint(start_at(9, offset=0, state=b"nine"), "metadata")

    group = recovered_from(files).groups[0]
    assert (group.start.index, group.start.state) == (9, b"nine")
    assert group.first_index == 10


def test_a_state_from_the_leader_remembers_which_flush_it_follows() -> None:
    files = FakeFiles()
    StateStore(files, METADATA, group=0, checkpoint=None).reset(
        start_at(9, offset=0), "metadata", wal_sequence=12
    )

    checkpoint = recovered_from(files).groups[0].checkpoint
    StateStore(files, METADATA, group=0, checkpoint=checkpoint).checkpoint(start_at(10, offset=0), "metadata")

    checkpoint = recovered_from(files).groups[0].checkpoint
    assert checkpoint is not None
    assert checkpoint.reset_sequence == 12


def test_no_room_can_be_tried_again_and_keeps_the_old_state() -> None:
    files = FakeFiles()
    store = StateStore(files, METADATA, group=0, checkpoint=None)
    store.checkpoint(start_at(5, offset=0, state=b"five"), "metadata")
    files.free_bytes = 10

    with pytest.raises(DiskFull):
        store.checkpoint(start_at(9, offset=0, state=b"nine" * 100), "metadata")

    assert recovered_from(files).groups[0].start.state == b"five"


def test_a_failed_sync_is_the_end() -> None:
    files = FakeFiles()
    store = StateStore(files, METADATA, group=0, checkpoint=None)
    files.failing_syncs.add(f"{METADATA}/checkpoint.new")

    with pytest.raises(DiskFailed):
        store.checkpoint(start_at(5, offset=0), "metadata")
