"""Ledger: the account of one topic's messages: what was sent, what became of it, and what was read.

The one rule: pure bookkeeping; whoever sends and reads tells it, and `findings` says what does not add up. It
must not know clients, brokers or faults. Tests: tests/faults/test_ledger.py

Every value is sent once: "WRITER.PARTITION.NUMBER", numbers counting up per writer and partition. An outcome
is ok (at which offset), failed (the cluster said that it did not take the message) or unknown; what is not
told is unknown. Kinds of findings:
    lost          acknowledged, and a full reading does not find it
    moved         acknowledged at one offset, read at another
    duplicate     at more than one offset
    phantom       never sent, or refused, and yet read
    inconsistent  two values at one offset, in whatever readings
    hole          offsets of a full reading that nobody was given
    disorder      a writer's messages in another order than they were sent
    backwards     a reading whose offsets do not grow
    error         a client was told of an error that it should not see
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise


class Outcome(Enum):
    """What the writer was told."""

    UNKNOWN = "unknown"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that does not add up."""

    kind: str
    partition: int
    detail: str


@dataclass(slots=True)
class _Sent:
    partition: int
    outcome: Outcome = Outcome.UNKNOWN
    offset: int = -1


@dataclass(slots=True)
class _Reading:
    """What one reader saw of one partition, in its order."""

    rows: list[tuple[int, bytes]] = field(default_factory=list)  # (offset, value)
    start_offset: int = 0  # of a full reading: where the log began
    end_offset: int = -1  # of a full reading: the high watermark that it reached


class Ledger:
    """One topic. Any thread may tell it things."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[bytes, _Sent] = {}
        self._readings: dict[tuple[str, int], _Reading] = defaultdict(_Reading)
        self._complaints: list[str] = []

    # -- what writers tell

    def sent(self, writer: str, partition: int, number: int) -> bytes:
        """A message is about to be sent; its value."""
        value = f"{writer}.{partition}.{number}".encode()
        with self._lock:
            assert value not in self._sent, value
            self._sent[value] = _Sent(partition)
        return value

    def acknowledged(self, value: bytes, offset: int) -> None:
        with self._lock:
            sent = self._sent[value]
            sent.outcome, sent.offset = Outcome.OK, offset

    def refused(self, value: bytes) -> None:
        """The cluster, or the client before it sent anything, said that the message was not taken."""
        with self._lock:
            self._sent[value].outcome = Outcome.FAILED

    def complained(self, client: str, error: str) -> None:
        with self._lock:
            self._complaints.append(f"{client}: {error}")

    # -- what readers tell

    def read(self, reader: str, partition: int, offset: int, value: bytes) -> None:
        with self._lock:
            self._readings[reader, partition].rows.append((offset, value))

    def read_all(self, reader: str, partition: int, end_offset: int, *, start_offset: int = 0) -> None:
        """The reader began where the log begins and has come to the end."""
        with self._lock:
            reading = self._readings[reader, partition]
            reading.start_offset, reading.end_offset = start_offset, end_offset

    # -- what comes of it

    def count(self, outcome: Outcome) -> int:
        with self._lock:
            return sum(1 for sent in self._sent.values() if sent.outcome is outcome)

    def end_acknowledged(self, partition: int) -> int:
        """The offset behind the last acknowledged message."""
        with self._lock:
            offsets = [sent.offset for sent in self._sent.values() if sent.partition == partition]
        return max(offsets, default=-1) + 1

    def start_read(self, partition: int) -> int:
        """Where the log began for the latest full reading."""
        with self._lock:
            full = [
                reading.start_offset
                for (_, number), reading in self._readings.items()
                if number == partition and reading.end_offset >= 0
            ]
        return max(full)

    def findings(self) -> list[Finding]:
        """Everything that is wrong. Needs a full reading of every partition."""
        with self._lock:
            values = self._values_by_offset()
            found = [
                *self._lost(),
                *self._moved(values),
                *self._repeated(values),
                *self._phantoms(values),
                *self._holes(),
                *self._disorder(values),
                *self._backwards(),
                *(Finding("error", -1, complaint) for complaint in self._complaints),
            ]
        return sorted(found)

    def _values_by_offset(self) -> dict[tuple[int, int], set[bytes]]:
        """(partition, offset) -> what was read there, by anybody at any time."""
        values: dict[tuple[int, int], set[bytes]] = defaultdict(set)
        for (_, partition), reading in self._readings.items():
            for offset, value in reading.rows:
                values[partition, offset].add(value)
        return values

    def _lost(self) -> Iterator[Finding]:
        """Missing from a full reading that went so far, or behind the end of every one."""
        full: dict[int, list[tuple[str, range, set[bytes]]]] = defaultdict(list)
        for (reader, partition), reading in self._readings.items():
            if reading.end_offset >= 0:
                values = {value for _, value in reading.rows}
                offsets = range(reading.start_offset, reading.end_offset)
                full[partition].append((reader, offsets, values))
        assert full, "nobody has read all"
        for value, sent in self._sent.items():
            if sent.outcome is not Outcome.OK:
                continue
            detail = f"{value.decode()}, acknowledged at {sent.offset}"
            if all(offsets.stop <= sent.offset for _, offsets, _ in full[sent.partition]):
                yield Finding("lost", sent.partition, f"{detail}, behind the end")
            for reader, offsets, values in full[sent.partition]:
                if sent.offset in offsets and value not in values:
                    yield Finding("lost", sent.partition, f"{detail}, unread by {reader}")

    def _moved(self, values: dict[tuple[int, int], set[bytes]]) -> Iterator[Finding]:
        for (partition, offset), found in values.items():
            for value in found:
                sent = self._sent.get(value)
                if sent is not None and sent.outcome is Outcome.OK and sent.offset != offset:
                    detail = f"{value.decode()}, acknowledged at {sent.offset}, read at {offset}"
                    yield Finding("moved", partition, detail)

    def _repeated(self, values: dict[tuple[int, int], set[bytes]]) -> Iterator[Finding]:
        offsets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        for (partition, offset), found in values.items():
            if len(found) > 1:
                yield Finding("inconsistent", partition, f"offset {offset}: {sorted(found)}")
            for value in found:
                offsets[partition, value].append(offset)
        for (partition, value), places in offsets.items():
            if len(places) > 1:
                yield Finding("duplicate", partition, f"{value.decode()} at {sorted(places)}")

    def _phantoms(self, values: dict[tuple[int, int], set[bytes]]) -> Iterator[Finding]:
        for (partition, offset), found in values.items():
            for value in found:
                sent = self._sent.get(value)
                if sent is None or sent.partition != partition:
                    yield Finding("phantom", partition, f"{value!r} at {offset} was never sent")
                elif sent.outcome is Outcome.FAILED:
                    yield Finding("phantom", partition, f"{value.decode()} at {offset} was refused")

    def _holes(self) -> Iterator[Finding]:
        for (reader, partition), reading in self._readings.items():
            if reading.end_offset < 0:
                continue
            offsets = range(reading.start_offset, reading.end_offset)
            missing = set(offsets).difference(offset for offset, _ in reading.rows)
            if missing:
                yield Finding("hole", partition, f"{reader} found nothing at {sorted(missing)[:10]}")

    def _disorder(self, values: dict[tuple[int, int], set[bytes]]) -> Iterator[Finding]:
        numbers: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)  # (offset, number)
        for (partition, offset), found in values.items():
            for value in found & self._sent.keys():
                writer, _, number = value.decode().rsplit(".", 2)
                numbers[partition, writer].append((offset, int(number)))
        for (partition, writer), rows in numbers.items():
            for (_, before), (offset, after) in pairwise(sorted(rows)):
                if after < before:
                    yield Finding("disorder", partition, f"{writer}: {after} behind {before} at {offset}")

    def _backwards(self) -> Iterator[Finding]:
        for (reader, partition), reading in self._readings.items():
            for (before, _), (after, _) in pairwise(reading.rows):
                if after <= before:
                    yield Finding("backwards", partition, f"{reader} was given {after} after {before}")
