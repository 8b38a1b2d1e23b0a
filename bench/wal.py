"""Storage benchmark: what a flush, an applied entry and a read cost. Run: python -m bench.wal [FOLDER]

Flushes go to files in FOLDER (default: the current one), once as they are and once to files whose writes and
syncs cost nothing, which leaves Python's share. Figures are medians in microseconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.figures import median
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.storage.files import File, OsFile, OsFiles
from tidings.storage.open_files import OpenFiles
from tidings.storage.segments import SegmentStore, StoreFiles
from tidings.storage.wal import WalWriter
from tidings.storage.wal_format import WalStart

FLUSHES = 1_000
ENTRIES = 20_000
BATCH_BYTES = 200
WAL_FILE_BYTES = 64 << 20
LOADS = {
    "1 entry of 200 B": (1, 200),
    "32 groups x 4 KiB": (32, 4096),
    "1 entry of 1 MiB": (1, 1 << 20),
}


@dataclass(slots=True)
class Load:
    """A flush of one entry in each of some groups."""

    entries: list[tuple[int, Entry]]
    hard_states: dict[int, HardState] = field(default_factory=dict)


class IdleFile:
    """A file whose disk takes no time and keeps nothing."""

    def __init__(self, file: OsFile) -> None:
        self._file = file

    def read_at(self, length: int, position: int) -> bytes:
        return self._file.read_at(length, position)

    def write_at(self, buffers: Sequence[bytes], position: int) -> None:
        pass

    def write_durably_at(self, buffers: Sequence[bytes], position: int) -> None:
        pass

    def sync(self) -> None:
        pass

    def reserve(self, length: int, position: int) -> bool:
        return True

    def truncate(self, size: int) -> None:
        pass

    def size(self) -> int:
        return 0

    def close(self) -> None:
        self._file.close()


class IdleFiles(OsFiles):
    """The system's names, without the cost of what is in the files."""

    def open(self, path: str, *, create: bool) -> File:  # type: ignore[override]  # a stand-in for OsFile
        return IdleFile(super().open(path, create=create))


def main() -> None:
    parent = sys.argv[1] if len(sys.argv) > 1 else "."
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        for title, (group_count, payload_bytes) in LOADS.items():
            for files, share in ((OsFiles(), "with the disk"), (IdleFiles(), "Python's share")):
                name = f"{folder}/{group_count}-{payload_bytes}-{type(files).__name__}"
                show(f"flush of {title}, {share}", flush_us(files, name, group_count, payload_bytes))
        measure_segments(f"{folder}/segments")


def flush_us(files: OsFiles, folder: str, group_count: int, payload_bytes: int) -> float:
    """The median time of one write, without those that begin a file."""
    wal = WalWriter.open(
        files,
        folder,
        salt=bytes(16),
        start=WalStart(),
        first_file_bytes=WAL_FILE_BYTES,
        file_bytes_max=WAL_FILE_BYTES,
    )
    payload = bytes(payload_bytes)
    samples: list[float] = []
    for index in range(1, min(FLUSHES, (512 << 20) // (group_count * payload_bytes)) + 1):
        entries = [
            (group, Entry(index, 1, EntryKind.RECORDS, index - 1, 1, payload)) for group in range(group_count)
        ]
        began = time.perf_counter()
        wal.write(Load(entries))
        samples.append(time.perf_counter() - began)
        if not wal.space_ready:
            wal.cut(wal.current_file)
            wal.prepare_next()
    wal.close()
    return median(samples) * 1e6


def measure_segments(folder: str) -> None:
    files = OsFiles()
    shared = StoreFiles(
        files=files, written=OpenFiles(files, count_max=16), read=OpenFiles(files, count_max=16)
    )
    start = StartState(index=0, term=0, offset=0, membership=Membership(voters=(1,)))
    store = SegmentStore.create(shared, folder, group=1, start=start, title="bench-0")
    payload = bytes(BATCH_BYTES)
    entries = [Entry(index, 1, EntryKind.RECORDS, index - 1, 1, payload) for index in range(1, ENTRIES + 1)]
    tenth = ENTRIES // 10
    show(
        "append to a segment, per entry of 200 B, 10 at once",
        per_item_us(lambda at: append(store, entries[at * 10 : at * 10 + 10]), tenth) / 10,
    )
    show("read one batch anywhere", per_item_us(lambda at: read(store, at * 7919 % ENTRIES, 1), 2_000))
    show(
        "read on, per batch of 200 B, 64 KiB at once",
        per_item_us(lambda at: read(store, at * 300, 300 * BATCH_BYTES), ENTRIES // 300) / 300,
    )
    shared.written.close()
    shared.read.close()


def append(store: SegmentStore, entries: list[Entry]) -> None:
    store.append(entries, segment_bytes=1 << 30, segment_ms=1 << 40)


def read(store: SegmentStore, offset: int, bytes_max: int) -> None:
    assert store.read_offset(offset, bytes_max, ENTRIES)


def per_item_us(call: Callable[[int], None], count: int) -> float:
    samples: list[float] = []
    for at in range(count):
        began = time.perf_counter()
        call(at)
        samples.append(time.perf_counter() - began)
    return median(samples) * 1e6


def show(title: str, microseconds: float) -> None:
    print(f"{title:55} {microseconds:10.1f} us")


if __name__ == "__main__":
    main()
