"""A log of one voter with batches as producers make them, for the tests of salvage."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import FOLDER, BrokerDisk, term_start
from tidings.protocol.record_codec import Record, encode_batch
from tidings.protocol.records import stamp
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState, TermStart
from tidings.storage.recovery import group_folder

GROUP = 1
OWN = 11
ALONE = Membership(voters=(OWN,))
SEGMENT_BYTES = 400  # three or four of the batches below


def batch_of(index: int, *, term: int, offset: int, count: int = 1) -> Entry:
    records = [
        Record(
            offset=number, timestamp=1_000 + offset + number, key=None, value=b"value-%d" % (offset + number)
        )
        for number in range(count)
    ]
    payload = stamp(encode_batch(records), offset, term)
    return Entry(index, term, EntryKind.RECORDS, offset, count, payload)


def log_of(*terms_and_counts: tuple[int, int]) -> list[Entry]:
    """For each (term, number of batches) a term start and batches of two records."""
    entries: list[Entry] = []
    offset = 0
    for term, batch_count in terms_and_counts:
        entries.append(term_start(len(entries) + 1, term=term, offset=offset))
        for _ in range(batch_count):
            entries.append(batch_of(len(entries) + 1, term=term, offset=offset, count=2))
            offset += 2
    return entries


def terms_of(entries: Sequence[Entry]) -> tuple[TermStart, ...]:
    terms: list[TermStart] = []
    for entry in entries:
        if not terms or terms[-1].term != entry.term:
            terms.append(TermStart(term=entry.term, index=entry.index, offset=entry.base_offset))
    return tuple(terms)


def start_behind(entries: Sequence[Entry], *, state: bytes = b"", log_start_offset: int = 0) -> StartState:
    last = entries[-1]
    return StartState(
        index=last.index,
        term=last.term,
        offset=last.next_offset,
        membership=ALONE,
        log_start_offset=log_start_offset,
        terms=terms_of(entries),
        state=state,
    )


def disk_with(
    entries: Sequence[Entry], *, tail: Sequence[Entry] = (), is_log_cut: bool, state: bytes = b"saved"
) -> FakeFiles:
    """A broker's disk after a clean end: `entries` in segments and checkpoint, `tail` in the write-ahead log.
    Unless it is cut, that holds all of them still."""
    disk = BrokerDisk()
    disk.create(GROUP, StartState(index=0, term=0, offset=0, membership=ALONE))
    disk.write(*entries, group=GROUP, hard=HardState(term=entries[-1].term, vote=OWN))
    disk.apply(*entries, group=GROUP, segment_bytes=SEGMENT_BYTES)
    disk.stores[GROUP].checkpoint(start_behind(entries, state=state), "events-0")
    disk.close()
    disk = BrokerDisk(disk.fake.copy())
    if is_log_cut:
        disk.wal.cut(disk.wal.current_file)
    if tail:
        disk.write(*tail, group=GROUP)
    disk.close()
    return disk.fake.copy()


def stem(entry: Entry) -> str:
    """Of the segment that begins with the entry."""
    return f"{group_folder(FOLDER, GROUP)}/{entry.base_offset:020d}-{entry.index}"


def stems(files: FakeFiles) -> list[str]:
    """Of all segments, in order."""
    folder = group_folder(FOLDER, GROUP)
    return sorted({path.rpartition(".")[0] for path in files.paths() if path.startswith(f"{folder}/0")})
