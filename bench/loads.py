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
import uuid
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it lacks __all__

from bench.figures import Latency, Rate

ANSWER_S_MAX: Final = 60.0
"""How long a load waits for anything before it gives up: enough for a cluster that just lost its leader."""
REPLICAS: Final = 3
PARTITIONS: Final = 6
MANY_PARTITIONS: Final = 200
SMALL_BATCH_RECORDS: Final = 10
ANY_PARTITION: Final = -1
"""librdkafka's value for "let the partitioner choose"."""
STAMP: Final = struct.Struct("<q")

ClientSettings = dict[str, str | int | bool]


class LoadError(Exception):
    """The cluster lost a message, refused one or did not answer: there is no figure to print."""


def client_settings(bootstrap: str, **settings: str | int | bool) -> ClientSettings:
    """librdkafka's names with underscores for dots, so that they can be keywords."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    # Lines about connections that a stopping cluster closed would bury the table; errors are exceptions.
    return {"bootstrap.servers": bootstrap, "log_level": 2, **dotted}


def producer(bootstrap: str, **settings: str | int | bool) -> Producer:
    return Producer({"acks": "all", "enable.idempotence": True, **client_settings(bootstrap, **settings)})


def create_topic(bootstrap: str, *, partitions: int = PARTITIONS, replicas: int = REPLICAS) -> str:
    """A fresh topic whose partitions all have a leader that takes writes."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(dict(client_settings(bootstrap)))
    for answer in admin.create_topics([NewTopic(topic, partitions, replicas)], request_timeout=30).values():
        answer.result(timeout=ANSWER_S_MAX)
    with producer(bootstrap) as writer:
        write_once_everywhere(writer, topic, partitions)
    return topic


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient(dict(client_settings(bootstrap)))
    for answer in admin.delete_topics([topic], request_timeout=30).values():
        answer.result(timeout=ANSWER_S_MAX)


def write_once_everywhere(writer: Producer, topic: str, partitions: int) -> None:
    """One message to each partition: connections are open and metadata is known before a clock starts."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    for partition in range(partitions):
        writer.produce(topic, bytes(STAMP.size), partition=partition, on_delivery=delivered)
    if writer.flush(ANSWER_S_MAX) or failures:
        raise LoadError(f"first writes to {topic} failed: {failures or 'no answer'}")


def produce_batched(bootstrap: str, topic: str, *, message_bytes: int, seconds: float) -> Rate:
    """A tight loop that lets librdkafka choose partitions and form batches."""
    writer = producer(bootstrap, delivery_report_only_error=True)
    write_once_everywhere(writer, topic, PARTITIONS)
    return _produce_tight(writer, topic, b"x" * message_bytes, itertools.repeat(ANY_PARTITION), seconds)


def produce_many_partitions(bootstrap: str, topic: str, *, seconds: float) -> Rate:
    """Small batches for MANY_PARTITIONS in turn: requests, not bytes, are what it costs.

    librdkafka sends one partition per request, so the cap on a batch fixes the work per message; the
    short queue keeps the time after the last message short.
    """
    writer = producer(
        bootstrap,
        delivery_report_only_error=True,
        batch_num_messages=SMALL_BATCH_RECORDS,
        queue_buffering_max_messages=5 * SMALL_BATCH_RECORDS * MANY_PARTITIONS,
    )
    write_once_everywhere(writer, topic, MANY_PARTITIONS)
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
    writer = producer(bootstrap, linger_ms=0)
    write_once_everywhere(writer, topic, PARTITIONS)
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
    writer = producer(bootstrap, linger_ms=linger_ms)
    write_once_everywhere(writer, topic, PARTITIONS)
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
    reader = _reader(bootstrap)
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


def _reader(bootstrap: str, **settings: str | int | bool) -> Consumer:
    """An assigning reader. librdkafka's default is to sleep 1 s whenever its queue was full."""
    own = {"group_id": "bench", "enable_auto_commit": False, "fetch_queue_backoff_ms": 5, **settings}
    return Consumer(client_settings(bootstrap, **own))


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
    reader = _reader(bootstrap)
    latencies_ms: list[float] = []
    ended = threading.Event()
    begin = time.perf_counter()
    warm_ns = time.perf_counter_ns() + int(min(1.0, seconds / 4) * 1e9)

    def read() -> None:
        while not ended.is_set():
            message = reader.poll(0.1)
            if message is None or message.error() is not None:
                continue
            value = message.value()
            assert value is not None, message.offset()
            sent_ns: int = STAMP.unpack_from(value)[0]
            if sent_ns > warm_ns:
                latencies_ms.append((time.perf_counter_ns() - sent_ns) / 1e6)

    ends = [_end_offset(reader, topic, partition) for partition in range(PARTITIONS)]
    reader.assign([TopicPartition(topic, partition, end) for partition, end in enumerate(ends)])
    reading = threading.Thread(target=read, name="bench-reader")
    reading.start()
    try:
        begin = time.perf_counter()
        sent_count = _pace(bootstrap, topic, per_second=per_second, seconds=seconds)
        time.sleep(0.5)
    finally:
        ended.set()
        reading.join()
        reader.close()
    if len(latencies_ms) < sent_count * 0.5:
        raise LoadError(
            f"{len(latencies_ms)} of {sent_count} messages were read {time.perf_counter() - begin:.1f} s on"
        )
    return Latency.of(latencies_ms)


def _end_offset(reader: Consumer, topic: str, partition: int) -> int:
    _, high = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S_MAX)
    return high


def _pace(bootstrap: str, topic: str, *, per_second: int, seconds: float) -> int:
    """Sends stamped messages on a fixed timetable: a slow answer does not slow the next message down."""
    writer = producer(bootstrap, linger_ms=0)
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
