"""Measurements: which load on which cluster yields the samples of which rows.

The one rule: a measurement treats every system alike; it sees only a Laboratory, which hands out clusters
of one system. Must not know: how clusters are started, how rows are printed. Tests:
tests/bench/test_measurements.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import clients, faults, loads, resources, slow_fsync
from bench.elections import elections_under_load
from bench.figures import Rate
from bench.systems import System

Samples = dict[str, list[float]]
"""Row name -> samples."""
SLOW_FSYNC_MS: Final = 5
FIRST_TOUCH_S: Final = 3.0
SETTLE_S: Final = 5.0
"""Rest after a start or after topics were made, before idleness is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how often, per round."""

    warm_up_s: float
    load_s: float
    idle_s: float
    kills: int
    stops: int
    election_minutes: float
    cache: Path


class Laboratory:
    """Hands out clusters of one system, one at a time.

    The loads share one cluster that has been warmed up; what asks for a fresh one ends it.
    """

    def __init__(self, make: Callable[[Mapping[str, str]], System], *, warm_up_s: float) -> None:
        self._make = make
        self._warm_up_s = warm_up_s
        self._shared: System | None = None

    def shared(self) -> System:
        if self._shared is None:
            self._shared = self._make({})
            self._shared.prepare()
            self._shared.start()
            self.warm_up(self._shared)
        return self._shared

    @contextmanager
    def prepared(self, environment: Mapping[str, str] | None = None) -> Iterator[System]:
        """A cluster that is ready to be started."""
        self.close()
        system = self._make(environment or {})
        try:
            system.prepare()
            yield system
        finally:
            system.stop()

    @contextmanager
    def fresh(self, environment: Mapping[str, str] | None = None) -> Iterator[System]:
        """A cluster that has just started and done nothing yet."""
        with self.prepared(environment) as system:
            system.start()
            yield system

    def warm_up(self, system: System) -> None:
        """Some of everything, again and again: Java takes most of a minute to compile Kafka."""
        deadline = time.perf_counter() + self._warm_up_s
        few = clients.create_topic(system.bootstrap)
        many = clients.create_topic(system.bootstrap, partitions=loads.MANY_PARTITIONS)
        while time.perf_counter() < deadline:
            loads.produce_one_at_a_time(system.bootstrap, few, seconds=2.0)
            loads.produce_outstanding(system.bootstrap, few, window=64, linger_ms=0, seconds=2.0)
            loads.produce_many_partitions(system.bootstrap, many, seconds=2.0)
            loads.produce_batched(system.bootstrap, few, message_bytes=100, seconds=1.0)
            loads.read_back(system.bootstrap, few, seconds=0.2)
        clients.delete_topic(system.bootstrap, few)
        clients.delete_topic(system.bootstrap, many)

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    rows: tuple[str, ...]
    run: Callable[[Laboratory, Plan], Samples]
    tidings_only: bool = False


@contextmanager
def _topic(bootstrap: str, *, partitions: int = clients.PARTITIONS) -> Iterator[str]:
    topic = clients.create_topic(bootstrap, partitions=partitions)
    yield topic
    clients.delete_topic(bootstrap, topic)


def _one_at_a_time(laboratory: Laboratory, plan: Plan) -> Samples:
    bootstrap = laboratory.shared().bootstrap
    with _topic(bootstrap) as topic:
        latency = loads.produce_one_at_a_time(bootstrap, topic, seconds=plan.load_s)
    return {"one-p50": [latency.p50_ms], "one-p99": [latency.p99_ms]}


def _end_to_end(laboratory: Laboratory, plan: Plan) -> Samples:
    bootstrap = laboratory.shared().bootstrap
    with _topic(bootstrap) as topic:
        latency = loads.end_to_end(bootstrap, topic, seconds=plan.load_s)
    return {"end-to-end-p50": [latency.p50_ms], "end-to-end-p99": [latency.p99_ms]}


def _outstanding(row: str, *, window: int, linger_ms: int) -> Measurement:
    def run(laboratory: Laboratory, plan: Plan) -> Samples:
        return {row: [_outstanding_rate(laboratory.shared().bootstrap, window, linger_ms, plan).per_second]}

    return Measurement(rows=(row,), run=run)


def _outstanding_rate(bootstrap: str, window: int, linger_ms: int, plan: Plan) -> Rate:
    with _topic(bootstrap) as topic:
        return loads.produce_outstanding(
            bootstrap, topic, window=window, linger_ms=linger_ms, seconds=plan.load_s
        )


def _written_and_read(size: str, *, message_bytes: int) -> Measurement:
    """One topic written in full batches, with an eye on memory, then read from its start."""

    def run(laboratory: Laboratory, plan: Plan) -> Samples:
        system = laboratory.shared()
        with _topic(system.bootstrap) as topic:
            with resources.PeakMemory(broker.pid for broker in system.brokers()) as memory:
                written = loads.produce_batched(
                    system.bootstrap, topic, message_bytes=message_bytes, seconds=plan.load_s
                )
            read = loads.read_back(system.bootstrap, topic, seconds=plan.load_s / 2)
        samples = {f"produce-{size}": [written.per_second], f"consume-{size}": [read.per_second]}
        return samples | ({"memory-load": [memory.peak_mb]} if size == "1k" else {})

    rows = (f"produce-{size}", f"consume-{size}")
    return Measurement(rows=(*rows, "memory-load") if size == "1k" else rows, run=run)


def _many_partitions(laboratory: Laboratory, plan: Plan) -> Samples:
    bootstrap = laboratory.shared().bootstrap
    with _topic(bootstrap, partitions=loads.MANY_PARTITIONS) as topic:
        # The first seconds make each partition's files; what is measured is a topic in use.
        loads.produce_many_partitions(bootstrap, topic, seconds=FIRST_TOUCH_S)
        rate = loads.produce_many_partitions(bootstrap, topic, seconds=plan.load_s)
    return {"partitions-200": [rate.per_second]}


def _kills(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh() as system:
        gaps_s = faults.leader_kills(system, kills=plan.kills)
    return {"kill-p50": gaps_s, "kill-p99": gaps_s}


def _stop_fresh(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh() as system:
        return {"stop-fresh": faults.leader_stops_seen_by_fresh_producers(system, stops=plan.stops)}


def _stop_running(row: str, *, socket_timeout_ms: int) -> Measurement:
    def run(laboratory: Laboratory, plan: Plan) -> Samples:
        with laboratory.fresh() as system:
            return {row: faults.leader_stops(system, stops=plan.stops, socket_timeout_ms=socket_timeout_ms)}

    return Measurement(rows=(row,), run=run)


def _first_write(laboratory: Laboratory, plan: Plan) -> Samples:
    """The write waits for all in-sync replicas but is not idempotent.

    librdkafka takes half a second to ask for its first producer id, whoever answers.
    """
    with laboratory.prepared() as system:
        begin = time.perf_counter()
        system.start()
        topic = clients.new_topic(system.bootstrap, partitions=1)
        writer = clients.producer(system.bootstrap, enable_idempotence=False, linger_ms=0)
        clients.write_once_everywhere(writer, topic, partitions=1)
        return {"first-write": [time.perf_counter() - begin]}


def _idle(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh() as system:
        pids = [broker.pid for broker in system.brokers()]
        for _ in range(10):
            clients.create_topic(system.bootstrap, partitions=1)
        time.sleep(SETTLE_S)
        memory_mb = resources.memory_mb(pids)
        ten_percent = resources.processor_percent(pids, seconds=plan.idle_s)
        for _ in range(10):
            clients.create_topic(system.bootstrap, partitions=100)
        time.sleep(SETTLE_S)
        thousand_percent = resources.processor_percent(pids, seconds=plan.idle_s)
    return {"memory-idle": [memory_mb], "idle-10": [ten_percent], "idle-1000": [thousand_percent]}


def _slow_fsync(laboratory: Laboratory, plan: Plan) -> Samples:
    rates = []
    for environment in ({}, slow_fsync.environment(cache=plan.cache, delay_ms=SLOW_FSYNC_MS)):
        with laboratory.fresh(environment) as system:
            laboratory.warm_up(system)
            rates.append(_outstanding_rate(system.bootstrap, 500, 5, plan).per_second)
    plain, slow = rates
    return {"slow-fsync": [slow / plain]}


def _elections(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh() as system:
        return {"elections": [elections_under_load(system.bootstrap, minutes=plan.election_minutes)]}


MEASUREMENTS: Final = (
    # The quiet ones first: what the loud ones leave to be written back would be charged to them.
    Measurement(rows=("first-write",), run=_first_write),
    Measurement(rows=("one-p50", "one-p99"), run=_one_at_a_time),
    Measurement(rows=("end-to-end-p50", "end-to-end-p99"), run=_end_to_end),
    _outstanding("64", window=64, linger_ms=5),
    _outstanding("64-no-linger", window=64, linger_ms=0),
    _outstanding("500", window=500, linger_ms=5),
    _outstanding("500-no-linger", window=500, linger_ms=0),
    Measurement(rows=("partitions-200",), run=_many_partitions),
    _written_and_read("1k", message_bytes=1024),
    _written_and_read("100", message_bytes=100),
    Measurement(rows=("memory-idle", "idle-10", "idle-1000"), run=_idle),
    Measurement(rows=("kill-p50", "kill-p99"), run=_kills),
    Measurement(rows=("stop-fresh",), run=_stop_fresh),
    _stop_running("stop-running", socket_timeout_ms=3_000),
    _stop_running("stop-defaults", socket_timeout_ms=60_000),
    Measurement(rows=("slow-fsync",), run=_slow_fsync, tidings_only=True),
    Measurement(rows=("elections",), run=_elections, tidings_only=True),
)
