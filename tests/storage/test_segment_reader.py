"""Reading segments: by offset, by index, by time, while they are written, rolled, dropped and replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.broker_disk import (
    FOLDER,
    NEVER_FULL,
    BrokerDisk,
    membership_entry,
    records,
    start_at,
    start_mark,
    term_start,
)
from tidings.raft.entries import Entry, EntryKind
from tidings.storage.errors import Damaged, Gone
from tidings.storage.open_files import OpenFiles
from tidings.storage.recovery import group_folder
from tidings.storage.segments import SegmentStore

GROUP = group_folder(FOLDER, 1)
LOG = f"{GROUP}/{0:020d}-1.log"
INDEX = f"{GROUP}/{0:020d}-1.index"


class WatchedFiles(OpenFiles):
    """Counts reads; something may happen just before one of them."""

    count = 0
    interruption: Callable[[], object] | None = None

    def read(self, path: str, length: int, position: int) -> bytes:
        self.count += 1
        if self.interruption is not None:
            happen, self.interruption = self.interruption, None
            happen()
        return super().read(path, length, position)


class WatchedDisk(BrokerDisk):
    """A broker's disk whose reader thread is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.read_files = WatchedFiles(self.files, count_max=8)
        self.shared = replace(self.shared, read=self.read_files)


def store_with(entries: list[Entry], *, segment_bytes: int = NEVER_FULL) -> tuple[WatchedDisk, SegmentStore]:
    disk = WatchedDisk()
    store = disk.create(1)
    disk.apply(*entries, segment_bytes=segment_bytes)
    return disk, store


def mixed_log(kinds: list[int]) -> list[Entry]:
    """A log of batches (the number says of how many records) and, for 0 and -1, of entries without
    records."""
    entries: list[Entry] = []
    offset = 0
    for index, kind in enumerate(kinds, start=1):
        if kind > 0:
            entries.append(records(index, offset=offset, count=kind, timestamp=1000 + kind * 10))
            offset += kind
        elif kind == 0:
            entries.append(term_start(index, term=1, offset=offset))
        else:
            entries.append(membership_entry(index, term=1, offset=offset))
    return entries


logs = st.lists(st.integers(-1, 4), min_size=1, max_size=150).map(mixed_log)


@settings(deadline=None, max_examples=40)
@given(entries=logs, segment_bytes=st.integers(70, 3000), bytes_max=st.integers(1, 700))
def test_a_reader_that_goes_on_sees_every_batch_once(
    entries: list[Entry], segment_bytes: int, bytes_max: int
) -> None:
    _, store = store_with(entries, segment_bytes=segment_bytes)
    expected = [entry for entry in entries if entry.kind == EntryKind.RECORDS]
    seen: list[bytes] = []

    while len(seen) < len(expected):
        batches = store.read_offset(expected[len(seen)].base_offset, bytes_max, NEVER_FULL)
        assert batches
        assert len(batches) == 1 or sum(map(len, batches)) <= bytes_max
        seen += batches

    assert seen == [entry.payload for entry in expected]


@settings(deadline=None, max_examples=40)
@given(entries=logs, segment_bytes=st.integers(70, 3000))
def test_every_offset_is_found_in_its_batch(entries: list[Entry], segment_bytes: int) -> None:
    _, store = store_with(entries, segment_bytes=segment_bytes)
    for entry in reversed(entries):
        for offset in range(entry.base_offset, entry.next_offset):
            assert store.read_offset(offset, 1, NEVER_FULL) == [entry.payload]


@settings(deadline=None, max_examples=40)
@given(entries=logs, segment_bytes=st.integers(70, 3000), bytes_max=st.integers(1, 2000))
def test_every_index_is_found(entries: list[Entry], segment_bytes: int, bytes_max: int) -> None:
    _, store = store_with(entries, segment_bytes=segment_bytes)
    seen: list[Entry] = []

    while len(seen) < len(entries):
        seen += store.read_entries(len(seen) + 1, bytes_max)

    assert seen == entries


def test_no_batch_beyond_the_limit_offset_is_given() -> None:
    _, store = store_with([records(1, count=5), records(2, offset=5, count=5)])

    assert len(store.read_offset(0, NEVER_FULL, 10)) == 2
    assert len(store.read_offset(0, NEVER_FULL, 9)) == 1
    assert store.read_offset(0, NEVER_FULL, 4) == []
    assert store.read_offset(5, NEVER_FULL, 5) == []


def test_at_the_end_there_is_nothing_yet() -> None:
    _, store = store_with([records(1), term_start(2, term=2, offset=1)])

    assert store.read_offset(1, NEVER_FULL, NEVER_FULL) == []
    assert store.read_entries(3, NEVER_FULL) == []


def test_an_empty_log_has_nothing_yet() -> None:
    store = BrokerDisk().create(1, start_at(7, offset=30))

    assert store.read_offset(30, 1, NEVER_FULL) == []
    assert store.read_entries(8, 1) == []
    assert store.reader.find_time(0, offset_min=0) is None
    assert store.reader.find_newest(offset_min=0) is None


def test_below_the_log_start_all_is_gone() -> None:
    store = BrokerDisk().create(1, start_at(7, offset=30))

    with pytest.raises(Gone):
        store.read_offset(29, 1, NEVER_FULL)
    with pytest.raises(Gone):
        store.read_entries(7, 1)


def test_a_time_is_found_in_the_first_batch_that_reaches_it() -> None:
    times = [10, 30, 20, 40, 40]
    entries = [records(index, timestamp=time) for index, time in enumerate(times, start=1)]
    _, store = store_with(entries, segment_bytes=150)

    found = {time: store.reader.find_time(time, offset_min=0) for time in (0, 10, 11, 30, 31, 41)}

    assert found == {
        0: entries[0].payload,
        10: entries[0].payload,
        11: entries[1].payload,
        30: entries[1].payload,
        31: entries[3].payload,
        41: None,
    }
    assert store.reader.find_time(0, offset_min=2) == entries[2].payload


def test_the_newest_time_is_found_in_the_first_batch_that_has_it() -> None:
    times = [10, 50, 20, 40, 50, 30]
    entries = [records(index, timestamp=time) for index, time in enumerate(times, start=1)]
    _, store = store_with(entries, segment_bytes=150)

    assert store.reader.find_newest(offset_min=0) == entries[1].payload
    assert store.reader.find_newest(offset_min=2) == entries[4].payload
    assert store.reader.find_newest(offset_min=5) == entries[5].payload
    assert store.reader.find_newest(offset_min=6) is None


def test_a_read_that_goes_on_where_the_last_one_ended_looks_for_nothing() -> None:
    disk, store = store_with([records(index) for index in range(1, 1000)])
    store.read_offset(500, 1, NEVER_FULL)
    disk.read_files.count = 0

    store.read_offset(501, 1, NEVER_FULL)

    assert disk.read_files.count == 2


@pytest.mark.parametrize("path", [LOG, INDEX])
def test_a_flipped_bit_is_never_handed_out(path: str) -> None:
    disk, store = store_with([records(index) for index in range(1, 5)])
    for position in range(len(disk.fake.content(path))):
        disk.fake.flip(path, position)

        results = [_try(store, offset) for offset in range(4)]
        assert None in results
        assert all(result in (None, [records(offset + 1).payload]) for offset, result in enumerate(results))

        disk.fake.flip(path, position)


def _try(store: SegmentStore, offset: int) -> list[bytes] | None:
    try:
        return store.read_offset(offset, 1, NEVER_FULL)
    except Damaged:
        return None


@pytest.mark.parametrize("path", [LOG, INDEX])
def test_a_file_that_is_missing_short_or_unreadable_is_damage(path: str) -> None:
    disk, store = store_with([records(1), records(2)])
    content = disk.fake.content(path)

    disk.fake.overwrite(path, content[: len(content) // 2])
    with pytest.raises(Damaged, match="cut short"):
        store.read_offset(1, 1, NEVER_FULL)
    disk.fake.unreadable.add(path)
    with pytest.raises(Damaged, match="cannot be read"):
        store.read_offset(1, 1, NEVER_FULL)
    disk.shared.read.discard(path)
    disk.fake.lose(path)
    with pytest.raises(Damaged, match="cannot be read"):
        store.read_entries(2, 1)


def test_rows_of_another_file_are_damage() -> None:
    disk, store = store_with([records(1), records(2)])
    content = disk.fake.content(INDEX)
    disk.fake.overwrite(INDEX, content[64:] + content[:64])

    with pytest.raises(Damaged, match="another index"):
        store.read_entries(1, NEVER_FULL)


def test_a_segment_dropped_under_a_read_is_gone_not_damaged() -> None:
    disk, store = store_with([records(index) for index in range(1, 8)], segment_bytes=150)
    store.checkpoint(start_at(7), "t")
    disk.read_files.interruption = lambda: store.drop_below(6)

    with pytest.raises(Gone):
        store.read_offset(0, 1, NEVER_FULL)


def test_a_log_replaced_under_a_read_is_gone_not_damaged() -> None:
    disk, store = store_with([records(1), records(2)])
    store.checkpoint(start_at(2), "t")
    sequence = disk.write(start_mark(0, term=0)).sequence

    def replace_log() -> None:
        store.reset(start_at(0), "t", wal_sequence=sequence)
        disk.apply(records(1, term=9, size=90))

    disk.read_files.interruption = replace_log

    with pytest.raises(Gone):
        store.read_entries(2, 1)
