"""The write-ahead log's writer: every flush of a broker, all groups together, one write and one sync.

The one rule: when write() returns, the flush is durable; when it raises WalFailed, nothing may ever be
written again, because after a failed sync nobody knows what the disk holds; when it raises WalFull, nothing
was written. Used by one thread at a time; prepare_next() alone may run beside it. It must not know
what an entry means.
Tests: tests/storage/test_wal.py; format: wal_format.py; benchmark: bench/wal.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import google_crc32c

from tidings.raft.entries import Entry, HardState
from tidings.storage.errors import WalFailed
from tidings.storage.files import File, Files
from tidings.storage.wal_format import (
    END,
    FILE_HEADER_BYTES,
    FLUSH,
    FORGOTTEN,
    FORMAT_VERSION,
    HARD_STATE,
    HEADER_BYTES,
    HEADER_REST,
    HEADER_START,
    LAST_TERM,
    MARKS,
    NEW_CHAIN,
    OPENED,
    RECORD,
    SEALED,
    STATE,
    FileHeader,
    HeldFile,
    LastEntry,
    Mark,
    Salt,
    WalStart,
    encode_mark,
    file_name,
    supersede,
)
from tidings.storage.wal_space import WalSpace

_BY_REFERENCE_BYTES_MIN = 4096  # below it a copy is cheaper than another buffer of the system call


class Flush(Protocol):
    """What a flush must have; the consensus room makes it."""

    @property
    def entries(self) -> Sequence[tuple[int, Entry]]: ...

    @property
    def hard_states(self) -> Mapping[int, HardState]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WalPosition:
    """Where a flush ended. `sequence` orders all flushes of the folder, over restarts."""

    file_number: int
    file_bytes: int
    sequence: int


class WalWriter:
    """Appends flushes to numbered files. Each process begins with a file of its own and never writes into
    older ones, but for the mark that seals them."""

    def __init__(self, *, space: WalSpace, files: Files, folder: str, salt: bytes, start: WalStart) -> None:
        self._space = space
        self._files = files
        self._folder = folder
        self._salt = Salt(salt)
        self._flush_seed = self._salt.kinds[FLUSH]
        self._failure: WalFailed | None = None

        self._older = start.older
        self._hard_states = dict(start.hard_states)
        self._marks = dict(start.marks)
        self._unwritten_marks: set[int] = set()
        self._unwritten_forgotten: set[int] = set()
        self._last = dict(start.last)
        self._sequence = start.sequence
        self._previous_crc = start.previous_crc

        self._file: File | None = None
        self._file_number = start.file_number - 1
        self._file_bytes = 0
        self._position = 0
        self._held: dict[int, int] = {}

    @staticmethod
    def open(
        files: Files,
        folder: str,
        *,
        salt: bytes,
        start: WalStart,
        first_file_bytes: int,
        file_bytes_max: int,
    ) -> WalWriter:
        """Go on behind what recovery read, in a new file, durable with all states and marks when this
        returns."""
        space = WalSpace(files, folder, first_file_bytes=first_file_bytes, file_bytes_max=file_bytes_max)
        writer = WalWriter(space=space, files=files, folder=folder, salt=salt, start=start)
        try:
            space.open()
            writer._begin(start)
        except OSError as error:
            raise WalFailed(f"opening the write-ahead log: {error}") from error
        return writer

    @property
    def space_ready(self) -> bool:
        """Whether the next flushes have room that is already on disk. If not: have prepare_next() called
        soon."""
        return self._space.has_spare or self._position * 2 < self._file_bytes

    @property
    def total_bytes(self) -> int:
        """Of all flushes that are not cut."""
        return self._position + sum(file.file_bytes for file in self._older)

    @property
    def current_file(self) -> int:
        return self._file_number

    def prepare_next(self) -> None:
        """Have the next file ready. For a background thread; raises WalFull when there is no room."""
        try:
            self._space.prepare_next()
        except WalFailed as error:
            self._failure = error
            raise

    def write(self, flush: Flush) -> WalPosition:
        """Make one flush durable."""
        if self._failure is not None:
            raise self._failure
        body, body_bytes, body_crc = self._encode(flush)
        if self._position + 2 * HEADER_BYTES + body_bytes > self._file_bytes:
            self._roll(body, body_bytes, body_crc)
        else:
            file = self._file
            assert file is not None
            framed = [self._header(body_bytes, body_crc), *body, self._end_mark()]
            try:
                file.write_durably_at(framed, self._position)
            except OSError as error:
                raise self._fail(error, "writing the write-ahead log") from error
            self._position += HEADER_BYTES + body_bytes
        self._remember(flush)
        return WalPosition(
            file_number=self._file_number, file_bytes=self._position, sequence=self._sequence - 1
        )

    def mark(self, group: int, mark: Mark) -> None:
        """Set what a restart must know of the group; durable with the next flush."""
        if self._marks.get(group, Mark.NONE) != mark:
            self._marks[group] = mark
            self._unwritten_marks.add(group)

    def forget(self, group: int) -> None:
        """The group was removed from this broker: nothing of it is needed any more. Durable with the next
        flush."""
        self._unwritten_forgotten.add(group)
        for states in (self._hard_states, self._marks, self._last, self._held):
            states.pop(group, None)
        self._unwritten_marks.discard(group)
        for file in self._older:
            file.last_index.pop(group, None)

    def oldest_file_needed(self, checkpointed: Mapping[int, int]) -> int:
        """The first file that holds an entry beyond its group's checkpoint: what is below it may be cut."""
        for file in self._older:
            for group, index in file.last_index.items():
                if index > checkpointed.get(group, 0):
                    return file.number
        return self._file_number

    def groups_holding(self, below_file: int, checkpointed: Mapping[int, int]) -> dict[int, int]:
        """The groups that keep files below `below_file` from being cut, each with the index its checkpoint
        must reach. A group that has not committed so far has its whole remaining tail written again
        instead."""
        holding: dict[int, int] = {}
        for file in self._older:
            if file.number >= below_file:
                break
            for group, index in file.last_index.items():
                if index > max(checkpointed.get(group, 0), holding.get(group, 0)):
                    holding[group] = index
        return holding

    def cut(self, below_file: int) -> None:
        """Drop the files below: everything in them is checkpointed or was written again."""
        if self._failure is not None:
            raise self._failure
        try:
            # One by one and in order: after a crash the rest is a log without a hole.
            while self._older and self._older[0].number < below_file:
                self._space.give_back(file_name(self._older[0].number), self._older[0].file_bytes)
                del self._older[0]
        except OSError as error:
            raise self._fail(error, "cutting the write-ahead log") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, start: WalStart) -> None:
        """Start this process's first file, then seal the one before it."""
        self._start_file([], 0, 0, OPENED | (NEW_CHAIN if start.is_new_chain else 0))
        if start.seal_position:
            last = self._files.open(f"{self._folder}/{file_name(start.seal_file)}", create=False)
            self._seal(last, start.seal_position, start.sequence, start.previous_crc)

    def _encode(self, flush: Flush) -> tuple[list[bytes], int, int]:
        """The body as buffers, its length and its CRC. Small parts are joined, large payloads are not
        copied."""
        pack = RECORD.pack
        small = [pack(group, FORGOTTEN, 0, 0, 0, 0, 0) for group in self._unwritten_forgotten]
        body: list[bytes] = []
        for group, entry in flush.entries:
            payload = entry.payload
            length = len(payload)
            small.append(
                pack(
                    group, entry.kind, entry.record_count, length, entry.index, entry.term, entry.base_offset
                )
            )
            if length < _BY_REFERENCE_BYTES_MIN:
                small.append(payload)
            else:
                body.append(b"".join(small))
                body.append(payload)
                small = []
        for group, state in flush.hard_states.items():
            small.append(pack(group, HARD_STATE, 0, 0, 0, state.term, state.vote))
        for group in self._unwritten_marks:
            small.append(pack(group, MARKS, self._marks[group], 0, 0, 0, 0))
        if small:
            body.append(b"".join(small))
        crc = 0
        body_bytes = 0
        for buffer in body:
            crc = google_crc32c.extend(crc, buffer)
            body_bytes += len(buffer)
        return body, body_bytes, crc

    def _header(self, body_bytes: int, body_crc: int) -> bytes:
        """Takes the next sequence number: what is framed is written, or the log has failed."""
        rest = HEADER_REST.pack(self._sequence, self._previous_crc, body_crc, body_bytes)
        crc: int = google_crc32c.extend(self._flush_seed, rest)
        self._sequence += 1
        self._previous_crc = crc
        return HEADER_START.pack(FLUSH, crc) + rest

    def _end_mark(self) -> bytes:
        return encode_mark(END, self._sequence, self._previous_crc, self._salt)

    def _remember(self, flush: Flush) -> None:
        last = self._last
        held = self._held
        for group, entry in flush.entries:
            index = entry.index
            before = last.get(group)
            if before is None:
                last[group] = LastEntry(index, entry.term)
            else:
                if index <= before.index:
                    supersede(self._older, group, index)
                before.index = index
                before.term = entry.term
            held[group] = index
        if flush.hard_states:
            self._hard_states.update(flush.hard_states)
        if self._unwritten_marks or self._unwritten_forgotten:
            self._unwritten_marks.clear()
            self._unwritten_forgotten.clear()

    def _roll(self, body: list[bytes], body_bytes: int, body_crc: int) -> None:
        """Write this flush as the first of a new file, then seal the old one."""
        old, end, sequence, crc = self._file, self._position, self._sequence, self._previous_crc
        held = HeldFile(number=self._file_number, file_bytes=self._file_bytes, last_index=self._held)
        assert old is not None
        try:
            self._start_file(body, body_bytes, body_crc, 0)
            # Only now: SEALED promises that the next file was synced.
            self._seal(old, end, sequence, crc)
        except WalFailed as error:
            self._failure = error
            raise
        except OSError as error:
            raise self._fail(error, "starting a file of the write-ahead log") from error
        self._older.append(held)
        self._held = {}

    def _start_file(self, body: list[bytes], body_bytes: int, body_crc: int, flags: int) -> None:
        """Header, the state of every group, and the flush if there is one, durable in a new file."""
        states = self._encode_states()
        position = FILE_HEADER_BYTES + HEADER_BYTES + len(states)
        if body:
            position += HEADER_BYTES + body_bytes
        number = self._file_number + 1
        spare = self._space.take(position + HEADER_BYTES)
        if flags & NEW_CHAIN:
            self._previous_crc = 0
        header = FileHeader(
            version=FORMAT_VERSION,
            flags=flags,
            number=number,
            first_sequence=self._sequence,
            previous_crc=self._previous_crc,
        )
        framed = [header.encode(self._salt), self._header(len(states), google_crc32c.value(states)), states]
        if body:
            framed += [self._header(body_bytes, body_crc), *body]
        framed.append(self._end_mark())
        spare.file.write_at(framed, 0)
        spare.file.sync()
        # The name comes last: whatever has a name in the log has an intact beginning, or it is damaged.
        self._space.enlist(spare, file_name(number))
        self._file, self._file_number, self._file_bytes = spare.file, number, spare.size
        self._position = position

    def _encode_states(self) -> bytes:
        parts: list[bytes] = []
        nothing = LastEntry(0, 0)
        no_vote = HardState(term=0, vote=0)
        for group in sorted({*self._hard_states, *self._marks, *self._last}):
            hard = self._hard_states.get(group, no_vote)
            last = self._last.get(group, nothing)
            mark = self._marks.get(group, Mark.NONE)
            parts.append(RECORD.pack(group, STATE, mark, LAST_TERM.size, last.index, hard.term, hard.vote))
            parts.append(LAST_TERM.pack(last.term))
        return b"".join(parts)

    def _seal(self, file: File, position: int, sequence: int, crc: int) -> None:
        file.write_at([encode_mark(SEALED, sequence, crc, self._salt)], position)
        file.sync()
        file.close()

    def _fail(self, error: OSError, doing: str) -> WalFailed:
        self._failure = WalFailed(f"{doing}: {error}")
        return self._failure
