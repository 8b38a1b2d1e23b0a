"""Salvage: what of a group's log can be had from a folder, and writing the log anew from there.

The one rule: examining only reads; rewriting changes a group in one step: the checkpoint that ends where the
intact log ends, with all that follows in the flush before it. A crash leaves the old log or the new one, and
the same call may be made again. Who may decide that, and what the new log begins with, is the caller's part.
The folder is locked by the caller. It must not know what payloads mean. Tests: tests/storage/test_salvage.py

    1  one flush that marks the groups as damaged: until all is done, no start may trust them
    2  indexes that were counted replace those that are lost
    3  one flush: a start mark at the end of the segments, the entries behind it, the new term
    4  the checkpoint, which carries the start mark out
    5  when all groups are done, one flush without their marks of damage and doubt
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidings.raft.entries import Entry, EntryKind, HardState, StartState
from tidings.storage.checkpoint import Checkpoint, write_checkpoint
from tidings.storage.files import Files
from tidings.storage.log_state import LogState, Published, index_path, paths
from tidings.storage.open_files import OpenFiles
from tidings.storage.recovery import WAL_FOLDER, Recovered, RecoveredGroup, group_folder
from tidings.storage.scan_log import LogScan, scan_log
from tidings.storage.scan_segment import Position, Scanned, SegmentScan
from tidings.storage.segment_reader import SegmentReader
from tidings.storage.wal import WalWriter
from tidings.storage.wal_format import LastEntry, Mark
from tidings.storage.wal_reader import WalReader
from tidings.storage.wal_tails import CheckpointedAt, GroupTail, WalTails

ORPHANS_FOLDER = "orphans"
_WAL_FILE_BYTES = 64 * 1024  # grows with what is written
_WRITE_BYTES = 1 << 20
_ALL_RESETS = 1 << 63  # of a lost checkpoint nobody knows which start mark it carried out: all that there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A group's log as far as it can be had: its segments, and behind them `tail` of the write-ahead log."""

    group: int
    recovered: RecoveredGroup
    scan: LogScan
    tail: tuple[Entry, ...]
    newest_term: int  # that this folder knows of
    known_end: LastEntry  # of the newest entry that there was
    known_offset: int  # behind the last record of which the offset is known

    @property
    def end(self) -> Position:
        if not self.tail:
            return self.scan.end
        last = self.tail[-1]
        return Position(index=last.index, term=last.term, offset=last.next_offset)

    @property
    def is_intact(self) -> bool:
        is_scanned_well = self.scan.problem is None and not self.scan.counted
        return self.recovered.damaged is None and is_scanned_well

    @property
    def problems(self) -> tuple[str, ...]:
        counted = [segment.index_problem for segment in self.scan.counted]
        found = [self.recovered.damaged, *counted, self.scan.problem]
        return tuple(problem for problem in found if problem is not None)

    @property
    def lost_records(self) -> int:
        """As far as it is known."""
        return max(self.known_offset - self.end.offset, 0)

    @property
    def lost_entries(self) -> int:
        return max(self.known_end.index - self.end.index, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """How a group goes on: behind the start, `entries`, which begin behind `examined.scan.end`."""

    examined: Examined
    title: str
    entries: Sequence[Entry]
    hard: HardState
    # The start state at `examined.scan.end`. It may read the entries of the segments from an index on.
    start_of: Callable[[Callable[[int], Iterator[Entry]]], StartState]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    entries: Sequence[tuple[int, Entry]] = ()
    hard_states: Mapping[int, HardState] = field(default_factory=dict)


def examine(
    files: Files,
    folder: str,
    recovered: Recovered,
    *,
    salt: bytes,
    groups: Collection[int],
    alone: Collection[int],
    on_read: Callable[[int], None],
) -> list[Examined]:
    """Read all of some groups. `alone` are those that never had another voter: in their log no entry was ever
    replaced."""
    scans = {
        group: scan_log(
            files, group_folder(folder, group), recovered.groups[group].checkpoint, on_read=on_read
        )
        for group in sorted(groups)
    }
    tails = WalTails(
        {group: _stands_at(scan, recovered.groups[group].checkpoint) for group, scan in scans.items()}
    )
    checkpoints = [group.checkpoint for group in recovered.groups.values() if group.checkpoint is not None]
    tails.durable_sequence = max((one.reset_sequence for one in checkpoints), default=0)
    WalReader(files, f"{folder}/{WAL_FOLDER}", salt=salt, tails=tails).read()
    return [
        _examined(recovered, group, scan, tails.groups[group], is_alone=group in alone)
        for group, scan in scans.items()
    ]


def rewrite(
    files: Files,
    folder: str,
    recovered: Recovered,
    rewrites: Sequence[Rewrite],
    *,
    salt: bytes,
    orphans: Collection[int],
) -> None:
    """Carry it out. `orphans` are groups that belong to nobody any more: their files are put aside."""
    wal = WalWriter.open(
        files,
        f"{folder}/{WAL_FOLDER}",
        salt=salt,
        start=recovered.wal,
        first_file_bytes=_WAL_FILE_BYTES,
        file_bytes_max=_WAL_FILE_BYTES,
    )
    try:
        for one in rewrites:
            group = one.examined.group
            wal.mark(group, recovered.wal.marks.get(group, Mark.NONE) | Mark.DAMAGED)
        wal.write(_Flush())
        for one in rewrites:
            _rewrite_group(files, group_folder(folder, one.examined.group), wal, one)
        for group in sorted(orphans):
            _put_aside(files, folder, group)
            wal.forget(group)
        for one in rewrites:
            wal.mark(one.examined.group, Mark.NONE)
        wal.write(_Flush())
    finally:
        wal.close()


# -- examining


def _stands_at(scan: LogScan, checkpoint: Checkpoint | None) -> CheckpointedAt:
    if checkpoint is not None:
        reset_sequence = checkpoint.reset_sequence
    else:
        reset_sequence = _ALL_RESETS if scan.segments else 0
    return CheckpointedAt(index=scan.end.index, term=scan.end.term, reset_sequence=reset_sequence)


def _examined(
    recovered: Recovered, group: int, scan: LogScan, tail: GroupTail, *, is_alone: bool
) -> Examined:
    before = recovered.groups[group]
    every_entry = [*before.tail, *tail.longest(), *([tail.beyond] if tail.beyond is not None else [])]
    last = recovered.wal.last.get(group, LastEntry(0, 0))
    known = max(
        (last.index, last.term),
        (before.start.index, before.start.term),
        (scan.end.index, scan.end.term),
        *((entry.index, entry.term) for entry in every_entry),
    )
    terms = (before.hard.term, scan.end.term, before.start.term, last.term, known[1])
    offsets = (before.start.offset, scan.end.offset, *(entry.next_offset for entry in every_entry))
    return Examined(
        group=group,
        recovered=before,
        scan=scan,
        tail=tuple(_fitting(tail.longest() if is_alone else tail.tail, scan.end)),
        newest_term=max(*terms, *(entry.term for entry in every_entry)),
        known_end=LastEntry(*known),
        known_offset=max(offsets),
    )


def _fitting(tail: Sequence[Entry], end: Position) -> Iterator[Entry]:
    """As much of the tail as goes on from there."""
    index, term, offset = end.index, end.term, end.offset
    for entry in tail:
        if (entry.index, entry.base_offset) != (index + 1, offset) or entry.term < term:
            return
        yield entry
        index, term, offset = entry.index, entry.term, entry.next_offset


# -- rewriting


def _rewrite_group(files: Files, folder: str, wal: WalWriter, one: Rewrite) -> None:
    group, scan = one.examined.group, one.examined.scan
    files.make_folder(folder)
    for segment in scan.counted:
        _write_index(files, folder, segment)
    for segment in scan.segments:
        if segment.view != segment.expected.promised:
            _sync(files, [path for path, size in paths(folder, segment.view).items() if size])
    files.sync_folder(folder)
    start = one.start_of(lambda first_index: _entries(files, folder, scan, first_index))
    assert (start.index, start.offset) == (scan.end.index, scan.end.offset), (start, scan.end)
    mark = Entry(start.index, start.term, EntryKind.START, start.offset, 0, b"")
    place = wal.write(
        _Flush(entries=[(group, entry) for entry in (mark, *one.entries)], hard_states={group: one.hard})
    )
    write_checkpoint(
        files,
        folder,
        Checkpoint(
            group=group,
            start=start,
            log_start=scan.log_start,
            segments=scan.views,
            reset_sequence=place.sequence,
            title=one.title,
        ),
    )


def _write_index(files: Files, folder: str, segment: Scanned) -> None:
    """The segment's index as the scan found that it should be, in place of the one that is lost."""
    path = index_path(folder, segment.view)
    file = files.open(f"{path}.new", create=True)
    rows: list[bytes] = []
    written_bytes = 0

    def write() -> None:
        nonlocal written_bytes
        file.write_at(rows, written_bytes)
        written_bytes += sum(map(len, rows))
        rows.clear()

    def take(row: bytes) -> None:
        rows.append(row)
        if len(rows) * len(row) >= _WRITE_BYTES:
            write()

    try:
        file.truncate(0)
        again = SegmentScan(
            files, folder, segment.expected, segment.before, on_row=take, on_read=lambda _: None
        ).run()
        assert again == segment, (again, segment)
        if rows:
            write()
        file.sync()
    finally:
        file.close()
    files.replace(f"{path}.new", path)


def _sync(files: Files, unsynced: Sequence[str]) -> None:
    for path in unsynced:
        file = files.open(path, create=False)
        try:
            file.sync()
        finally:
            file.close()


def _entries(files: Files, folder: str, scan: LogScan, first_index: int) -> Iterator[Entry]:
    """What the segments hold from an index on, up to the end of the scan."""
    opened = OpenFiles(files, count_max=4)
    reader = SegmentReader(opened, folder, Published(LogState(1, scan.log_start, scan.views)))
    try:
        while entries := reader.read_entries(first_index, _WRITE_BYTES):
            yield from entries
            first_index = entries[-1].index + 1
    finally:
        opened.close()


def _put_aside(files: Files, folder: str, group: int) -> None:
    """Nothing is deleted because something else is missing."""
    names = files.names(group_folder(folder, group))
    if not names:
        return
    target = f"{folder}/{ORPHANS_FOLDER}/{group}"
    files.make_folder(target)
    for name in names:
        files.replace(f"{group_folder(folder, group)}/{name}", f"{target}/{name}")
    files.remove(group_folder(folder, group))
