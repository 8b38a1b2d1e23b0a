"""A stopped broker's folder as `tidings log` finds it: metadata, a topic of one replica, one of three."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.node.test_salvage import MEMBERS, commands, create, register
from tests.storage.broker_disk import SALT, BrokerDisk
from tests.storage.lone_log import SEGMENT_BYTES, log_of, start_behind
from tidings.broker.commands import FormCluster
from tidings.raft.entries import Entry, HardState, Membership, StartState
from tidings.storage.files import OsFiles
from tidings.storage.identity import Identity, write_identity
from tidings.storage.lock import lock_folder

ALONE_GROUP = 1
SHARED_GROUP = 2
ENTRIES = log_of((1, 5), (3, 5))
RECORD_COUNT = 20
_NAME = "data"


def make_folder(parent: Path, *, replaced: Sequence[int] = ()) -> Path:
    """Broker 1 of three, after a clean end. Of group 1, the write-ahead log has nothing any more; in group 2,
    disks that were replaced still vote."""
    own = Identity(cluster_id="c", broker_id=1, directory_uuid=SALT.hex()).member
    members = {**MEMBERS, 1: own}
    folder = parent / _NAME
    with _inside(parent):
        OsFiles().make_folder(_NAME)
        identity = Identity(cluster_id="c", broker_id=1, directory_uuid=SALT.hex(), members=members)
        write_identity(OsFiles(), _NAME, identity)
        disk = BrokerDisk(OsFiles())
        _create(disk, 0, members.values())
        metadata = commands(
            FormCluster(cluster_id="c"),
            *(register(broker_id, member) for broker_id, member in members.items()),
            create("alone", 1),
            create("shared", 1, 2, 3),
        )
        disk.write(*metadata, group=0, hard=HardState(term=1, vote=own))
        _create(disk, ALONE_GROUP, [own])
        disk.write(*ENTRIES, group=ALONE_GROUP, hard=HardState(term=3, vote=own))
        disk.apply(*ENTRIES, group=ALONE_GROUP, segment_bytes=SEGMENT_BYTES)
        disk.stores[ALONE_GROUP].checkpoint(_start(ENTRIES, [own]), "alone-0")
        disk.close()
        disk = BrokerDisk(OsFiles())
        disk.write(*metadata, group=0)
        disk.wal.cut(disk.wal.current_file)
        _create(disk, SHARED_GROUP, [*members.values(), *replaced])
        disk.write(*ENTRIES[:4], group=SHARED_GROUP, hard=HardState(term=1, vote=own))
        disk.close()
    return folder


def segment_files(folder: Path, suffix: str) -> list[Path]:
    """Of the partition of one replica, oldest first."""
    return sorted((folder / "groups" / str(ALONE_GROUP)).glob(f"*.{suffix}"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    lock = lock_folder(str(folder))
    try:
        yield
    finally:
        lock.release()


def _create(disk: BrokerDisk, group: int, voters: Iterable[int]) -> None:
    membership = Membership(voters=tuple(voters))
    disk.create(group, StartState(index=0, term=0, offset=0, membership=membership))


def _start(entries: Sequence[Entry], voters: Sequence[int]) -> StartState:
    behind = start_behind(entries)
    return StartState(
        index=behind.index,
        term=behind.term,
        offset=behind.offset,
        membership=Membership(voters=tuple(voters)),
        terms=behind.terms,
    )


@contextmanager
def _inside(parent: Path) -> Iterator[None]:
    """The disk of the storage tests has a relative name."""
    before = Path.cwd()
    os.chdir(parent)
    try:
        yield
    finally:
        os.chdir(before)
