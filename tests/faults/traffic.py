"""Traffic: stock clients that write and read while faults happen, and tell the ledger everything.

The one rule: librdkafka as users have it, `acks=all` and idempotent; what a client was told goes into the
ledger unjudged. Must not know: which faults there are.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Received

from tests.clients.deadline import Deadline
from tests.clients.librdkafka import Setting, known
from tests.faults.ledger import Ledger

WRITERS: Final = 2
PAUSE_S: Final = 0.004
"""Between two messages of a writer: 500 messages per second in all, so that a fault always hits some."""
ANSWER_S_MAX: Final = 30.0
"""How long anything may take: a cluster with a majority answers within seconds, on a busy machine too."""
READ_BATCH_COUNT: Final = 500
FRESH_PAUSE_S: Final = 0.1
FRESH_WRITERS_MAX: Final = 30
"""The oldest goes when the next one comes: hundreds of clients that retry would be a load of their own."""
# What a reader may be told while a cluster changes, and needs nobody to act on. That an offset it has reached
# is out of range is not among it.
_PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
# What the client says of messages that it never sent, or that a broker said not to have appended for good.
_NOT_TAKEN: Final = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)


def client_settings(bootstrap: str, settings: dict[str, Setting]) -> dict[str, Setting]:
    """Lines about connections that were cut on purpose would bury what a test says."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, **settings}


class Writer:
    """An idempotent producer in a thread of its own: one message after the other to each partition in turn.
    A stopped broker holds its requests no longer than `socket_timeout_ms`."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, ledger: Ledger, name: str, socket_timeout_ms: int
    ) -> None:
        settings: dict[str, Setting] = {
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 1,
            "socket.timeout.ms": socket_timeout_ms,
        }
        self._producer = Producer(client_settings(bootstrap, settings))
        self._topic = topic
        self._partitions = partitions
        self._ledger = ledger
        self._name = name
        self._ends = threading.Event()
        self._changed = threading.Condition()
        self._acknowledged_sent_s = [float("-inf")] * partitions  # when the newest one acknowledged was sent
        self._unanswered = 0
        self._thread = threading.Thread(target=self._write, name=f"writer {name}")

    def start(self) -> None:
        self._thread.start()

    def end(self) -> int:
        """Stop, wait for the answers, and say how many did not come."""
        self._ends.set()
        self._thread.join()
        return self._unanswered

    def wait_for_sent_after(self, moment_s: float, seconds_max: float) -> None:
        """Until every partition has acknowledged a message that was sent after the moment."""
        with self._changed:
            came = self._changed.wait_for(
                lambda: min(self._acknowledged_sent_s) > moment_s, timeout=seconds_max
            )
            late = [p for p, sent_s in enumerate(self._acknowledged_sent_s) if sent_s <= moment_s]
        assert came, f"no acknowledgement from partitions {late} within {seconds_max:g} s"

    def _write(self) -> None:
        number = 0
        while not self._ends.is_set():
            for partition in range(self._partitions):
                self._send(partition, number)
                self._producer.poll(PAUSE_S)
            number += 1
        self._unanswered = self._producer.flush(ANSWER_S_MAX)

    def _send(self, partition: int, number: int) -> None:
        value = self._ledger.sent(self._name, partition, number)
        sent_s = time.monotonic()

        def delivered(error: KafkaError | None, received: Received) -> None:
            if error is None:
                self._ledger.acknowledged(value, known(received.offset()))
                with self._changed:
                    self._acknowledged_sent_s[partition] = max(self._acknowledged_sent_s[partition], sent_s)
                    self._changed.notify_all()
            else:
                self._ledger.complained(self._name, error.str())
                if error.code() in _NOT_TAKEN:
                    self._ledger.refused(value)

        try:
            self._producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            self._ledger.refused(value)
            self._ledger.complained(self._name, "the client's queue is full")


class Watcher:
    """A reader that follows all partitions from the beginning while faults happen."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, ledger: Ledger) -> None:
        self._consumer = reader(bootstrap)
        self._consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        )
        self._ledger = ledger
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher")

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ends.is_set():
            for received in self._consumer.consume(READ_BATCH_COUNT, timeout=0.1):
                take(received, self._ledger, "watcher")
        self._consumer.close()


class Traffic:
    """All clients of one topic. `settle` ends them and gives the account's findings."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, socket_timeout_ms: int) -> None:
        self.ledger = Ledger()
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._watcher = Watcher(bootstrap, topic, partitions, self.ledger)
        self._writers = [
            Writer(bootstrap, topic, partitions, self.ledger, f"w{number}", socket_timeout_ms)
            for number in range(WRITERS)
        ]
        self._is_over = False

    def start(self) -> None:
        self._watcher.start()
        for writer in self._writers:
            writer.start()

    def wait_for_progress(self, *, seconds_max: float = ANSWER_S_MAX) -> float:
        """Until every writer has an answer from every partition to a message sent from now on; the
        seconds."""
        began_s = time.monotonic()
        for writer in self._writers:
            writer.wait_for_sent_after(began_s, seconds_max)
        return time.monotonic() - began_s

    def settle(self, *, starts_at: int = 0) -> None:
        """End the clients, read everything afresh, and demand that every message is accounted for. The logs
        start where they should."""
        unanswered = self.end()
        assert unanswered == 0, f"{unanswered} messages were never answered"
        read_everything(self._bootstrap, self._topic, self._partitions, self.ledger)
        assert {self.ledger.start_read(number) for number in range(self._partitions)} == {starts_at}
        findings = self.ledger.findings()
        assert not findings, "\n".join(
            f"{each.kind} {each.partition} {each.detail}" for each in findings[:20]
        )

    def end(self) -> int:
        if self._is_over:
            return 0
        self._is_over = True
        unanswered = sum(writer.end() for writer in self._writers)
        self._watcher.end()
        return unanswered


@contextmanager
def running_traffic(
    bootstrap: str, topic: str, partitions: int, *, socket_timeout_ms: int = 3_000
) -> Iterator[Traffic]:
    traffic = Traffic(bootstrap, topic, partitions, socket_timeout_ms=socket_timeout_ms)
    traffic.start()
    try:
        traffic.wait_for_progress()
        yield traffic
    finally:
        traffic.end()


def first_ack_of_fresh_writers(bootstrap: str, topic: str, ledger: Ledger, name: str) -> float:
    """Seconds until one of the producers that are born from now on, one every FRESH_PAUSE_S, is answered.
    Each has one message for partition 0."""
    acknowledged_s: list[float] = []

    def deliver(value: bytes) -> Callable[[KafkaError | None, Received], None]:
        def delivered(error: KafkaError | None, received: Received) -> None:
            if error is None:
                ledger.acknowledged(value, known(received.offset()))
                acknowledged_s.append(time.monotonic())

        return delivered

    settings: dict[str, Setting] = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
    writers: deque[Producer] = deque()
    deadline = Deadline(ANSWER_S_MAX, "an answer to a fresh producer")
    began_s = time.monotonic()
    born_count = 0
    while not acknowledged_s:
        deadline.left_s()
        if born_count * FRESH_PAUSE_S <= time.monotonic() - began_s:
            writers.append(Producer(client_settings(bootstrap, settings)))
            value = ledger.sent(name, 0, born_count)
            writers[-1].produce(topic, value, partition=0, on_delivery=deliver(value))
            born_count += 1
        if len(writers) > FRESH_WRITERS_MAX:
            writers.popleft().purge()
        for writer in writers:
            writer.poll(0)
        threading.Event().wait(FRESH_PAUSE_S / 20)  # the load has a pace
    for writer in writers:
        writer.purge()
    return acknowledged_s[0] - began_s


def reader(bootstrap: str) -> Consumer:
    """A reader by assignment. The binding asks for a group's name and never uses it without commits."""
    settings: dict[str, Setting] = {
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "socket.timeout.ms": 3_000,
        "fetch.wait.max.ms": 100,
    }
    return Consumer(client_settings(bootstrap, settings))


def read_everything(
    bootstrap: str, topic: str, partitions: int, ledger: Ledger, name: str = "last reader"
) -> None:
    """A fresh reader, from the logs' starts to the high watermarks, which must not lie below what was
    acknowledged."""
    consumer = reader(bootstrap)
    deadline = Deadline(ANSWER_S_MAX, f"reading {topic} to its end")
    try:
        bounds = {
            number: _bounds(consumer, TopicPartition(topic, number), deadline) for number in range(partitions)
        }
        ends = {partition: offsets.stop for partition, offsets in bounds.items()}
        for partition, end_offset in ends.items():
            assert end_offset >= ledger.end_acknowledged(partition), (end_offset, partition)
        consumer.assign([TopicPartition(topic, number, offsets.start) for number, offsets in bounds.items()])
        unread = {partition for partition, offsets in bounds.items() if offsets}
        while unread:
            for received in consumer.consume(READ_BATCH_COUNT, timeout=min(0.5, deadline.left_s())):
                partition, next_offset = take(received, ledger, name)
                if next_offset >= ends.get(partition, next_offset + 1):
                    unread.discard(partition)
        for partition, offsets in bounds.items():
            ledger.read_all(name, partition, offsets.stop, start_offset=offsets.start)
    finally:
        consumer.close()


def _bounds(consumer: Consumer, place: TopicPartition, deadline: Deadline) -> range:
    """The offsets that can be read. A cluster that is healing may leave a question unanswered."""
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=min(5.0, deadline.left_s()))
        except KafkaException:
            continue
        return range(int(low), int(high))


def take(received: Received, ledger: Ledger, reader_name: str) -> tuple[int, int]:
    """Tell the ledger of what a reader was given; (partition, the offset that follows), or (-1, -1)."""
    error = received.error()
    if error is not None:
        if error.code() not in _PASSING and not error.retriable():
            ledger.complained(reader_name, error.str())
        return -1, -1
    partition, offset, value = known(received.partition()), known(received.offset()), received.value()
    assert isinstance(value, bytes), value
    ledger.read(reader_name, partition, offset, value)
    return partition, offset + 1
