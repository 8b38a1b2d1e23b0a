"""Faults: how long a partition takes no writes after its leader was killed or stopped.

The one rule: the clock runs from just before the signal to the first acknowledgement of a message that was
sent after it, and every acknowledged message must be there at the end. Must not know: how a system is
started or what it is called. Tests: tests/bench/test_faults.py (the writer's bookkeeping, against a
scripted producer).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bench import clients, processes, systems
from bench.clients import ANSWER_S_MAX, LoadError
from bench.systems import Broker, System

PARTITION: Final = 0
STEADY_PAUSE_S: Final = 0.01
"""100 messages per second: dense enough to time an ack to 10 ms, too few to be a load."""
FRESH_PRODUCER_PAUSE_S: Final = 0.1
FRESH_PRODUCERS_MAX: Final = 30
"""The oldest goes when the next one comes: hundreds of clients that retry would be a load of their own."""
SETTLE_S: Final = 1.0
"""Undisturbed writing before a fault, so that each one hits a cluster at work."""
HEAL_S_MAX: Final = 120.0
FAULT_S_MAX: Final = 150.0
"""Longer than librdkafka's 60 s socket timeout, which rules a stopped leader with default settings."""


class Producing(Protocol):
    """The part of confluent_kafka.Producer that a running producer needs."""

    def produce(
        self,
        topic: str,
        value: bytes | None = ...,
        *,
        partition: int = ...,
        on_delivery: Callable[[KafkaError | None, Message], None] | None = ...,
    ) -> None: ...

    def poll(self, timeout: float, /) -> int: ...

    def flush(self, timeout: float, /) -> int: ...


class SteadyWriter:
    """A running producer: one message per STEADY_PAUSE_S to one partition, from a thread of its own."""

    def __init__(self, producer: Producing, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._changed = threading.Condition()
        self._latest_acknowledged_sent_s = float("-inf")
        self._failures: list[KafkaError] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bench-steady-writer")
        self.acknowledged_count = 0

    def __enter__(self) -> SteadyWriter:
        self._thread.start()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if error_type is not None:
            return  # that error is the one to tell of
        if unanswered := self._producer.flush(ANSWER_S_MAX):
            raise LoadError(f"{unanswered} of the running producer's messages were never acknowledged")

    def wait_for_message_sent_after(self, moment_s: float, *, seconds_max: float) -> float:
        """When the first acknowledgement of a message sent after `moment_s` came, on perf_counter's scale."""
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._latest_acknowledged_sent_s > moment_s or self._failures, timeout=seconds_max
            )
            if self._failures:
                raise LoadError(f"the running producer was refused: {self._failures[0]}")
            if not came:
                raise LoadError(f"no acknowledgement within {seconds_max:g} s")
            return time.perf_counter()

    def _run(self) -> None:
        while not self._ended.is_set():
            self.send()
            next_s = time.perf_counter() + STEADY_PAUSE_S
            while (rest_s := next_s - time.perf_counter()) > 0:
                self._producer.poll(rest_s)

    def send(self) -> None:
        sent_s = time.perf_counter()

        def delivered(error: KafkaError | None, _: Message) -> None:
            self._delivered(sent_s, error)

        self._producer.produce(self._topic, bytes(100), partition=PARTITION, on_delivery=delivered)

    def _delivered(self, sent_s: float, error: KafkaError | None) -> None:
        with self._changed:
            if error is None:
                self.acknowledged_count += 1
                self._latest_acknowledged_sent_s = max(self._latest_acknowledged_sent_s, sent_s)
            else:
                self._failures.append(error)
            self._changed.notify_all()


def leader_kills(system: System, *, kills: int) -> list[float]:
    """Seconds to the next acknowledgement after each kill -9 of the leader; it comes back before the next."""
    topic = clients.create_topic(system.bootstrap)
    gaps_s: list[float] = []
    with SteadyWriter(clients.producer(system.bootstrap, linger_ms=0), topic) as writer:
        for _ in range(kills):
            leader = _settled_leader(system, topic, writer)
            begin = time.perf_counter()
            systems.kill(leader)
            gaps_s.append(writer.wait_for_message_sent_after(begin, seconds_max=FAULT_S_MAX) - begin)
            system.restart(leader.id)
    _demand_every_message(system, topic, writer.acknowledged_count)
    return gaps_s


def leader_stops(system: System, *, stops: int, socket_timeout_ms: int) -> list[float]:
    """Seconds to the next acknowledgement after each SIGSTOP of the leader, for a running producer."""
    topic = clients.create_topic(system.bootstrap)
    gaps_s: list[float] = []
    producer = clients.producer(system.bootstrap, linger_ms=0, socket_timeout_ms=socket_timeout_ms)
    with SteadyWriter(producer, topic) as writer:
        for _ in range(stops):
            leader = _settled_leader(system, topic, writer)
            begin = time.perf_counter()
            with _stopped(leader):
                gaps_s.append(writer.wait_for_message_sent_after(begin, seconds_max=FAULT_S_MAX) - begin)
    _demand_every_message(system, topic, writer.acknowledged_count)
    return gaps_s


def leader_stops_seen_by_fresh_producers(system: System, *, stops: int) -> list[float]:
    """Seconds to the first acknowledgement after each SIGSTOP, for producers born every 0.1 s since."""
    topic = clients.create_topic(system.bootstrap)
    gaps_s: list[float] = []
    for _ in range(stops):
        _wait_in_sync(system, topic)
        time.sleep(SETTLE_S)
        leader = _leader(system, topic)
        with _stopped(leader):
            gaps_s.append(_first_ack_of_fresh_producers(system.bootstrap, topic))
    return gaps_s


def _first_ack_of_fresh_producers(bootstrap: str, topic: str) -> float:
    acknowledged: list[float] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is None:
            acknowledged.append(time.perf_counter())

    producers: deque[Producer] = deque()
    born_count = 0
    begin = time.perf_counter()
    while not acknowledged and (elapsed_s := time.perf_counter() - begin) < FAULT_S_MAX:
        if born_count <= elapsed_s / FRESH_PRODUCER_PAUSE_S:
            producers.append(clients.producer(bootstrap, linger_ms=0))
            producers[-1].produce(topic, bytes(100), partition=PARTITION, on_delivery=delivered)
            born_count += 1
        if len(producers) > FRESH_PRODUCERS_MAX:
            producers.popleft().purge()
        for producer in producers:
            producer.poll(0)
        time.sleep(0.002)
    for producer in producers:
        producer.purge()
    if not acknowledged:
        raise LoadError(f"no fresh producer was served within {FAULT_S_MAX:g} s")
    return acknowledged[0] - begin


@contextmanager
def _stopped(broker: Broker) -> Iterator[None]:
    systems.pause(broker)
    try:
        yield
    finally:
        systems.resume(broker)


def _settled_leader(system: System, topic: str, writer: SteadyWriter) -> Broker:
    """The partition's leader once all replicas are in sync and writes have flowed for a while."""
    _wait_in_sync(system, topic)
    settled_s = time.perf_counter() + SETTLE_S
    time.sleep(SETTLE_S)
    writer.wait_for_message_sent_after(settled_s, seconds_max=HEAL_S_MAX)
    return _leader(system, topic)


def _leader(system: System, topic: str) -> Broker:
    leader_id = clients.leader_of(system.bootstrap, topic, PARTITION)
    return next(broker for broker in system.brokers() if broker.id == leader_id)


def _wait_in_sync(system: System, topic: str) -> None:
    processes.wait_until(
        _asked_patiently(lambda: clients.is_in_sync(system.bootstrap, topic)),
        seconds_max=HEAL_S_MAX,
        what="all replicas in sync",
        pause_s=0.2,
    )


def _asked_patiently(question: Callable[[], bool]) -> Callable[[], bool]:
    """A cluster that is healing may leave a question unanswered; that is a no."""

    def ask() -> bool:
        try:
            return question()
        except KafkaException:
            return False

    return ask


def _demand_every_message(system: System, topic: str, acknowledged_count: int) -> None:
    """What was acknowledged is there exactly once; the topic's making wrote one message besides."""
    _wait_in_sync(system, topic)
    held_count = clients.message_count(system.bootstrap, topic, PARTITION) - 1
    if held_count != acknowledged_count:
        raise LoadError(f"{acknowledged_count} messages were acknowledged, the partition holds {held_count}")
