"""One replica's log in memory, whose commits, syncs and elections a test makes by hand."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.calls import Calls
from tidings.broker.ports import NO_EPOCH, NO_LEADER, NO_OFFSET, TIME_OF_NEWEST, EpochEnd, LogFull
from tidings.protocol.records import read_header


class FakeReplicaLog:
    """Batches in order. `memory_start` is the first offset that `read` still has; older ones are on
    "disk"."""

    def __init__(self, calls: Calls, *, broker_id: int = 1) -> None:
        self._calls = calls
        self._broker_id = broker_id
        self._epochs: dict[int, int] = {}  # first offset by epoch
        self.batches: list[bytes] = []
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = 0
        self.term_start_committed = False
        self.log_start_offset = 0
        self.high_watermark = 0
        self.durable_offset = 0
        self.end_offset = 0
        self.memory_start = 0
        self.refusal: Exception | None = None  # what append raises
        self.is_confirmed = True  # what confirm_leadership answers
        self.is_damaged = False  # the disk's reads fail
        self.asked_log_starts: list[int] = []

    # What a test does to it

    def lead(self, epoch: int) -> None:
        self.is_leader, self.leader_id = True, self._broker_id
        self.leader_epoch, self.term_start_committed = epoch, True
        self._epochs[epoch] = self.end_offset

    def follow(self, leader_id: int, epoch: int) -> None:
        self.is_leader, self.leader_id = False, leader_id
        self.leader_epoch, self.term_start_committed = epoch, False

    def commit(self, offset: int | None = None) -> list[bytes]:
        """Move the high watermark; the batches that it passed."""
        start, self.high_watermark = self.high_watermark, self.end_offset if offset is None else offset
        self.durable_offset = max(self.durable_offset, self.high_watermark)
        return [
            batch for batch in self.batches if start <= read_header(batch).base_offset < self.high_watermark
        ]

    def truncate(self, offset: int) -> None:
        """Another leader has other batches from the offset on."""
        self.batches = [batch for batch in self.batches if read_header(batch).base_offset < offset]
        self.end_offset = offset

    # ReplicaLog

    def append(self, batch: bytes, record_count: int, now_ms: int) -> int:
        if self.refusal is not None:
            raise self.refusal
        header = read_header(batch)
        assert self.is_leader
        assert (header.base_offset, header.leader_epoch) == (self.end_offset, self.leader_epoch), header
        self.batches.append(batch)
        self.end_offset += record_count
        return self.end_offset

    def append_log_start(self, offset: int, now_ms: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked_log_starts.append(offset)

    def read(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes] | None:
        return None if offset < self.memory_start else self._read(offset, bytes_max, offset_max)

    def read_later(
        self, offset: int, bytes_max: int, offset_max: int, then: Callable[[list[bytes] | None], None]
    ) -> None:
        def answer() -> None:
            is_gone = self.is_damaged or offset < self.log_start_offset
            then(None if is_gone else self._read(offset, bytes_max, offset_max))

        self._calls.later(answer)

    def find_batch_by_time(self, timestamp: int, then: Callable[[list[bytes] | None], None]) -> None:
        self._calls.later(lambda: then(None if self.is_damaged else self._find(timestamp)))

    def epoch_end(self, epoch: int) -> EpochEnd:
        known = [candidate for candidate in sorted(self._epochs) if candidate <= epoch]
        if not known:
            return EpochEnd(epoch=NO_EPOCH, end_offset=NO_OFFSET)
        later = [start for candidate, start in sorted(self._epochs.items()) if candidate > epoch]
        return EpochEnd(epoch=known[-1], end_offset=later[0] if later else self.end_offset)

    def confirm_leadership(self, then: Callable[[bool], None], now_ms: int) -> None:
        self._calls.later(lambda: then(self.is_confirmed and self.is_leader))

    # Parts

    def _read(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes]:
        taken: list[bytes] = []
        byte_count = 0
        for batch in self.batches:
            header = read_header(batch)
            if header.next_offset <= offset or header.base_offset >= offset_max:
                continue
            if taken and byte_count + len(batch) > bytes_max:
                break
            taken.append(batch)
            byte_count += len(batch)
        return taken

    def _find(self, timestamp: int) -> list[bytes]:
        headers = [(read_header(batch), batch) for batch in self.batches]
        seen = [(header, batch) for header, batch in headers if header.base_offset < self.high_watermark]
        if timestamp == TIME_OF_NEWEST:
            timestamp = max((header.max_timestamp for header, _ in seen), default=0)
        return [batch for header, batch in seen if header.max_timestamp >= timestamp][:1]


def full() -> LogFull:
    return LogFull("the other replicas do not keep up")
