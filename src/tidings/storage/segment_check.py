"""The check of a group's segments at start: are they as long as the checkpoint says, and do they end where
it says?

The one rule: quick. Sizes of all files, the last rows of the newest segment; the rest is checked when it is
read.
Tests: tests/storage/test_damage.py
"""

from __future__ import annotations

from tidings.storage.checkpoint import Checkpoint, SegmentView
from tidings.storage.errors import Damaged
from tidings.storage.files import Files, read_file
from tidings.storage.log_state import index_path, paths
from tidings.storage.rows import ROW_BYTES, Row, decode_row

_ROWS_CHECKED_MAX = 64


def check_segments(files: Files, folder: str, checkpoint: Checkpoint) -> None:
    """Raises Damaged with what is missing or wrong."""
    next_index, next_offset = checkpoint.log_start.index + 1, checkpoint.log_start.offset
    for segment in checkpoint.segments:
        if (segment.first_index, segment.base_offset) != (next_index, next_offset):
            raise Damaged("the checkpoint's segments have a hole", folder=folder, segment=segment.stem)
        next_index, next_offset = segment.next_index, segment.next_offset
        for path, size in paths(folder, segment).items():
            if size and _size(files, path) < size:
                raise Damaged("a file is missing or cut short", path=path, expected_bytes=size)
    if checkpoint.segments:
        newest = checkpoint.segments[-1]
        rows = _last_rows(files, folder, newest)
        at = (checkpoint.start.index, checkpoint.start.term, checkpoint.start.offset)
        end = (rows[-1].index, rows[-1].term, rows[-1].next_offset)
        if end != at:
            raise Damaged("the newest segment ends elsewhere", folder=folder, expected=at, found=end)


def _size(files: Files, path: str) -> int:
    try:
        file = files.open(path, create=False)
    except FileNotFoundError:
        return 0
    try:
        return file.size()
    finally:
        file.close()


def _last_rows(files: Files, folder: str, segment: SegmentView) -> list[Row]:
    path = index_path(folder, segment)
    count = min(segment.row_count, _ROWS_CHECKED_MAX)
    first = segment.row_count - count
    try:
        content = read_file(files, path, count * ROW_BYTES, first * ROW_BYTES)
    except OSError as error:
        raise Damaged("a file cannot be read", path=path, error=error) from error
    rows: list[Row] = []
    for number in range(count):
        row = decode_row(content, number * ROW_BYTES)
        if row.index != segment.first_index + first + number:
            raise Damaged("a row has another index", path=path, row=first + number, index=row.index)
        rows.append(row)
    return rows
