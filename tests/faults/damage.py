"""Damage: what a bad disk does to the files of a broker that is not running.

The one rule: only bytes that were synced are touched, so that whatever is missing later was promised. Must
not know: what should come of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidings.storage.checkpoint import CHECKPOINT_NAME, Checkpoint, SegmentView, read_checkpoint
from tidings.storage.files import OsFiles
from tidings.storage.identity import read_identity
from tidings.storage.log_state import index_path, log_path
from tidings.storage.recovery import GROUPS_FOLDER, WAL_FOLDER
from tidings.storage.rows import ROW_BYTES
from tidings.storage.wal_format import FLUSH_MAGIC, HEADER_BYTES, Salt, decode_header


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one partition at one broker, by its title, TOPIC-PARTITION."""

    data: Path
    folder: Path
    checkpoint: Checkpoint

    @staticmethod
    def of(data: Path, title: str) -> Files:
        for folder in (data / GROUPS_FOLDER).iterdir():
            checkpoint = read_checkpoint(OsFiles(), str(folder))
            if checkpoint is not None and checkpoint.title == title:
                return Files(data, folder, checkpoint)
        raise AssertionError(f"{data} holds no {title}")

    @property
    def oldest(self) -> SegmentView:
        return self.checkpoint.segments[0]

    @property
    def newest(self) -> SegmentView:
        return self.checkpoint.segments[-1]

    def log(self, segment: SegmentView) -> Path:
        return Path(log_path(str(self.folder), segment))

    def index(self, segment: SegmentView) -> Path:
        return Path(index_path(str(self.folder), segment))


def flip(path: Path, position: int) -> None:
    """One bit of one byte."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)
        assert byte, (path, position)
        file.seek(position)
        file.write(bytes([byte[0] ^ 0x10]))


def segment_with_a_flipped_bit(files: Files) -> None:
    flip(files.log(files.oldest), files.oldest.log_bytes // 2)


def index_with_a_flipped_bit(files: Files) -> None:
    flip(files.index(files.oldest), files.oldest.row_count // 2 * ROW_BYTES + ROW_BYTES // 2)


def end_of_index_with_a_flipped_bit(files: Files) -> None:
    flip(files.index(files.newest), files.newest.row_count * ROW_BYTES - ROW_BYTES // 2)


def truncated_index(files: Files) -> None:
    with files.index(files.oldest).open("r+b") as file:
        file.truncate(files.oldest.row_count // 2 * ROW_BYTES)


def deleted_index(files: Files) -> None:
    files.index(files.newest).unlink()


def checkpoint_with_a_flipped_bit(files: Files) -> None:
    path = files.folder / CHECKPOINT_NAME
    flip(path, path.stat().st_size // 2)


def log_with_a_flipped_bit_in_the_middle(files: Files) -> None:
    path, flushes = _newest_log(files.data)
    flip(path, flushes[len(flushes) // 2] + HEADER_BYTES + 1)


def last_flush_with_a_flipped_bit(files: Files) -> None:
    path, flushes = _newest_log(files.data)
    flip(path, flushes[-1] + HEADER_BYTES + 1)


PARTITIONS_FILES: Final[tuple[Callable[[Files], None], ...]] = (
    segment_with_a_flipped_bit,
    index_with_a_flipped_bit,
    end_of_index_with_a_flipped_bit,
    truncated_index,
    deleted_index,
    checkpoint_with_a_flipped_bit,
)


ALL: Final = (*PARTITIONS_FILES, log_with_a_flipped_bit_in_the_middle, last_flush_with_a_flipped_bit)


def _newest_log(data: Path) -> tuple[Path, list[int]]:
    """The write-ahead log's newest file, and where its flushes begin. A file that is used again holds older
    ones behind the last."""
    identity = read_identity(OsFiles(), str(data))
    assert identity is not None, data
    salt = Salt(identity.salt)
    path = max(path for path in (data / WAL_FOLDER).iterdir() if path.name[:1].isdigit())
    content = path.read_bytes()
    sequences: dict[int, int] = {}  # by position
    at = content.find(FLUSH_MAGIC)
    while at >= 0:
        header = decode_header(content[at : at + HEADER_BYTES], salt)
        if header is not None:
            sequences[at] = header.sequence
        at = content.find(FLUSH_MAGIC, at + 1)
    last = max(sequences, key=sequences.__getitem__)
    flushes = [at for at in sequences if at <= last]
    assert len(flushes) > 2, path
    return path, flushes
