"""Data: a broker's folder: its lock, its identity, and what its files say at the start.

Its one rule: nothing is written before the lock is held. It must not know sockets. Tests:
tests/runtime/test_data.py

    DIR/LOCK  DIR/identity  DIR/wal/...  DIR/groups/<group>/...
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tidings.config.options import Config
from tidings.node.formation import Founding
from tidings.node.jobs import METADATA_GROUP
from tidings.node.recovered import RecoveredGroup
from tidings.runtime.limits import open_files_max, segment_files_max
from tidings.runtime.storage import segment_facts
from tidings.storage import recovery
from tidings.storage.errors import NotAFolderOfOurs
from tidings.storage.files import OsFiles, OsLock
from tidings.storage.identity import Identity, read_identity, write_identity
from tidings.storage.lock import lock_folder
from tidings.storage.open_files import OpenFiles
from tidings.storage.recovery import WAL_FOLDER, Recovered, group_folder, recover
from tidings.storage.segments import SegmentStore, StoreFiles
from tidings.storage.state_store import StateStore
from tidings.storage.wal import WalWriter

# The first file of a process is small, so that a new broker serves within milliseconds; the next ones are
# made ahead.
_FIRST_WAL_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedData:
    """The folder, ready for the threads."""

    wal: WalWriter
    files: StoreFiles
    stores: dict[int, SegmentStore]
    metadata: StateStore
    groups: Mapping[int, RecoveredGroup]
    oldest_files: dict[int, int]
    torn: str | None
    damage: str | None
    damaged_groups: dict[int, str]

    def close(self) -> None:
        """Where no threads came to own it."""
        self.wal.close()
        self.files.written.abandon()
        self.files.read.abandon()


class DataFolder:
    """One broker's folder, locked."""

    def __init__(self, folder: Path, lock: OsLock, identity: Identity) -> None:
        self.folder = str(folder)
        self.identity = identity
        self._lock = lock
        self._files = OsFiles()

    @staticmethod
    def take(config: Config) -> DataFolder:
        """Lock the folder and read who it is; a blank one draws its directory uuid. Raises StorageError."""
        assert config.data_folder is not None
        folder = config.data_folder
        files = OsFiles()
        files.make_folder(str(folder))
        lock = lock_folder(str(folder))
        try:
            identity = _identity_of(files, str(folder), config.broker_id)
        except BaseException:  # whatever it is, the lock does not outlive it; raised again
            lock.release()
            raise
        return DataFolder(folder, lock, identity)

    @property
    def founding(self) -> Founding | None:
        """The cluster that this folder belongs to; None while it is blank."""
        if not self.identity.cluster_id:
            return None
        return Founding(cluster_id=self.identity.cluster_id, members=self.identity.members or {})

    def join(self, founding: Founding, seeds: tuple[str, ...]) -> None:
        """Belong to a cluster from now on: durable when this returns, before the first vote."""
        self.identity = replace(
            self.identity, cluster_id=founding.cluster_id, seeds=seeds, members=dict(founding.members)
        )
        write_identity(self._files, self.folder, self.identity)

    def open(self, config: Config) -> OpenedData:
        """Read checkpoints and the write-ahead log, and make ready for writing."""
        recovered = recover(self._files, self.folder, salt=self.identity.salt)
        files_max = segment_files_max(open_files_max())
        shared = StoreFiles(
            files=self._files,
            written=OpenFiles(self._files, count_max=files_max),
            read=OpenFiles(self._files, count_max=files_max),
        )
        wal_folder = f"{self.folder}/{WAL_FOLDER}"
        self._files.make_folder(wal_folder)
        wal = WalWriter.open(
            self._files,
            wal_folder,
            salt=self.identity.salt,
            start=recovered.wal,
            first_file_bytes=min(_FIRST_WAL_BYTES, config.wal_file_bytes),
            file_bytes_max=config.wal_file_bytes,
        )
        metadata = recovered.groups.get(METADATA_GROUP)
        stores = _open_stores(shared, self.folder, recovered)
        return OpenedData(
            wal=wal,
            files=shared,
            stores=stores,
            metadata=StateStore(
                self._files,
                group_folder(self.folder, METADATA_GROUP),
                group=METADATA_GROUP,
                checkpoint=metadata.checkpoint if metadata is not None else None,
            ),
            groups={
                number: _for_node(group, stores.get(number)) for number, group in recovered.groups.items()
            },
            oldest_files=recovered.oldest_files(),
            torn=recovered.torn,
            damage=recovered.damage,
            damaged_groups={
                number: group.damaged
                for number, group in recovered.groups.items()
                if group.damaged is not None
            },
        )

    def release(self) -> None:
        self._lock.release()


def _identity_of(files: OsFiles, folder: str, broker_id: int) -> Identity:
    """Who the folder is; a blank one gets a directory uuid of its own."""
    identity = read_identity(files, folder)
    if identity is None:
        identity = Identity(cluster_id="", broker_id=broker_id, directory_uuid=uuid.uuid4().hex)
        write_identity(files, folder, identity)
    elif identity.broker_id != broker_id:
        raise NotAFolderOfOurs(f"{folder} belongs to broker {identity.broker_id}, not to broker {broker_id}")
    return identity


def _open_stores(shared: StoreFiles, folder: str, recovered: Recovered) -> dict[int, SegmentStore]:
    return {
        number: SegmentStore.open(
            shared, group_folder(folder, number), group.checkpoint, damaged=group.damaged
        )
        for number, group in recovered.groups.items()
        if group.checkpoint is not None and number != METADATA_GROUP
    }


def _for_node(group: recovery.RecoveredGroup, store: SegmentStore | None) -> RecoveredGroup:
    log_start = group.log_start
    return RecoveredGroup(
        group=group.group,
        start=group.start,
        first=replace(group.start, index=log_start.index, term=log_start.term, offset=log_start.offset),
        tail=group.tail,
        hard=group.hard,
        segments=segment_facts(store.segments()) if store is not None else (),
        has_files=group.checkpoint is not None,
        is_doubtful=group.doubtful,
        is_damaged=group.damaged is not None,
    )
