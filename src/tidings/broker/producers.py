"""Producers: what makes a retried batch harmless (KIP-98): the last batches that each producer wrote.

Two layers. What is *committed* is folded in by every replica, so whoever leads next knows it; what is
*appended* and not yet committed lies over it, on the leader only, because those entries may still be replaced
by another leader's.

The one rule: an answer never depends on anything that another replica could not have worked out from the same
log. Only expiry looks at a clock, and forgetting a producer makes its next sequence acceptable, whatever it
is.
It must not know offsets' meaning, logs, or who waits for an answer (partition.py).
Tests: tests/broker/test_producers.py, tests/broker/test_producers_codec.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tidings.protocol.errors import ErrorCode
from tidings.protocol.records import SEQUENCE_COUNT, BatchHeader

BATCHES_REMEMBERED = 5  # as many as an idempotent producer may have in flight
# A partition's table is copied into every checkpoint and start state, so it has a bound: 140 bytes per
# producer.
PRODUCERS_MAX = 10_000


class SequenceRefused(Exception):
    """A batch that does not follow on from what its producer wrote before."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class WrittenBatch:
    """One batch of a producer. Never changed after it was made (not frozen: made once per batch, on the hot
    path)."""

    epoch: int
    base_sequence: int
    last_sequence: int
    last_offset: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - (self.last_sequence - self.base_sequence) % SEQUENCE_COUNT


@dataclass(slots=True)
class Producer:
    """What is committed of one producer: its newest batches, all of its newest epoch. `row` is their
    encoding, kept by the codec until the next batch."""

    batches: deque[WrittenBatch]
    appended_ms: int
    row: bytes | None = None


class ProducerTable:
    """All producers of one partition."""

    def __init__(self, *, expiration_ms: int) -> None:
        self.expiration_ms = expiration_ms
        self._committed: dict[
            int, Producer
        ] = {}  # in the order of the last append, so the oldest is found first
        self._appended: dict[int, deque[WrittenBatch]] = {}

    def __len__(self) -> int:
        return len(self._committed)

    def knows(self, producer_id: int) -> bool:
        """Whether anything of the producer is remembered; else its next sequence may be any."""
        return producer_id in self._committed or producer_id in self._appended

    def producers(self) -> Iterator[tuple[int, Producer]]:
        """The committed ones, in the order in which they wrote last."""
        return iter(self._committed.items())

    def check(self, header: BatchHeader) -> WrittenBatch | None:
        """None: the batch is the producer's next. A WrittenBatch: it was appended before, and this is what
        became of it. SequenceRefused: it is neither."""
        appended = self._appended.get(header.producer_id)
        known = self._committed.get(header.producer_id)
        if appended:
            last = appended[-1]
        elif known is not None:
            last = known.batches[-1]
        else:
            return None
        if header.producer_epoch != last.epoch:
            _check_new_epoch(header, last)
            return None
        if header.base_sequence == (last.last_sequence + 1) % SEQUENCE_COUNT:
            return None
        written = chain(appended or (), known.batches if known is not None else ())
        return _find_duplicate(header, last, written)

    def appended(self, header: BatchHeader, last_offset: int, timestamp: int) -> None:
        """Leader: the batch is in the log now, though not committed; `timestamp` is its newest as it stands
        there."""
        batch = _written(header, last_offset, timestamp)
        self._appended.setdefault(header.producer_id, deque()).append(batch)

    def committed(self, header: BatchHeader, now_ms: int) -> None:
        """Every replica: fold in a committed batch. One that is known already is skipped, since the state a
        replica starts from may be newer than the first entries that it then sees committed."""
        producer_id = header.producer_id
        last_offset = header.base_offset + header.last_offset_delta
        batch = self._take_appended(producer_id, last_offset)
        if batch is None:
            batch = _written(header, last_offset, header.max_timestamp)
        known = self._committed.pop(producer_id, None)
        if known is None:
            known = Producer(deque(maxlen=BATCHES_REMEMBERED), now_ms)
        elif header.base_offset <= known.batches[-1].last_offset:
            self._committed[producer_id] = known
            return
        elif known.batches[-1].epoch != batch.epoch:
            known.batches.clear()
        known.batches.append(batch)
        known.appended_ms = now_ms
        known.row = None
        self._committed[producer_id] = known
        if len(self._committed) > PRODUCERS_MAX:
            del self._committed[next(iter(self._committed))]

    def first_appended(self) -> Iterator[tuple[int, WrittenBatch]]:
        """Of each producer the oldest batch that is appended and not committed."""
        return ((producer_id, batches[0]) for producer_id, batches in self._appended.items())

    def forget_appended(self) -> None:
        """What is not committed may be replaced now: leadership was lost, or is about to be taken anew."""
        self._appended.clear()

    def expire(self, now_ms: int) -> None:
        """Forget who has written nothing for the expiration time and has nothing under way."""
        too_old = now_ms - self.expiration_ms
        expired = []
        for producer_id, producer in self._committed.items():
            if producer.appended_ms > too_old:
                break
            if producer_id not in self._appended:
                expired.append(producer_id)
        for producer_id in expired:
            del self._committed[producer_id]

    def put(self, producer_id: int, producer: Producer) -> None:
        """Put back a producer of a saved table; in the order in which they wrote last."""
        self._committed[producer_id] = producer

    def _take_appended(self, producer_id: int, last_offset: int) -> WrittenBatch | None:
        appended = self._appended.get(producer_id)
        if not appended or appended[0].last_offset != last_offset:
            return None
        batch = appended.popleft()
        if not appended:
            del self._appended[producer_id]
        return batch


def _written(header: BatchHeader, last_offset: int, timestamp: int) -> WrittenBatch:
    return WrittenBatch(
        header.producer_epoch,
        header.base_sequence,
        (header.base_sequence + header.last_offset_delta) % SEQUENCE_COUNT,
        last_offset,
        timestamp,
    )


def _check_new_epoch(header: BatchHeader, last: WrittenBatch) -> None:
    """A producer with a new epoch starts its sequences anew; one with an old epoch has been replaced."""
    if header.producer_epoch < last.epoch:
        text = f"producer {header.producer_id} sent epoch {header.producer_epoch}, its newest is {last.epoch}"
        raise SequenceRefused(ErrorCode.INVALID_PRODUCER_EPOCH, text)
    if header.base_sequence != 0:
        text = (
            f"producer {header.producer_id} starts epoch {header.producer_epoch} with {header.base_sequence}"
        )
        raise SequenceRefused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)


def _find_duplicate(header: BatchHeader, last: WrittenBatch, written: Iterator[WrittenBatch]) -> WrittenBatch:
    last_sequence = header.last_sequence
    for batch in written:
        if (
            batch.base_sequence == header.base_sequence
            and batch.last_sequence == last_sequence
            and batch.epoch == header.producer_epoch
        ):
            return batch
    text = f"producer {header.producer_id} sent sequence {header.base_sequence} after {last.last_sequence}"
    raise SequenceRefused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
