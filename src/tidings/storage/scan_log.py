"""Scanning one group's segments: how far its log can be trusted, whatever the checkpoint says.

The one rule: it only reads. What the checkpoint promises must be there; what lies behind it, written and not
yet checkpointed, is taken as far as it goes on; what stands behind the first wrong batch counts for nothing.
It must not know the write-ahead log. Tests: tests/storage/test_scan_log.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from tidings.raft.entries import TermStart
from tidings.storage.checkpoint import Checkpoint, LogStart, SegmentView
from tidings.storage.files import Files
from tidings.storage.log_state import is_segment_file
from tidings.storage.scan_segment import Expected, Position, Scanned, SegmentScan

_NOTHING = LogStart(index=0, term=0, offset=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScan:
    """A log as far as it can be trusted."""

    log_start: LogStart
    segments: tuple[Scanned, ...]
    end: Position
    terms: tuple[TermStart, ...]  # the epoch table up to the end
    problem: str | None  # why it does not go on, though it should

    @property
    def views(self) -> tuple[SegmentView, ...]:
        return tuple(segment.view for segment in self.segments)

    @property
    def counted(self) -> tuple[Scanned, ...]:
        """The segments whose index is to be written anew."""
        return tuple(segment for segment in self.segments if segment.counted_from is not None)


def scan_log(
    files: Files, folder: str, checkpoint: Checkpoint | None, *, on_read: Callable[[int], None]
) -> LogScan:
    """Read all of a group's segments. Without a checkpoint the names of the files say where they begin."""
    found = _expected(files, folder, checkpoint)
    if checkpoint is not None:
        log_start = checkpoint.log_start
    elif found:
        log_start = LogStart(index=found[0].first_index - 1, term=0, offset=found[0].base_offset)
    else:
        log_start = _NOTHING
    end = Position(index=log_start.index, term=log_start.term, offset=log_start.offset)
    segments: list[Scanned] = []
    problem: str | None = None
    for expected in found:
        if (expected.first_index, expected.base_offset) != (end.index + 1, end.offset):
            if expected.promised is not None or not expected.is_checkpointed:
                problem = f"{folder} has no segment that begins at offset {end.offset}"
            break
        scan = SegmentScan(files, folder, expected, end, on_row=_ignore, on_read=on_read).run()
        if scan.view.row_count:
            segments.append(scan)
        end, problem = scan.end, scan.problem
        if problem is not None:
            break
    if checkpoint is None:
        log_start = _with_term(log_start, segments)
    return LogScan(
        log_start=log_start,
        segments=tuple(segments),
        end=Position(index=end.index, term=end.term or log_start.term, offset=end.offset),
        terms=_terms(log_start, checkpoint, segments),
        problem=problem,
    )


def _expected(files: Files, folder: str, checkpoint: Checkpoint | None) -> list[Expected]:
    """The segments in order: those of the checkpoint, and those that were begun since."""
    promised = {} if checkpoint is None else {segment.first_index: segment for segment in checkpoint.segments}
    beginnings = {segment.first_index: segment.base_offset for segment in promised.values()}
    behind = 0 if checkpoint is None else checkpoint.start.index
    for name in filter(is_segment_file, files.names(folder)):
        base_offset, _, first_index = name.rpartition(".")[0].partition("-")
        if int(first_index) > behind:
            beginnings[int(first_index)] = int(base_offset)
    ordered = sorted(beginnings.items())
    next_indexes = [index for _, (index, _) in pairwise(ordered)]
    return [
        Expected(
            first_index=first_index,
            base_offset=base_offset,
            promised=promised.get(first_index),
            next_index=next_indexes[place] if place < len(next_indexes) else None,
            is_checkpointed=checkpoint is not None,
        )
        for place, (first_index, base_offset) in enumerate(ordered)
    ]


def _with_term(log_start: LogStart, segments: list[Scanned]) -> LogStart:
    """The term of the entry before the first one is not known; that of the first one serves, since nobody
    else has the log."""
    if not log_start.index or not segments:
        return log_start
    return LogStart(index=log_start.index, term=segments[0].terms[0].term, offset=log_start.offset)


def _terms(
    log_start: LogStart, checkpoint: Checkpoint | None, segments: list[Scanned]
) -> tuple[TermStart, ...]:
    """The epoch table as the rows tell it. Of the term in which the log starts, the checkpoint knows more."""
    known = () if checkpoint is None else checkpoint.start.terms
    terms = [term for term in known if term.index <= log_start.index]
    if log_start.index and not terms:
        terms = [TermStart(term=log_start.term, index=log_start.index, offset=log_start.offset)]
    for segment in segments:
        terms += [term for term in segment.terms if not terms or term.term > terms[-1].term]
    return tuple(terms)


def _ignore(_row: bytes) -> None:
    """Nobody wants the rows."""
