"""Reading the write-ahead log at start: one walk along the chain of flushes, oldest file first.

Each flush names its predecessor's header CRC and all are numbered, so the next flush is known before it is
read: it stands behind the last one or opens a later file. Where the walk stops
  - at an END mark: the log ends there, cleanly;
  - at a SEALED mark: the next file was synced, so if its beginning is missing that is damage;
  - at anything else, with no later flush in sight: the last write was torn, or the last flush rotted.
    Nothing tells the two apart, so what was cut may have been promised: every group is doubtful;
  - at anything else, with a later flush in sight: damage. What was lost is unknown, so every group has lost
    its tail and its vote until later records show what they are (wal_tails.py).

The one rule: nothing is changed here, not even repaired; the writer begins a new file behind what was read.
Tests: tests/storage/test_wal_reader.py, tests/storage/test_wal_damage.py
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

import google_crc32c

from tidings.storage.errors import FormatTooNew
from tidings.storage.files import File, Files
from tidings.storage.wal_format import (
    END,
    FILE_HEADER_BYTES,
    FLUSH,
    FLUSH_MAGIC,
    FORMAT_VERSION,
    HEADER_BYTES,
    NEW_CHAIN,
    OPENED,
    SEALED,
    SPARE_PREFIX,
    WAL_SUFFIX,
    FileHeader,
    Header,
    HeldFile,
    Salt,
    decode_file_header,
    decode_header,
)
from tidings.storage.wal_tails import WalTails

_WINDOW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WalSummary:
    """How the walk ended. The groups' part is in the tails."""

    next_file_number: int
    next_sequence: int
    previous_crc: int
    damage: str | None  # the newest damage that no process has judged before
    torn: str | None
    seal_file: int
    seal_position: int


class WalReader:
    """One walk. Everything that is learned of a group goes into `tails`."""

    def __init__(self, files: Files, folder: str, *, salt: bytes, tails: WalTails) -> None:
        self._files = files
        self._folder = folder
        self._salt = Salt(salt)
        self._tails = tails
        self._sequence = 0  # of the flush that comes next; 0: the oldest file will say
        self._previous_crc = 0
        self._highest_sequence = 0
        self._damage: str | None = None
        self._torn: str | None = None  # why the newest file ends without a mark, until a later file goes on
        self._sealed_by = ""  # the file whose seal promises another one
        self._seal_file = 0
        self._seal_position = 0

    def read(self) -> WalSummary:
        names = [
            name
            for name in self._files.names(self._folder)
            if name.endswith(WAL_SUFFIX) and not name.startswith(SPARE_PREFIX)
        ]
        if names:
            # After a kill, names and flushes may have been read that are not durable yet: they are made so
            # before anything rests on them.
            self._files.sync_folder(self._folder)
        for name in names:
            file = self._files.open(f"{self._folder}/{name}", create=False)
            try:
                window = _Window(file)
                self._read_file(name, window)
                if window.is_unreadable:
                    self._note_damage(f"the disk cannot read {name}")
                file.sync()
            finally:
                file.close()
        if self._sealed_by:
            self._note_damage(f"the file after {self._sealed_by} is missing")
        durable = self._tails.durable_sequence
        if self._sequence <= durable and durable:
            self._note_damage(f"the log ends before flush {durable}, which was durable")
        if self._damage is not None:
            self._seal_position = 0
        return WalSummary(
            next_file_number=int(names[-1][: -len(WAL_SUFFIX)]) + 1 if names else 1,
            next_sequence=max(self._sequence, self._highest_sequence + 1, durable + 1),
            previous_crc=self._previous_crc,
            damage=self._damage,
            torn=self._torn,
            seal_file=self._seal_file,
            seal_position=self._seal_position,
        )

    def _read_file(self, name: str, window: _Window) -> None:
        number = int(name[: -len(WAL_SUFFIX)])
        header = decode_file_header(window.take(0, FILE_HEADER_BYTES), self._salt)
        if header is not None and header.version > FORMAT_VERSION:
            raise FormatTooNew(f"{self._folder}/{name}", header.version, FORMAT_VERSION)
        if header is None or header.number != number:
            self._pass_over(name, window)
            return
        self._enter(name, header)
        held = HeldFile(number=number, file_bytes=window.size, last_index={})
        self._tails.begin_file(held, is_opened=bool(header.flags & OPENED))
        self._seal_file = number
        self._walk(name, window, FILE_HEADER_BYTES)

    def _pass_over(self, name: str, window: _Window) -> None:
        """A file without a header of its own. It got its name with an intact one, so that is damage."""
        later = self._find_later_flush(window, 0)
        self._note_damage(f"the header of {name} is damaged")
        self._sealed_by = ""
        if later is not None:
            self._tails.begin_file(HeldFile(number=0, file_bytes=window.size, last_index={}), is_opened=False)
            self._resume(name, window, *later)

    def _enter(self, name: str, header: FileHeader) -> None:
        """Does the file go on where the walk is?"""
        goes_on = (header.first_sequence, header.previous_crc) == (self._sequence, self._previous_crc)
        if header.flags & NEW_CHAIN:
            # An earlier start judged what was damaged before; its verdict is in this file's first flush.
            self._damage = None
        elif self._sequence and not goes_on:
            self._note_damage(f"{name} begins with flush {header.first_sequence} instead of {self._sequence}")
        self._sequence = header.first_sequence
        self._previous_crc = header.previous_crc
        self._torn = None
        self._sealed_by = ""

    def _walk(self, name: str, window: _Window, position: int) -> None:
        while True:
            header = decode_header(window.take(position, HEADER_BYTES), self._salt)
            expected = (self._sequence, self._previous_crc)
            if header is None or (header.sequence, header.previous_crc) != expected:
                break
            self._seal_position = position
            if header.kind == END:
                return
            if header.kind == SEALED:
                self._sealed_by = name
                return
            body = window.take(position + HEADER_BYTES, header.body_bytes)
            if len(body) < header.body_bytes or google_crc32c.value(body) != header.body_crc:
                break
            self._tails.take_flush(header.sequence, body)
            self._step_over(header)
            position += HEADER_BYTES + header.body_bytes
            self._seal_position = position
        later = self._find_later_flush(window, position)
        if later is None:
            self._torn = f"{name} has neither a flush nor an end at byte {position}"
            return
        self._note_damage(f"flush {self._sequence} at byte {position} of {name} is damaged")
        self._resume(name, window, *later)

    def _resume(self, name: str, window: _Window, position: int, header: Header) -> None:
        """Go on behind damage, for what later records can still say."""
        self._sequence = header.sequence
        self._previous_crc = header.previous_crc
        self._walk(name, window, position)

    def _step_over(self, header: Header) -> None:
        self._highest_sequence = max(self._highest_sequence, header.sequence)
        self._sequence = header.sequence + 1
        self._previous_crc = header.crc

    def _find_later_flush(self, window: _Window, position: int) -> tuple[int, Header] | None:
        """The first intact header behind `position` of a flush that came after the one missed here. A flush
        of an older use of the file has a lower number."""
        at = position
        while (at := window.find(FLUSH_MAGIC, at)) >= 0:
            header = decode_header(window.take(at, HEADER_BYTES), self._salt)
            if header is not None and header.kind == FLUSH and header.sequence > self._sequence:
                return at, header
            at += 1
        return None

    def _note_damage(self, reason: str) -> None:
        self._damage = reason
        self._tails.lose_all(reason)


class _Window:
    """A file read in large steps. What the disk cannot read counts as bytes that are no frame."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._start = 0
        self._content = b""
        self.size = file.size()
        self.is_unreadable = False

    def take(self, position: int, length: int) -> bytes:
        """Fewer bytes at the end of the file."""
        at = position - self._start
        if at < 0 or at + length > len(self._content):
            self._start = position
            self._content = self._read(max(min(length, self.size), _WINDOW_BYTES), position)
            at = 0
        return self._content[at : at + length]

    def find(self, wanted: bytes, position: int) -> int:
        """The first position at or behind `position`, -1 if there is none."""
        while position + len(wanted) <= self.size:
            self.take(position, len(wanted))
            at = self._content.find(wanted, position - self._start)
            if at >= 0:
                return self._start + at
            position = max(self._start + len(self._content) - len(wanted), position) + 1
        return -1

    def _read(self, length: int, position: int) -> bytes:
        try:
            return self._file.read_at(length, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self.is_unreadable = True
            return b"\xff" * max(min(length, self.size - position), 0)
