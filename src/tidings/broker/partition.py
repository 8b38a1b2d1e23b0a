"""Partition: what Kafka means by a partition, over the log of one replica of it.

Appending (idempotence, timestamps, the place in the log), who waits for what of it, and what its state is
beside the log.

The one rule: nobody is told that a batch is safe before the log says so: acks=all waits for the high
watermark, acks=1 for this broker's own disk, and whoever waits when leadership goes is told to ask the next
leader.
It must not know requests or messages, nor how logs agree. Tests: tests/broker/test_partition.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tidings.broker.ports import NO_EPOCH, AppendRefused, NotLeader, ReplicaLog, TimerHandle, Timers
from tidings.broker.producers import ProducerTable, SequenceRefused
from tidings.broker.producers_codec import decode_producers, encode_producers
from tidings.broker.refusals import Refusals
from tidings.broker.waiters import NEVER_MS, Waiter, WaiterQueue
from tidings.config.topics import TopicSettings
from tidings.protocol.errors import ErrorCode
from tidings.protocol.records import (
    NO_TIMESTAMP,
    BatchHeader,
    CheckedBatch,
    check_timestamps,
    read_header,
    stamp,
    stamp_append_time,
)

_PRODUCER_ID = struct.Struct(">q")
_PRODUCER_ID_POSITION = 43  # in the header of a record batch
_EXPIRY_CHECK_MS = 60_000  # far below any expiration time, far above what the check costs


class Reader(Protocol):
    """Whoever waits for more to read."""

    def wake(self, now_ms: int) -> None:
        """The high watermark moved, or leadership: look again."""


@dataclass(slots=True)
class Placed:
    """Where a batch stands in the log. Never changed (not frozen: made once per batch, on the hot path)."""

    base_offset: int
    end_offset: int  # behind its last record
    append_time_ms: int  # NO_TIMESTAMP where records keep the producer's time


class Partition:
    """One replica. Node calls became_leader, lost_leadership, committed, advanced and close; handlers the
    rest."""

    __slots__ = (
        "_alarm",
        "_alarm_ms",
        "_commit_waiters",
        "_durable_waiters",
        "_expiry_check_ms",
        "_readers",
        "_refusals",
        "_seen",
        "_start_waiters",
        "_timers",
        "group",
        "index",
        "is_open",
        "log",
        "producers",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: bytes,
        index: int,
        group: int,
        log: ReplicaLog,
        timers: Timers,
        settings: TopicSettings,
        producer_expiration_ms: int,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.group = group
        self.log = log
        self.settings = settings
        self.producers = ProducerTable(expiration_ms=producer_expiration_ms)
        self.is_open = True
        self._timers = timers
        self._refusals = Refusals()
        self._commit_waiters = WaiterQueue()
        self._durable_waiters = WaiterQueue()
        self._start_waiters = WaiterQueue()
        self._readers: dict[Reader, None] = {}
        self._seen = (-1, False)  # high watermark and term_start_committed that readers know of
        self._alarm: TimerHandle | None = None
        self._alarm_ms = NEVER_MS
        self._expiry_check_ms = 0

    # For handlers

    def append(self, batch: CheckedBatch, now_ms: int) -> Placed:
        """The batch's place in the log, or that of the one it repeats. Raises SequenceRefused, BatchError and
        AppendRefused; then nothing was appended."""
        header = batch.header
        if header.producer_id < 0:
            return self._append(batch, now_ms)
        try:
            self._refuse_first_behind_refused(header, now_ms)
            placed = self._append(batch, now_ms)
        except AppendRefused as refused:
            self._refusals.note(
                header.producer_id, header.producer_epoch, header.base_sequence, type(refused), now_ms
            )
            raise
        except SequenceRefused as refused:
            reason = self._refusals.reason_for(header, now_ms)
            if reason is None or refused.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            raise reason from refused
        self._refusals.taken(header.producer_id)
        return placed

    def await_commit(self, waiter: Waiter) -> None:
        """Settle once the high watermark has reached the waiter's offset."""
        self._commit_waiters.add(waiter)
        self._arm(waiter.deadline_ms)

    def await_durable(self, waiter: Waiter) -> None:
        """Settle once this broker's disk holds all before the waiter's offset."""
        self._durable_waiters.add(waiter)
        self._arm(waiter.deadline_ms)

    def await_log_start(self, waiter: Waiter) -> None:
        """Settle once the log starts at the waiter's offset or later."""
        self._start_waiters.add(waiter)
        self._arm(waiter.deadline_ms)

    def check_epoch(self, epoch: int) -> ErrorCode:
        """Whether a client that knows `epoch` and this replica speak of the same leadership (KIP-320)."""
        if epoch == NO_EPOCH or epoch == self.log.leader_epoch:
            return ErrorCode.NONE
        if epoch < self.log.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def park(self, reader: Reader) -> None:
        self._readers[reader] = None

    def unpark(self, reader: Reader) -> None:
        self._readers.pop(reader, None)

    # For node

    def became_leader(self, tail: Iterable[bytes], now_ms: int) -> None:
        """`tail` is what is in the log and not committed: sequences are checked against it too."""
        self.producers.forget_appended()
        for batch in tail:
            header = read_header(batch)
            if header.producer_id >= 0:
                last_offset = header.base_offset + header.last_offset_delta
                self.producers.appended(header, last_offset, header.max_timestamp)
        self._wake_readers(now_ms)

    def lost_leadership(self, now_ms: int) -> None:
        for producer_id, batch in self.producers.first_appended():
            self._refusals.note(producer_id, batch.epoch, batch.base_sequence, NotLeader, now_ms)
        self.producers.forget_appended()
        self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._wake_readers(now_ms)

    def committed(self, base_offset: int, batch: bytes, now_ms: int) -> None:
        """A record batch is committed, leader or not; `advanced` follows when all that are have been told."""
        if _PRODUCER_ID.unpack_from(batch, _PRODUCER_ID_POSITION)[0] >= 0:
            header = read_header(batch)
            assert header.base_offset == base_offset, (header.base_offset, base_offset)
            self.producers.committed(header, now_ms)

    def advanced(self, now_ms: int) -> None:
        """The high watermark, the log start or the durable offset moved."""
        log = self.log
        if self._commit_waiters:
            self._commit_waiters.reach(log.high_watermark)
        if self._durable_waiters:
            self._durable_waiters.reach(log.durable_offset)
        if self._start_waiters:
            self._start_waiters.reach(log.log_start_offset)
        if self._readers and self._seen != (log.high_watermark, log.term_start_committed):
            self._wake_readers(now_ms)
        if now_ms >= self._expiry_check_ms:
            self._expiry_check_ms = now_ms + _EXPIRY_CHECK_MS
            self.producers.expire(now_ms)

    def close(self, now_ms: int) -> None:
        """The replica is gone: its topic was deleted, or its place is elsewhere."""
        self.is_open = False
        self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._wake_readers(now_ms)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def state(self) -> bytes:
        """What the committed entries made of this partition beside the log itself."""
        return encode_producers(self.producers)

    def restore(self, state: bytes) -> None:
        """Go on from a saved state; entries that it holds already may be told as committed again."""
        self.producers = decode_producers(state, expiration_ms=self.producers.expiration_ms)

    # Parts

    def _refuse_first_behind_refused(self, header: BatchHeader, now_ms: int) -> None:
        """Of a producer that is not known any sequence is taken, but not that of its second batch before its
        first."""
        if self._refusals and not self.producers.knows(header.producer_id):
            reason = self._refusals.reason_for(header, now_ms)
            if reason is not None:
                raise reason

    def _append(self, batch: CheckedBatch, now_ms: int) -> Placed:
        header = batch.header
        settings = self.settings
        log = self.log
        if not log.is_leader:
            raise NotLeader
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            known = self.producers.check(header)
            if known is not None:
                time_ms = known.timestamp if settings.is_log_append_time else NO_TIMESTAMP
                return Placed(known.base_offset, known.last_offset + 1, time_ms)
        base_offset = log.end_offset
        if settings.is_log_append_time:
            stamped = stamp_append_time(batch.view, base_offset, log.leader_epoch, now_ms)
            timestamp, time_ms = now_ms, now_ms
        else:
            check_timestamps(
                header, now_ms, settings.timestamp_before_max_ms, settings.timestamp_after_max_ms
            )
            stamped = stamp(batch.view, base_offset, log.leader_epoch)
            timestamp, time_ms = header.max_timestamp, NO_TIMESTAMP
        end_offset = log.append(stamped, header.record_count, now_ms)
        if is_idempotent:
            self.producers.appended(header, end_offset - 1, timestamp)
        return Placed(base_offset, end_offset, time_ms)

    def _fail_waiters(self, code: ErrorCode) -> None:
        self._commit_waiters.fail(code)
        self._durable_waiters.fail(code)
        self._start_waiters.fail(code)

    def _wake_readers(self, now_ms: int) -> None:
        self._seen = (self.log.high_watermark, self.log.term_start_committed)
        for reader in list(self._readers):
            reader.wake(now_ms)

    def _arm(self, deadline_ms: int) -> None:
        """One alarm for all waiters, for the earliest deadline: most have the same time limit, so that it is
        rarely moved and never cancelled when a waiter is done."""
        if deadline_ms < self._alarm_ms:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_ms = deadline_ms
            self._alarm = self._timers.call_at(deadline_ms, self._expire_waiters)

    def _expire_waiters(self, now_ms: int) -> None:
        self._alarm = None
        self._alarm_ms = NEVER_MS
        queues = (self._commit_waiters, self._durable_waiters, self._start_waiters)
        self._arm_again(min(queue.expire(now_ms) for queue in queues))

    def _arm_again(self, deadline_ms: int) -> None:
        if deadline_ms < NEVER_MS:
            self._arm(deadline_ms)
