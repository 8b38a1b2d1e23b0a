"""Tests of storage/scan_log.py and scan_segment.py: how far a log can be trusted, what is counted anew."""

from __future__ import annotations

import pytest

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import FOLDER, BrokerDisk, membership_entry
from tests.storage.lone_log import GROUP, SEGMENT_BYTES, batch_of, disk_with, log_of, stems, terms_of
from tidings.raft.entries import EntryKind, TermStart
from tidings.storage.checkpoint import CHECKPOINT_NAME, LogStart, read_checkpoint
from tidings.storage.recovery import group_folder
from tidings.storage.rows import ROW_BYTES, decode_rows
from tidings.storage.scan_log import LogScan, scan_log
from tidings.storage.scan_segment import Position, Scanned, SegmentScan

PATH = group_folder(FOLDER, GROUP)
ENTRIES = log_of((1, 5), (3, 5))
WHOLE = Position(index=12, term=3, offset=20)


@pytest.fixture
def files() -> FakeFiles:
    return disk_with(ENTRIES, is_log_cut=True)


def scan(files: FakeFiles, *, has_checkpoint: bool = True) -> LogScan:
    checkpoint = read_checkpoint(files, PATH) if has_checkpoint else None
    return scan_log(files, PATH, checkpoint, on_read=lambda _: None)


def rows_of(files: FakeFiles, segment: Scanned) -> list[bytes]:
    rows: list[bytes] = []
    SegmentScan(
        files, PATH, segment.expected, segment.before, on_row=rows.append, on_read=lambda _: None
    ).run()
    return rows


def test_an_intact_log_is_trusted_to_its_end(files: FakeFiles) -> None:
    found = scan(files)

    assert len(found.segments) > 2
    assert (found.end, found.problem, found.counted) == (WHOLE, None, ())
    assert found.terms == terms_of(ENTRIES)


def test_it_tells_how_much_it_reads(files: FakeFiles) -> None:
    read: list[int] = []

    scan_log(files, PATH, read_checkpoint(files, PATH), on_read=read.append)

    assert sum(read) == sum(len(entry.payload) for entry in ENTRIES)


def test_a_wrong_batch_ends_the_log_before_it(files: FakeFiles) -> None:
    second = stems(files)[1]
    batch_bytes = len(ENTRIES[1].payload)
    files.flip(f"{second}.log", batch_bytes + 70)

    found = scan(files)

    assert len(found.segments) == 2
    cut = found.segments[1]
    assert (cut.view.row_count, cut.view.log_bytes) == (
        2,
        batch_bytes,
    )  # with the term start behind the batch
    assert found.end == cut.end
    assert found.end.offset == cut.expected.base_offset + 2
    assert "is damaged at byte" in str(found.problem)


def test_a_wrong_first_batch_leaves_nothing_of_its_segment(files: FakeFiles) -> None:
    second = stems(files)[1]
    files.flip(f"{second}.log", 70)

    found = scan(files)

    assert len(found.segments) == 1
    assert found.end == found.segments[0].end


def test_a_segment_file_that_is_gone_ends_the_log_before_it(files: FakeFiles) -> None:
    files.lose(f"{stems(files)[1]}.log")

    found = scan(files)

    assert found.end == found.segments[0].end
    assert found.problem is not None


@pytest.mark.parametrize("place", [0, 1, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("how", ["lost", "short", "flipped", "shuffled", "unreadable"])
def test_an_index_that_is_not_to_be_trusted_is_counted_anew(files: FakeFiles, place: int, how: str) -> None:
    path = f"{stems(files)[place]}.index"
    rows = files.content(path)
    match how:
        case "lost":
            files.lose(path)
        case "short":
            files.overwrite(path, rows[: ROW_BYTES + 7])
        case "flipped":
            files.flip(path, ROW_BYTES + 10)
        case "shuffled":
            files.overwrite(path, rows[ROW_BYTES:] + rows[:ROW_BYTES])
        case "unreadable":
            files.unreadable.add(path)

    found = scan(files)

    assert (found.end.index, found.end.offset, found.problem) == (12, 20, None)
    assert [segment.view.row_count for segment in found.segments] == [
        segment.expected.promised.row_count for segment in found.segments if segment.expected.promised
    ]
    (counted,) = found.counted
    made = list(decode_rows(b"".join(rows_of(files, counted))))
    known = list(decode_rows(rows))
    assert [row.index for row in made] == [row.index for row in known]
    assert [(row.position, row.payload_crc) for row in made if row.payload_bytes] == [
        (row.position, row.payload_crc) for row in known if row.payload_bytes
    ]
    made_up = [row for row in made if row.kind == EntryKind.TERM_START]
    assert all(row.record_count == 0 and row.payload_bytes == 0 for row in made_up)


def test_entries_without_records_are_made_up_at_the_end_of_a_counted_segment(files: FakeFiles) -> None:
    files.lose(f"{stems(files)[0]}.index")

    found = scan(files)

    made = list(decode_rows(b"".join(rows_of(files, found.segments[0]))))
    assert [row.kind for row in made] == [*[EntryKind.RECORDS] * 4, EntryKind.TERM_START]
    assert found.terms == terms_of(ENTRIES)


def test_a_damaged_payload_of_an_entry_without_records_costs_no_batch() -> None:
    entries = log_of((1, 2))
    entries.append(membership_entry(4, term=1, offset=4))
    entries.append(batch_of(5, term=1, offset=4))
    files = disk_with(entries, is_log_cut=True)
    files.flip(f"{stems(files)[0]}.control", 5)

    found = scan(files)

    assert (found.end.offset, found.problem) == (5, None)
    assert found.counted[0].counted_from == 3


@pytest.mark.parametrize("position", [16, 30, 80], ids=["format", "header", "records"])
def test_counting_ends_at_a_batch_that_is_wrong_itself(files: FakeFiles, position: int) -> None:
    first = stems(files)[0]
    files.lose(f"{first}.index")
    files.flip(f"{first}.log", len(ENTRIES[1].payload) + position)

    found = scan(files)

    assert found.end.offset == 2
    assert found.problem is not None


@pytest.mark.parametrize("position", [7, 15], ids=["offset", "epoch"])
def test_counting_takes_no_batch_at_another_offset_or_of_another_term(
    files: FakeFiles, position: int
) -> None:
    """Both stand outside the batch's own CRC."""
    first = stems(files)[0]
    files.lose(f"{first}.index")
    files.flip(f"{first}.log", len(ENTRIES[1].payload) + position, mask=0x40)

    assert "no batch" in str(scan(files).problem)


def test_counting_refuses_a_segment_of_other_batches(files: FakeFiles) -> None:
    first = stems(files)[0]
    files.lose(f"{first}.index")
    content = files.content(f"{first}.log")
    batch_bytes = len(ENTRIES[1].payload)
    files.overwrite(f"{first}.log", content[:-batch_bytes])

    found = scan(files)

    assert found.problem is not None
    assert found.end.offset == 6


def test_what_was_written_behind_the_checkpoint_is_taken_as_far_as_it_goes_on() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, is_log_cut=True))
    disk.apply(batch_of(13, term=3, offset=20), batch_of(14, term=3, offset=21), segment_bytes=SEGMENT_BYTES)
    disk.apply(*[batch_of(index, term=3, offset=index + 7) for index in range(15, 20)], segment_bytes=200)
    disk.close()
    files = disk.fake.copy()
    last = stems(files)[-1]
    files.overwrite(f"{last}.log", files.content(f"{last}.log")[:-1])

    found = scan(files)

    assert (found.end.index, found.end.offset, found.problem) == (18, 26, None)


def test_a_log_without_a_checkpoint_is_told_by_its_files(files: FakeFiles) -> None:
    files.lose(f"{PATH}/{CHECKPOINT_NAME}")

    found = scan(files, has_checkpoint=False)

    assert (found.end, found.problem) == (WHOLE, None)
    assert found.log_start == LogStart(index=0, term=0, offset=0)
    assert found.terms == terms_of(ENTRIES)


def test_a_log_without_a_checkpoint_may_begin_later(files: FakeFiles) -> None:
    for name in ("log", "index"):
        files.lose(f"{stems(files)[0]}.{name}")

    found = scan(files, has_checkpoint=False)

    assert found.log_start == LogStart(index=5, term=1, offset=8)
    assert found.terms[0] == TermStart(term=1, index=5, offset=8)
    assert found.end == WHOLE


def test_a_log_without_a_checkpoint_and_without_an_index_is_counted(files: FakeFiles) -> None:
    for path in stems(files):
        files.lose(f"{path}.index")

    found = scan(files, has_checkpoint=False)

    assert (found.end.offset, found.problem) == (20, None)
    assert len(found.counted) == len(found.segments)


def test_a_hole_between_segments_ends_the_log(files: FakeFiles) -> None:
    for name in ("log", "index"):
        files.lose(f"{stems(files)[1]}.{name}")

    found = scan(files, has_checkpoint=False)

    assert found.end.offset == 8
    assert "no segment that begins at offset 8" in str(found.problem)


def test_a_folder_without_anything_is_an_empty_log() -> None:
    found = scan_log(FakeFiles(), PATH, None, on_read=lambda _: None)

    assert (found.end, found.segments, found.terms) == (Position(index=0, term=0, offset=0), (), ())
