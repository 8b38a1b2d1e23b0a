"""Refusals: batches that a partition would not take just now, until their producers have sent them again.

A producer has up to five batches under way. Where the first of them is refused for a reason that passes (no
leader just now, no room), the next one leaves a gap in the sequences. Told so, a producer takes its messages
for lost: librdkafka gives itself a new epoch and sends again, under new sequences, what it was not told the
fate of; what was in the log already then stands there twice. So what follows a refused batch is refused for
the same reason, until that batch has been taken or has not come for a while.

The one rule: nothing is refused for long because of what is remembered here. It must not know the log, nor
what is appended (producers.py). Tests: tests/broker/test_refusals.py
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.broker.ports import AppendRefused
from tidings.protocol.records import SEQUENCE_COUNT, BatchHeader

UNDER_WAY_MS_MAX = 30_000  # a batch that was refused comes again within milliseconds; a gap that stays is one
PRODUCERS_MAX = 1_000  # per partition; of more, the oldest are told of the gap


@dataclass(frozen=True, slots=True)
class _Refusal:
    epoch: int
    base_sequence: int
    reason: type[AppendRefused]
    at_ms: int


class Refusals:
    """The first batch of each producer that was refused and has not come again."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refusal] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def note(
        self, producer_id: int, epoch: int, base_sequence: int, reason: type[AppendRefused], now_ms: int
    ) -> None:
        """The batch was refused; or was appended, and its producer told that it may not be safe."""
        known = self._by_producer.pop(producer_id, None)
        if known is not None and known.epoch == epoch and not _is_behind(known.base_sequence, base_sequence):
            base_sequence = known.base_sequence
        self._by_producer[producer_id] = _Refusal(epoch, base_sequence, reason, now_ms)
        if len(self._by_producer) > PRODUCERS_MAX:
            del self._by_producer[next(iter(self._by_producer))]

    def reason_for(self, header: BatchHeader, now_ms: int) -> type[AppendRefused] | None:
        """Why a batch that leaves a gap is to be refused; None: for the gap."""
        known = self._by_producer.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch or now_ms - known.at_ms > UNDER_WAY_MS_MAX:
            return None
        return known.reason if _is_behind(header.base_sequence, known.base_sequence) else None

    def taken(self, producer_id: int) -> None:
        """A batch of the producer was appended, or was there: its sequences go on from it."""
        if self._by_producer:
            self._by_producer.pop(producer_id, None)


def _is_behind(sequence: int, other: int) -> bool:
    """Sequences are counted round and round."""
    return 0 < (sequence - other) % SEQUENCE_COUNT < SEQUENCE_COUNT // 2
