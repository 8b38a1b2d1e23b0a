"""What is handed to the segment thread is counted until it is written; too much of it refuses producers."""

from __future__ import annotations

import io

from tests.runtime.test_persistence import Bench, Disk, Owner, write
from tidings.config.options import Config
from tidings.node.jobs import RemoveGroup, StorageJob, Written
from tidings.node.turn import Turn
from tidings.raft.entries import Entry, EntryKind
from tidings.runtime.backlog import Backlog
from tidings.runtime.persistence import Persistence
from tidings.storage.errors import Damaged
from tidings.telemetry.events import open_log

JOB_BYTES = len(b"payload") + 256  # of one write()


def test_what_is_behind_stays_so_until_half_of_it_is_written() -> None:
    backlog = Backlog(4 * JOB_BYTES)
    told = []

    for index in range(1, 6):
        backlog.handed(write(index))
        told.append(backlog.is_over)
    for index in range(1, 6):
        backlog.ended(write(index))
        told.append(backlog.is_over)

    assert told == [False] * 4 + [True] * 3 + [False] * 3
    assert backlog.size_bytes == 0


def test_a_removed_group_takes_with_it_what_waits() -> None:
    backlog = Backlog(JOB_BYTES)
    backlog.handed(write(1))
    backlog.handed(write(2))
    backlog.handed(write(1, group=6))

    backlog.ended(RemoveGroup(group=5))

    assert backlog.size_bytes == JOB_BYTES
    assert backlog.is_over


def test_a_group_removed_without_a_write_changes_nothing() -> None:
    backlog = Backlog(JOB_BYTES)

    backlog.ended(RemoveGroup(group=5))

    assert backlog.size_bytes == 0


def test_producers_are_refused_while_the_disk_is_behind() -> None:
    disk, owner = Disk(), Owner()
    events = io.StringIO()
    owner.log = open_log(Config(log_format="json"), events)
    persistence = Persistence(owner, owner, disk, backlog_bytes_max=JOB_BYTES)
    jobs: list[StorageJob] = [write(1), write(2), write(3)]

    persistence.take(Turn(storage_jobs=jobs))
    assert owner.is_storage_full
    disk.end(Written(segments=()))
    disk.end(Written(segments=()))
    assert owner.is_storage_full
    disk.end(Written(segments=()))

    assert not owner.is_storage_full
    assert events.getvalue().count("disk_behind") == 1
    assert "disk_full" not in events.getvalue()


def test_what_a_damaged_group_did_not_write_is_not_counted_on() -> None:
    bench = Bench()
    entry = Entry(1, 1, EntryKind.RECORDS, 1, 1, b"payload")
    bench.store(write(entry.index))

    bench.disk.end(error=Damaged("a bit flipped"))

    assert bench.persistence._backlog.size_bytes == 0
