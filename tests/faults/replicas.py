"""Replicas: what the folders of brokers that have ended hold, entry by entry, and where two of them disagree.

The one rule: files are read as a start would read them, and nothing is changed. Must not know: clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import google_crc32c

from tidings.broker.cluster import METADATA_GROUP
from tidings.raft.entries import Entry
from tidings.storage.files import OsFiles
from tidings.storage.identity import read_identity
from tidings.storage.log_state import LogState, Published
from tidings.storage.open_files import OpenFiles
from tidings.storage.recovery import RecoveredGroup, group_folder, recover
from tidings.storage.segment_reader import SegmentReader
from tidings.storage.verify import verify

_READ_BYTES: Final = 1024 * 1024
_OPEN_FILES: Final = 16

Row = tuple[int, int, int, int]
"""Of an entry: term, kind, base offset, CRC of the payload."""


@dataclass(frozen=True, slots=True)
class Log:
    """One group of one broker: entries by index, and up to which index they are in segments, so committed."""

    rows: Mapping[int, Row]
    committed_index: int


def logs_in(folder: Path) -> dict[int, Log]:
    """All partitions' logs of a broker that has ended."""
    recovered = recover(OsFiles(), str(folder), salt=_salt(folder))
    return {
        number: _log(str(folder), group)
        for number, group in recovered.groups.items()
        if number != METADATA_GROUP and group.damaged is None
    }


def damage_in(folder: Path) -> list[str]:
    """What is not as it was written, every byte of every segment read."""
    return [str(finding) for finding in verify(OsFiles(), str(folder), salt=_salt(folder))]


def disagreements(folders: Mapping[int, Path]) -> list[str]:
    """Where the brokers' logs contradict each other. Tails that nobody committed may differ, up to where two
    logs have an entry of one term at one index: everything before that is the same (Raft 5.3)."""
    logs = {broker_id: logs_in(folder) for broker_id, folder in folders.items()}
    found: list[str] = []
    for one, other in combinations(sorted(logs), 2):
        for group in sorted(logs[one].keys() & logs[other].keys()):
            for problem in _compare(logs[one][group], logs[other][group]):
                found.append(f"group {group}, brokers {one} and {other}: {problem}")
    return found


def _compare(one: Log, other: Log) -> Iterator[str]:
    both = one.rows.keys() & other.rows.keys()
    matching = (index for index in both if one.rows[index][0] == other.rows[index][0])
    agreed_index = max(max(matching, default=0), min(one.committed_index, other.committed_index))
    for index in sorted(both):
        if index <= agreed_index and one.rows[index] != other.rows[index]:
            yield f"index {index} is {one.rows[index]} and {other.rows[index]}"


def _salt(folder: Path) -> bytes:
    identity = read_identity(OsFiles(), str(folder))
    assert identity is not None, folder
    return identity.salt


def _log(folder: str, group: RecoveredGroup) -> Log:
    rows = {entry.index: _row(entry) for entry in _in_segments(folder, group)}
    committed_index = max(rows, default=0)
    rows.update((entry.index, _row(entry)) for entry in group.tail)
    return Log(rows=rows, committed_index=committed_index)


def _in_segments(folder: str, group: RecoveredGroup) -> Iterator[Entry]:
    checkpoint = group.checkpoint
    if checkpoint is None:
        return
    state = LogState(0, checkpoint.log_start, checkpoint.segments)
    files = OpenFiles(OsFiles(), count_max=_OPEN_FILES)
    reader = SegmentReader(files, group_folder(folder, group.group), Published(state))
    try:
        next_index = checkpoint.log_start.index + 1
        while entries := reader.read_entries(next_index, _READ_BYTES):
            yield from entries
            next_index = entries[-1].index + 1
    finally:
        files.abandon()


def _row(entry: Entry) -> Row:
    return (entry.term, entry.kind, entry.base_offset, google_crc32c.value(entry.payload))
