"""A broker's disk in one hand, and the entries that tests write to it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.fakes.files import FakeFiles
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState, TermStart
from tidings.storage.files import Files
from tidings.storage.open_files import OpenFiles
from tidings.storage.recovery import WAL_FOLDER, Recovered, group_folder, recover
from tidings.storage.segments import SegmentStore, StoreFiles
from tidings.storage.wal import WalPosition, WalWriter

FOLDER = "data"
WAL = f"{FOLDER}/{WAL_FOLDER}"
SALT = bytes(range(16))
VOTERS = Membership(voters=(11, 12, 13))
NEVER_FULL = 1 << 40
_TIMESTAMP_AT = 35


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A flush as the consensus room hands it over."""

    entries: Sequence[tuple[int, Entry]] = ()
    hard_states: Mapping[int, HardState] = field(default_factory=dict)


def batch(filling: int, *, timestamp: int = 0, size: int = 70) -> bytes:
    """As much of a record batch as storage looks at: its maximum timestamp."""
    head = bytes(_TIMESTAMP_AT) + struct.pack(">q", timestamp)
    return head + bytes([filling % 256]) * (size - len(head))


def records(
    index: int,
    *,
    term: int = 1,
    offset: int | None = None,
    count: int = 1,
    timestamp: int = 0,
    size: int = 70,
) -> Entry:
    """A batch; by default one record each from index 1 and offset 0 on."""
    base_offset = index - 1 if offset is None else offset
    payload = batch(index * 7 + term, timestamp=timestamp, size=size)
    return Entry(index, term, EntryKind.RECORDS, base_offset, count, payload)


def term_start(index: int, *, term: int, offset: int) -> Entry:
    return Entry(index, term, EntryKind.TERM_START, offset, 0, b"")


def membership_entry(index: int, *, term: int, offset: int) -> Entry:
    return Entry(index, term, EntryKind.MEMBERSHIP, offset, 0, VOTERS.encode())


def start_mark(index: int, *, term: int) -> Entry:
    return Entry(index, term, EntryKind.START, 0, 0, b"")


def start_at(index: int, *, term: int = 1, offset: int | None = None, state: bytes = b"") -> StartState:
    """A start state; offsets as `records` counts them."""
    return StartState(
        index=index,
        term=term if index else 0,
        offset=index if offset is None else offset,
        membership=VOTERS,
        terms=(TermStart(term=1, index=1, offset=0),) if index else (),
        state=state,
    )


class BrokerDisk:
    """What a broker has open: recovers at once, as a start does."""

    def __init__(
        self, files: Files | None = None, *, first_file_bytes: int = 4096, file_bytes_max: int = 16384
    ) -> None:
        self.files = files or FakeFiles()
        self.recovered: Recovered = recover(self.files, FOLDER, salt=SALT)
        self.wal = WalWriter.open(
            self.files,
            WAL,
            salt=SALT,
            start=self.recovered.wal,
            first_file_bytes=first_file_bytes,
            file_bytes_max=file_bytes_max,
        )
        self.shared = store_files(self.files)
        self.stores: dict[int, SegmentStore] = {}
        for group, state in self.recovered.groups.items():
            if state.checkpoint is not None:
                self.stores[group] = SegmentStore.open(
                    self.shared, group_folder(FOLDER, group), state.checkpoint, damaged=state.damaged
                )

    @property
    def fake(self) -> FakeFiles:
        assert isinstance(self.files, FakeFiles)
        return self.files

    def create(self, group: int, start: StartState | None = None) -> SegmentStore:
        store = SegmentStore.create(
            self.shared,
            group_folder(FOLDER, group),
            group=group,
            start=start or start_at(0),
            title=f"t-{group}",
        )
        self.stores[group] = store
        return store

    def write(self, *entries: Entry, group: int = 1, hard: HardState | None = None) -> WalPosition:
        """One flush of one group."""
        hard_states = {} if hard is None else {group: hard}
        return self.wal.write(Written(entries=[(group, entry) for entry in entries], hard_states=hard_states))

    def apply(self, *entries: Entry, group: int = 1, segment_bytes: int = NEVER_FULL) -> None:
        self.stores[group].append(entries, segment_bytes=segment_bytes, segment_ms=NEVER_FULL)

    def close(self) -> None:
        self.wal.close()
        self.shared.written.close()
        self.shared.read.close()


def store_files(files: Files) -> StoreFiles:
    return StoreFiles(files=files, written=OpenFiles(files, count_max=8), read=OpenFiles(files, count_max=8))


def recovered_from(files: Files) -> Recovered:
    return recover(files, FOLDER, salt=SALT)


def indexes(entries: Sequence[Entry]) -> list[int]:
    return [entry.index for entry in entries]
