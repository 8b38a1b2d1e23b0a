"""A broker's folder: locked, of one broker, of one cluster, and whole when it is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.identities import make_newer
from tidings.config.options import Config
from tidings.node.formation import Founding
from tidings.raft.entries import Entry, EntryKind, HardState
from tidings.raft.outbox import Flush
from tidings.runtime.data import DataFolder
from tidings.storage.errors import FolderLocked, FormatTooNew, NotAFolderOfOurs
from tidings.storage.identity import IDENTITY_NAME

FOUNDING = Founding(cluster_id="a-cluster", members={1: 11, 2: 22})


def config(folder: Path, *, broker_id: int = 1) -> Config:
    return Config(data_folder=folder, broker_id=broker_id, wal_file_bytes=64 * 1024, wal_bytes_max=1 << 20)


def take(folder: Path, *, broker_id: int = 1) -> DataFolder:
    return DataFolder.take(config(folder, broker_id=broker_id))


# Who it is


def test_a_blank_folder_is_made_and_gets_an_identity_that_stays(tmp_path: Path) -> None:
    first = take(tmp_path / "deep" / "data")
    first.release()
    second = take(tmp_path / "deep" / "data")
    other = take(tmp_path / "other")

    assert first.founding is None
    assert first.identity.directory_uuid == second.identity.directory_uuid
    assert first.identity.directory_uuid != other.identity.directory_uuid
    second.release()
    other.release()


def test_a_folder_belongs_to_the_cluster_that_it_joined(tmp_path: Path) -> None:
    blank = take(tmp_path)
    blank.join(FOUNDING, ("h:1", "h:2"))
    blank.release()

    again = take(tmp_path)

    assert again.founding == FOUNDING
    assert again.identity.seeds == ("h:1", "h:2")
    assert again.identity.directory_uuid == blank.identity.directory_uuid
    again.release()


def test_a_folder_that_is_in_use_is_refused_and_free_again_when_it_is_released(tmp_path: Path) -> None:
    holder = take(tmp_path)
    with pytest.raises(FolderLocked, match="is in use by process"):
        take(tmp_path)

    holder.release()

    take(tmp_path).release()


def test_a_folder_of_another_broker_is_refused_and_not_left_locked(tmp_path: Path) -> None:
    take(tmp_path, broker_id=2).release()

    for _ in range(2):
        with pytest.raises(NotAFolderOfOurs, match="belongs to broker 2, not to broker 1"):
            take(tmp_path)


def test_logs_without_an_identity_belong_to_nobody(tmp_path: Path) -> None:
    data = take(tmp_path)
    data.open(config(tmp_path)).close()
    data.release()
    (tmp_path / IDENTITY_NAME).unlink()

    for _ in range(2):
        with pytest.raises(NotAFolderOfOurs, match="is missing, though there are logs"):
            take(tmp_path)
    assert not (tmp_path / IDENTITY_NAME).exists()


def test_an_identity_that_was_changed_is_refused(tmp_path: Path) -> None:
    take(tmp_path).release()
    path = tmp_path / IDENTITY_NAME
    path.write_bytes(path.read_bytes().replace(b'"broker_id": 1', b'"broker_id": 7'))

    with pytest.raises(NotAFolderOfOurs, match="is damaged"):
        take(tmp_path, broker_id=7)


def test_a_folder_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    take(tmp_path).release()
    make_newer(tmp_path, format_version=99)
    before = (tmp_path / IDENTITY_NAME).read_bytes()

    for _ in range(2):
        with pytest.raises(FormatTooNew, match="99"):
            take(tmp_path)
    assert (tmp_path / IDENTITY_NAME).read_bytes() == before


# What it holds


def test_what_was_flushed_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    data = take(tmp_path)
    opened = data.open(config(tmp_path))
    assert opened.groups == {}
    entry = Entry(1, 1, EntryKind.RECORDS, 0, 1, b"payload")
    hard = HardState(term=1, vote=11)
    opened.wal.write(Flush(number=1, entries=[(5, entry)], hard_states={5: hard}, last={}))
    opened.close()
    data.release()

    again = take(tmp_path)
    reopened = again.open(config(tmp_path))

    group = reopened.groups[5]
    assert (list(group.tail), group.hard) == ([entry], hard)
    assert not group.has_files
    assert (reopened.torn, reopened.damage, reopened.damaged_groups) == (None, None, {})
    assert reopened.oldest_files == {5: reopened.wal.current_file - 1}
    reopened.close()
    again.release()


def test_a_tail_that_was_cut_is_told_and_its_groups_are_doubtful(tmp_path: Path) -> None:
    data = take(tmp_path)
    opened = data.open(config(tmp_path))
    entry = Entry(1, 1, EntryKind.RECORDS, 0, 1, b"payload")
    place = opened.wal.write(
        Flush(number=1, entries=[(5, entry)], hard_states={5: HardState(term=1, vote=1)}, last={})
    )
    opened.close()
    data.release()
    wal_file = max((tmp_path / "wal").iterdir())
    content = bytearray(wal_file.read_bytes())
    content[place.file_bytes - 1] ^= 0x10
    wal_file.write_bytes(content)

    again = take(tmp_path)
    reopened = again.open(config(tmp_path))

    assert reopened.torn is not None
    assert all(group.is_doubtful for group in reopened.groups.values())
    reopened.close()
    again.release()
