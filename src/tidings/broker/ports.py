"""Ports: all that the broker room asks of the world, as protocols that `node` fills and tests/fakes imitate.

The one rule: nothing here blocks. What takes time takes a callback (`then`), which is called later on the
same thread, exactly once, never from within the call that took it. Times are milliseconds since 1970, of one
clock that never goes back.
It must not know who fills a port: Raft, segment files, sockets and timers stand behind these names only.
Tests: tests/broker/test_ports.py holds the fakes to these protocols
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVarTuple

from tidings.broker.outcome import Outcome
from tidings.protocol.errors import ErrorCode

NO_LEADER = -1  # Kafka's broker id for "nobody leads"
NO_EPOCH = -1
NO_OFFSET = -1
TIME_OF_NEWEST = -3  # ListOffsets' "timestamp" that asks for the record of the largest timestamp

Arguments = TypeVarTuple("Arguments")


class AppendRefused(Exception):
    """A log that takes no batch now. `code` is what the producer is told; each of them makes it try again."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class LogFull(AppendRefused):
    """Too much is appended and not committed: the other replicas do not keep up, or do not answer."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class StorageFull(AppendRefused):
    """The disk of this broker has no room left for writes."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class StorageDamaged(AppendRefused):
    """What this broker holds of the partition is damaged, and nobody else holds it: nothing is added before a
    person has decided what becomes of it."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class NotLeader(AppendRefused):
    """Leadership was lost before the broker room heard of it."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """Where a leader epoch ends: the largest epoch at or below the one asked for, and the first offset that
    belongs to a later one (the log's end for the newest). NO_EPOCH and NO_OFFSET where the log knows none
    that old."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The newest leader known of a group: its broker id (NO_LEADER while there is none) and its epoch."""

    broker_id: int
    epoch: int


class ReplicaLog(Protocol):
    """The log of one replica, seen in Kafka's terms. Attributes may be properties; they are read often."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def leader_id(self) -> int:
        """Broker id of the newest leader known, NO_LEADER while there is none."""

    @property
    def leader_epoch(self) -> int: ...
    @property
    def term_start_committed(self) -> bool:
        """Leader: an entry of its own epoch is committed, so its high watermark is the newest there is."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def durable_offset(self) -> int:
        """The offset after the last record that is on this broker's own disk."""

    @property
    def end_offset(self) -> int: ...

    def append(self, batch: bytes, record_count: int, now_ms: int) -> int:
        """Leader only: take a batch stamped with end_offset and leader_epoch. The offset behind its last
        record, or AppendRefused (and nothing was appended)."""
        ...

    def append_log_start(self, offset: int, now_ms: int) -> None:
        """Leader only: move the first readable offset up (DeleteRecords, retention); in force once committed.
        Raises AppendRefused."""

    def read(self, offset: int, bytes_max: int, offset_max: int) -> list[bytes] | None:
        """Whole batches from memory, from the one that contains `offset`, below `offset_max`; the first of
        them even if it is larger than bytes_max. [] where offset_max leaves nothing; None: not in memory, use
        read_later."""
        ...

    def read_later(
        self, offset: int, bytes_max: int, offset_max: int, then: Callable[[list[bytes] | None], None]
    ) -> None:
        """The same from disk. None: removed by now, or damaged."""

    def find_batch_by_time(self, timestamp: int, then: Callable[[list[bytes] | None], None]) -> None:
        """The first batch below the high watermark whose max timestamp is at or after `timestamp`; for
        TIME_OF_NEWEST the first of those with the largest max timestamp. A list of it, or of nothing; None:
        what is on disk could not be read."""

    def epoch_end(self, epoch: int) -> EpochEnd: ...

    def confirm_leadership(self, then: Callable[[bool], None], now_ms: int) -> None:
        """Whether this replica still led when a majority was asked (ReadIndex, Raft 8). On True the high
        watermark is at least what any leader had announced when this was called."""


class TimerHandle(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """One clock's alarms."""

    def call_at(self, at_ms: int, callback: Callable[[int], None]) -> TimerHandle:
        """Call `callback(now_ms)` once, at `at_ms` or a little later."""
        ...


class Controller(Protocol):
    """The way into the metadata group's log, wherever its leader is."""

    def propose(self, command: bytes, then: Callable[[Outcome | None], None], now_ms: int) -> None:
        """Have `command` applied by every broker. `then` gets its outcome after this broker applied it; None:
        it is unknown whether it ever will be (no leader, or no answer in time)."""


class Liveness(Protocol):
    """Facts about the living cluster that are not in the metadata log."""

    @property
    def version(self) -> int:
        """Another number whenever any answer of this port has changed."""

    @property
    def controller_id(self) -> int:
        """Broker id of the metadata group's leader, NO_LEADER while there is none."""

    def alive(self) -> Collection[int]:
        """Broker ids that answer, this one included."""
        ...

    def listed(self) -> Collection[int]:
        """Those, and the brokers that answered a short while ago and may be back soon."""
        ...

    def leader_of(self, group: int) -> Leader: ...

    def in_sync(self, group: int, replicas: Sequence[int]) -> list[int]:
        """Those of the replicas that keep up, in the order given: as the leader knows them where this broker
        leads, else those alive."""
        ...


class Settling(Protocol):
    """When a change of the metadata is visible to every client."""

    def when_settled(self, groups: Sequence[int], at_ms_max: int, then: Callable[[bool], None]) -> None:
        """Call `then(True)` once every living broker has applied what this one has applied by now and knows a
        leader for each of the groups; `then(False)` at `at_ms_max`."""


class Freshness(Protocol):
    """Whether the leaders that are known still live."""

    def when_fresh(self, groups: Sequence[int], at_ms_max: int, then: Callable[[], None]) -> None:
        """Call `then` once each of the groups has a leader whose broker has answered since this call, but at
        `at_ms_max` at the latest."""


class Offload(Protocol):
    """Work that would hold up the loop (decompression) done beside it."""

    def run(
        self,
        function: Callable[[*Arguments], object],
        *arguments: *Arguments,
        then: Callable[[object], None],
    ) -> None:
        """Call `then` with what `function(*arguments)` returns. The function is pure and does not raise."""
