"""Loads: what a stock client does to a running cluster, and how fast the cluster let it.

The one rule: a load knows addresses and topics, never which system answers, so all systems get the same
client, the same settings and the same loop. The client is librdkafka (confluent-kafka) with `acks=all` and
idempotence; every other setting is its default unless the load says so. Must not know: processes, files, what
the figures are compared with. Tests: tests/bench/test_figures.py (the arithmetic); `bench.thin` runs
every load.
"""

from __future__ import annotations

import itertools
import struct
import threading
import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench import clients
from bench.clients import ANSWER_S_MAX, PARTITIONS, LoadError
from bench.figures import Latency, Rate

MANY_PARTITIONS: Final = 200
SMALL_BATCH_RECORDS: Final = 10
ANY_PARTITION: Final = -1
"""librdkafka's value for "let the partitioner choose"."""
STAMP: Final = struct.Struct("<q")


def produce_batched(bootstrap: str, topic: str, *, message_bytes: int, seconds: float) -> Rate:
    """A tight loop that lets librdkafka choose partitions and form batches."""
    writer = clients.producer(bootstrap, delivery_report_only_error=True)
    clients.write_once_everywhere(writer, topic, PARTITIONS)
    return _produce_tight(writer, topic, b"x" * message_bytes, itertools.repeat(ANY_PARTITION), seconds)


def produce_many_partitions(bootstrap: str, topic: str, *, seconds: float) -> Rate:
    """Small batches for MANY_PARTITIONS in turn: requests, not bytes, are what it costs.

    librdkafka sends one partition per request, so the cap on a batch fixes the work per message; the
    short queue keeps the time after the last message short.
    """
    writer = clients.producer(
        bootstrap,
        delivery_report_only_error=True,
        batch_num_messages=SMALL_BATCH_RECORDS,
        queue_buffering_max_messages=5 * SMALL_BATCH_RECORDS * MANY_PARTITIONS,
    )
    clients.write_once_everywhere(writer, topic, MANY_PARTITIONS)
    return _produce_tight(writer, topic, b"x" * 100, itertools.cycle(range(MANY_PARTITIONS)), seconds)


def _produce_tight(
    writer: Producer, topic: str, payload: bytes, partitions: Iterator[int], seconds: float
) -> Rate:
    """As fast as the client's queue takes them; the clock runs until the last acknowledgement.

    The writer reports failures only: a callback per acknowledged message would cost more than the brokers do.
    """
    failures: list[KafkaError] = []

    def failed(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    count = 0
    begin = time.perf_counter()
    deadline = begin + seconds
    while time.perf_counter() < deadline:
        try:
            writer.produce(topic, payload, partition=next(partitions), on_delivery=failed)
            count += 1
        except BufferError:
            writer.poll(0.01)
    unanswered = writer.flush(ANSWER_S_MAX)
    elapsed_s = time.perf_counter() - begin
    if unanswered or failures:
        raise LoadError(f"{unanswered} unanswered, {len(failures)} failed: {failures[:1]}")
    return Rate(count=count, seconds=elapsed_s)


def produce_one_at_a_time(bootstrap: str, topic: str, *, seconds: float) -> Latency:
    """Each message waits for the acknowledgement of the one before: the latency of a single durable write."""
    writer = clients.producer(bootstrap, linger_ms=0)
    clients.write_once_everywhere(writer, topic, PARTITIONS)
    payload = b"x" * 100
    latencies_ms: list[float] = []
    answered: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        answered.append(error)

    deadline = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < deadline:
        writer.produce(topic, payload, on_delivery=delivered)
        while not answered:
            if writer.poll(ANSWER_S_MAX) == 0:
                raise LoadError("no acknowledgement")
        latencies_ms.append((time.perf_counter() - begin) * 1000.0)
        if (error := answered.pop()) is not None:
            raise LoadError(str(error))
    return Latency.of(latencies_ms)


def produce_outstanding(
    bootstrap: str,
    topic: str,
    *,
    window: int,
    seconds: float,
    linger_ms: int = 5,
) -> Rate:
    """Always `window` messages without an answer: what a service does that bounds its work in flight.

    5 ms is librdkafka's own linger: with it, no system can answer more than window / 5 ms. The rate counts
    acknowledgements between a warm start and the end.
    """
    writer = clients.producer(bootstrap, linger_ms=linger_ms)
    clients.write_once_everywhere(writer, topic, PARTITIONS)
    payload = b"x" * 100
    sent_count = 0
    acknowledged_count = 0
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal acknowledged_count
        acknowledged_count += 1
        if error is not None:
            failures.append(error)

    def run_for(run_s: float) -> None:
        nonlocal sent_count
        deadline = time.perf_counter() + run_s
        while time.perf_counter() < deadline:
            while sent_count - acknowledged_count < window:
                writer.produce(topic, payload, on_delivery=delivered)
                sent_count += 1
            writer.poll(0.1)

    run_for(min(1.0, seconds / 4))
    warm_count, begin = acknowledged_count, time.perf_counter()
    run_for(seconds)
    rate = Rate(count=acknowledged_count - warm_count, seconds=time.perf_counter() - begin)
    if writer.flush(ANSWER_S_MAX) or failures:
        raise LoadError(
            f"{sent_count - acknowledged_count} unanswered, {len(failures)} failed: {failures[:1]}"
        )
    return rate


def read_back(bootstrap: str, topic: str, *, seconds: float, partitions: int = PARTITIONS) -> Rate:
    """Reads the whole topic from its start, again and again for at least `seconds`.

    Each pass must see exactly as many messages as the partitions' end offsets promise. Its clock starts with
    the first messages: connecting is not what is measured.
    """
    count = 0
    elapsed_s = 0.0
    while elapsed_s < seconds:
        one_pass = _read_once(bootstrap, topic, partitions)
        count += one_pass.count
        elapsed_s += one_pass.seconds
    return Rate(count=count, seconds=elapsed_s)


def _read_once(bootstrap: str, topic: str, partitions: int) -> Rate:
    reader = clients.reader(bootstrap)
    try:
        expected = 0
        assignment = []
        for partition in range(partitions):
            where = TopicPartition(topic, partition)
            low, high = reader.get_watermark_offsets(where, timeout=ANSWER_S_MAX)
            expected += high - low
            assignment.append(TopicPartition(topic, partition, low))
        reader.assign(assignment)
        first = _messages(reader, expected)
        if first == 0 or expected <= first:
            raise LoadError(f"{topic} holds {expected} messages, too few to measure reading")
        begin = time.perf_counter()
        seen = first
        while seen < expected:
            if (more := _messages(reader, expected - seen)) == 0:
                raise LoadError(f"{topic}: {expected - seen} of {expected} messages never came")
            seen += more
        return Rate(count=seen - first, seconds=time.perf_counter() - begin)
    finally:
        reader.close()


def _messages(reader: Consumer, wanted: int) -> int:
    """How many of at most 10,000 next messages came within ANSWER_S_MAX; 0 when none did."""
    deadline = time.perf_counter() + ANSWER_S_MAX
    while time.perf_counter() < deadline:
        came = reader.consume(min(wanted, 10_000), 0.2)
        count = sum(1 for message in came if message.error() is None)
        if count != len(came):
            _raise_unless_about_groups(came)
        if count:
            return count
    return 0


def _raise_unless_about_groups(messages: list[Message]) -> None:
    """A cluster without consumer groups refuses the group once; reading by assignment goes on."""
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise KafkaException(error)


def end_to_end(bootstrap: str, topic: str, *, per_second: int = 1000, seconds: float) -> Latency:
    """From `produce()` to the reader's hands at a steady pace, both clients in one process with one clock."""
    reader = clients.reader(bootstrap)
    latencies_ms: list[float] = []
    read_count = 0
    ended = threading.Event()
    warm_ns = time.perf_counter_ns() + int(min(1.0, seconds / 4) * 1e9)

    def read() -> None:
        nonlocal read_count
        while not ended.is_set():
            message = reader.poll(0.1)
            if message is None or message.error() is not None:
                continue
            read_count += 1
            sent_ns = _stamp(message)
            if sent_ns > warm_ns:
                latencies_ms.append((time.perf_counter_ns() - sent_ns) / 1e6)

    reader.assign(_ends(reader, topic))
    reading = threading.Thread(target=read, name="bench-reader")
    reading.start()
    try:
        sent_count = _pace(bootstrap, topic, per_second=per_second, seconds=seconds)
        deadline = time.perf_counter() + ANSWER_S_MAX
        while read_count < sent_count and time.perf_counter() < deadline:
            time.sleep(0.01)
    finally:
        ended.set()
        reading.join()
        reader.close()
    if read_count != sent_count:
        raise LoadError(f"{sent_count} messages were sent and {read_count} read")
    return Latency.of(latencies_ms)


def _stamp(message: Message) -> int:
    value = message.value()
    assert value is not None, message.offset()
    sent_ns: int = STAMP.unpack_from(value)[0]
    return sent_ns


def _ends(reader: Consumer, topic: str) -> list[TopicPartition]:
    """Where each partition ends now."""
    ends = []
    for partition in range(PARTITIONS):
        _, high = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S_MAX)
        ends.append(TopicPartition(topic, partition, high))
    return ends


def _pace(bootstrap: str, topic: str, *, per_second: int, seconds: float) -> int:
    """Sends stamped messages on a fixed timetable: a slow answer does not slow the next message down."""
    writer = clients.producer(bootstrap, linger_ms=0)
    padding = bytes(100 - STAMP.size)
    sent_count = 0
    begin = time.perf_counter()
    while (elapsed_s := time.perf_counter() - begin) < seconds:
        while sent_count < elapsed_s * per_second:
            writer.produce(topic, STAMP.pack(time.perf_counter_ns()) + padding)
            sent_count += 1
        writer.poll(0)
        time.sleep(max(0.0, begin + (sent_count + 1) / per_second - time.perf_counter()))
    if writer.flush(ANSWER_S_MAX):
        raise LoadError("the paced messages were not acknowledged")
    return sent_count
