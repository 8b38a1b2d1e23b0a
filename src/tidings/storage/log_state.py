"""What is written of a group's segments, published by the thread that writes to the threads that read.

The one rule: a state is never changed, only replaced by the next one in one assignment; what a state speaks
of was written before it was published. Tests: tests/storage/test_segments.py
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.storage.checkpoint import LogStart, SegmentView
from tidings.storage.rows import ROW_BYTES


@dataclass(slots=True)
class LogState:
    """All segments, the last one being the active one. None at all: an empty log behind `start`."""

    generation: int  # counts resets: a reader that finds another one was reading a log that is gone
    start: LogStart
    segments: tuple[SegmentView, ...]

    @property
    def next_index(self) -> int:
        return self.segments[-1].next_index if self.segments else self.start.index + 1

    @property
    def next_offset(self) -> int:
        return self.segments[-1].next_offset if self.segments else self.start.offset

    @property
    def last_term(self) -> int:
        return self.segments[-1].last_term if self.segments else self.start.term


class Published:
    """Where readers find the newest state."""

    __slots__ = ("state",)

    def __init__(self, state: LogState) -> None:
        self.state = state


def log_path(folder: str, segment: SegmentView) -> str:
    """Exactly the batches that clients see, one behind the other."""
    return f"{folder}/{segment.stem}.log"


def index_path(folder: str, segment: SegmentView) -> str:
    """One row per entry."""
    return f"{folder}/{segment.stem}.index"


def control_path(folder: str, segment: SegmentView) -> str:
    """The payloads of entries that clients do not see. Missing while there is none."""
    return f"{folder}/{segment.stem}.control"


def paths(folder: str, segment: SegmentView) -> dict[str, int]:
    """The segment's files, each with the size it must have at least."""
    return {
        log_path(folder, segment): segment.log_bytes,
        index_path(folder, segment): segment.row_count * ROW_BYTES,
        control_path(folder, segment): segment.control_bytes,
    }


def is_segment_file(name: str) -> bool:
    stem, _, suffix = name.rpartition(".")
    base_offset, _, first_index = stem.partition("-")
    return suffix in ("log", "index", "control") and base_offset.isdigit() and first_index.isdigit()
