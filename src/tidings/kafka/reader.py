"""Reader: the messages of one topic, from a position on, by explicit offsets and without a consumer group.

Rule: it commits nothing and joins nothing. The client insists on looking for its group's coordinator; where
that is refused, reading goes on, and so does this reader. Must not know: commands and terminals.
Tests: tests/kafka/test_reader.py
"""

from __future__ import annotations

import heapq
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidings.kafka.connection import (
    REQUEST_SECONDS_MAX,
    client_settings,
    kafka_errors,
    refused,
)
from tidings.kafka.errors import Refused
from tidings.kafka.positions import AtOffset, Edge, Last, Position, Since
from tidings.kafka.probe import require_majority

POLL_SECONDS = 0.2  # Ctrl-C waits no longer
BATCH_MESSAGES_MAX = 1_000
DAY_MS = 86_400_000
LEADER_CHECK_SECONDS = 0.1
PARTITIONS_CHECK_SECONDS = 10.0
CHECK_SECONDS_MAX = 2.0  # messages that are there wait no longer for the question

# Not ours to solve: the first two concern the group that we do not use, the others the client mends by
# itself.
_IGNORED = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
    }
)
_UNKNOWN = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
# Of a partition that has been named by the cluster: it has no leader yet, or not every broker knows it.
_PASSING = _UNKNOWN | {KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One message as it was stored."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # -1: none
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class _Log:
    """What is known of one partition."""

    low: int
    high: int  # at the start
    position: int  # of the next message to be handed out


class Reader:
    """Reads one topic. `partition` reads that one only."""

    def __init__(self, bootstrap: str, topic: str, *, partition: int | None = None) -> None:
        require_majority(bootstrap)
        self._topic = topic
        self._only = partition
        self._consumer = Consumer(
            client_settings(
                bootstrap,
                {
                    "group.id": f"tidings-{secrets.token_hex(8)}",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "allow.auto.create.topics": False,
                    # Who reads our output may take their time: a pager holds us up for as long as it is open.
                    "max.poll.interval.ms": DAY_MS,
                },
            )
        )
        self._log_by_partition: dict[int, _Log] = {}
        self._checked_s = 0.0

    def close(self) -> None:
        self._consumer.close()

    def topic_exists(self) -> bool:
        return bool(self._partitions())

    def read(
        self,
        position: Position,
        *,
        follow: bool,
        on_idle: Callable[[], None],
        on_beyond: Callable[[int], None] = lambda end: None,
    ) -> Iterator[Received]:
        """Messages from `position` on. Ends at what was the end when it began, unless it is to follow.

        `on_idle` is called whenever nothing more is at hand: time to flush. `on_beyond` is told where the
        longest partition ends if that is before the offset to begin at.
        """
        with kafka_errors():
            self._start(position)
            end = max(log.high for log in self._log_by_partition.values())
            if isinstance(position, AtOffset) and position.offset > end:
                on_beyond(end)
            if isinstance(position, Last):
                yield from self._last(position.count)
            while follow or self._is_behind():
                for message in self._poll(on_idle):
                    if follow or message.offset < self._log_by_partition[message.partition].high:
                        yield message
                if follow:
                    self._take_new_partitions()

    def _start(self, position: Position) -> None:
        numbers = self._partitions()
        if not numbers:
            raise Refused(f"there is no topic {self._topic}", "UNKNOWN_TOPIC_OR_PART")
        if self._only is not None and self._only not in numbers:
            raise Refused(f"topic {self._topic} has no partition {self._only}", "UNKNOWN_TOPIC_OR_PART")
        for number in numbers if self._only is None else [self._only]:
            low, high = self._watermarks(number)
            self._log_by_partition[number] = _Log(low=low, high=high, position=low)
        for number, offset in self._offsets(position).items():
            log = self._log_by_partition[number]
            log.position = min(max(offset, log.low), log.high)
        self._checked_s = time.monotonic()
        self._consumer.assign(
            [
                TopicPartition(self._topic, number, log.position)
                for number, log in self._log_by_partition.items()
            ]
        )

    def _offsets(self, position: Position) -> dict[int, int]:
        """Where each partition is to begin, not yet within its bounds."""
        logs = self._log_by_partition
        if position is Edge.EARLIEST:
            return {number: log.low for number, log in logs.items()}
        if isinstance(position, Last):
            return {number: log.high - position.count for number, log in logs.items()}
        if isinstance(position, AtOffset):
            return dict.fromkeys(logs, position.offset)
        if isinstance(position, Since):
            times = [TopicPartition(self._topic, number, position.timestamp_ms) for number in logs]
            found = self._consumer.offsets_for_times(times, timeout=REQUEST_SECONDS_MAX)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
            return {
                each.partition: logs[each.partition].high if each.offset == OFFSET_END else each.offset
                for each in found
            }
        return {number: log.high for number, log in logs.items()}

    def _last(self, count: int) -> list[Received]:
        """The `count` youngest messages of all partitions, in the order of their times."""
        youngest: list[tuple[int, int, Received]] = []  # by time, then arrival; no two arrive as one
        reached_ms_by_partition: dict[int, int] = {}
        arrived = 0
        while self._is_behind():
            for message in self._poll(lambda: None):
                arrived += 1
                # Within a partition the offset decides: a timestamp that goes back counts as the one before.
                reached_ms = max(message.timestamp_ms, reached_ms_by_partition.get(message.partition, -1))
                reached_ms_by_partition[message.partition] = reached_ms
                if len(youngest) < count:
                    heapq.heappush(youngest, (reached_ms, arrived, message))
                else:
                    heapq.heappushpop(youngest, (reached_ms, arrived, message))
        return [message for _, _, message in sorted(youngest, key=lambda entry: entry[:2])]

    def _is_behind(self) -> bool:
        return any(log.position < log.high for log in self._log_by_partition.values())

    def _poll(self, on_idle: Callable[[], None]) -> Sequence[Received]:
        """What is at hand; waits a moment where that is nothing."""
        messages = self._consumer.consume(BATCH_MESSAGES_MAX, timeout=0)
        if not messages:
            on_idle()
            first = self._consumer.poll(POLL_SECONDS)
            messages = [first] if first is not None else []
        received: list[Received] = []
        for message in messages:
            error = message.error()
            if error is None:
                received.append(_received(message))
                self._log_by_partition[received[-1].partition].position = received[-1].offset + 1
            else:
                self._on_error(error, message)
        return received

    def _on_error(self, error: KafkaError, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error.code() == KafkaError._PARTITION_EOF:
            # Behind the last message may stand markers of transactions, which nobody sees.
            log = self._log_by_partition.get(-1 if partition is None else partition)
            if log is not None and offset is not None:
                log.position = max(log.position, offset)
        elif error.code() in _UNKNOWN:
            raise Refused(f"topic {self._topic} is gone", error.name())
        elif error.code() not in _IGNORED:
            raise refused(error)

    def _take_new_partitions(self) -> None:
        """Partitions that were added while we read are read from their start."""
        if self._only is not None or time.monotonic() - self._checked_s < PARTITIONS_CHECK_SECONDS:
            return
        self._checked_s = time.monotonic()
        try:
            numbers = self._partitions(CHECK_SECONDS_MAX)
        except KafkaException:
            return  # no broker at the moment; asked again later
        for number in numbers:
            if number not in self._log_by_partition:
                self._log_by_partition[number] = _Log(low=0, high=0, position=0)
                self._consumer.incremental_assign([TopicPartition(self._topic, number, 0)])

    def _partitions(self, seconds_max: float = REQUEST_SECONDS_MAX) -> list[int]:
        described = self._consumer.list_topics(self._topic, timeout=seconds_max).topics[self._topic]
        if described.error is not None:
            if described.error.code() in _UNKNOWN:
                return []
            raise KafkaException(described.error)
        return sorted(described.partitions)

    def _watermarks(self, number: int) -> tuple[int, int]:
        """Where a partition begins and ends. One that was named a moment ago is waited for: it may be between
        two leaders, or too new for the broker that is asked now.
        """
        partition = TopicPartition(self._topic, number)
        deadline_s = time.monotonic() + REQUEST_SECONDS_MAX
        while True:
            try:
                found = self._consumer.get_watermark_offsets(partition, timeout=REQUEST_SECONDS_MAX)
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() > deadline_s:
                    raise
                time.sleep(LEADER_CHECK_SECONDS)
                continue
            if found is None:
                raise Refused(f"partition {number} of {self._topic} does not say where it ends", "_TIMED_OUT")
            low, high = found
            return low, high


def _received(message: Message) -> Received:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, message
    assert partition is not None, message
    assert offset is not None, message
    headers = cast(list[tuple[str, str | bytes | None]], message.headers() or [])
    return Received(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _header_bytes(value)) for name, value in headers),
    )


def _header_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
