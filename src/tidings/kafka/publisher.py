"""Publisher: sends messages one after the other and says of each, in the order they were given, where it
was stored.

Rule: idempotent, and answered by a majority before it counts. A thread serves the client, so that answers
come while the caller waits for its next message; the caller's callback runs there.
Must not know: commands and terminals. Tests: tests/kafka/test_publisher.py
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidings.kafka.connection import client_settings, refused
from tidings.kafka.errors import Refused, Unreachable
from tidings.kafka.probe import require_majority

POLL_SECONDS = 0.05
ANY_PARTITION = -1
MESSAGE_BYTES_MAX = 16 * 1024 * 1024

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Where a message stands."""

    topic: str
    partition: int
    offset: int

    @property
    def message_id(self) -> str:
        return f"{self.partition}-{self.offset}"


Outcome = Stored | Refused | Unreachable
OnOutcome = Callable[[int, Outcome], None]


class Publisher:
    """Publishes to one topic. `on_outcome(number, outcome)` is called once per message, in order, from 0 on;
    `on_pause()` after those that came at one time.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int = ANY_PARTITION,
        delivery_ms_max: int,
        on_outcome: OnOutcome,
        on_pause: Callable[[], None],
    ) -> None:
        require_majority(bootstrap)
        self._topic = topic
        self._partition = partition
        self._on_outcome = on_outcome
        self._on_pause = on_pause
        self._producer = Producer(
            client_settings(
                bootstrap,
                {
                    "acks": "all",
                    # The topic's own limit is the cluster's to enforce.
                    "message.max.bytes": MESSAGE_BYTES_MAX,
                    "enable.idempotence": True,
                    # As Kafka's Java client hashes, so that the same key is in the same partition for
                    # everyone.
                    "partitioner": "murmur2_random",
                    "message.timeout.ms": delivery_ms_max,
                    "topic.metadata.propagation.max.ms": min(delivery_ms_max, 10_000),
                    "request.timeout.ms": min(delivery_ms_max, 10_000),
                },
            )
        )
        self._count = 0
        self._reported = 0
        self._outcomes: deque[Outcome | None] = deque()  # of the messages from number _reported on
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="publisher", daemon=True)
        self._poller.start()

    def publish(self, value: bytes | None, *, key: bytes | None, headers: Sequence[Header]) -> None:
        """Hands over one message; waits while too many are on their way."""
        with self._lock:
            number = self._count
            self._count += 1
            self._outcomes.append(None)

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._settle(number, _outcome_of(error, message))

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition=self._partition,
                    headers=list(headers),
                    on_delivery=delivered,
                )
                return
            except BufferError:
                self._producer.poll(POLL_SECONDS)  # full: answers make room
            except KafkaException as error:
                self._settle(number, refused(error.args[0]))  # too large, or a partition that is not there
                return

    def close(self) -> None:
        """Returns when every message has its outcome; each has one after the delivery time at the latest."""
        while self._producer.flush(POLL_SECONDS):
            pass
        self._is_closed.set()
        self._poller.join()

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            if self._producer.poll(POLL_SECONDS):
                self._on_pause()

    def _settle(self, number: int, outcome: Outcome) -> None:
        with self._lock:
            self._outcomes[number - self._reported] = outcome
            while self._outcomes and (head := self._outcomes[0]) is not None:
                self._outcomes.popleft()
                self._on_outcome(self._reported, head)
                self._reported += 1


def _outcome_of(error: KafkaError | None, message: Message) -> Outcome:
    if error is not None:
        return refused(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, message
    assert partition is not None, message
    assert offset is not None, message
    return Stored(topic=topic, partition=partition, offset=offset)
