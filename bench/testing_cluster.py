"""Testing cluster: how long a test waits for `tidings.testing.Cluster`, from its making to the first write
that librdkafka has acknowledged on a topic that did not exist.

`python -m bench.testing_cluster [--runs 20] [--brokers 1,3]`. Goals on a quiet machine: 150 ms for one
broker, 600 ms for three; up to 100 ms of it librdkafka itself takes before it uses the leader that it was
told. The one rule: it does what a user of the package can do, and nothing else. It is a test drive, and has
no tests of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

from bench.figures import quantile
from tidings.testing import Cluster

ACK_S_MAX = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One cluster's life, in milliseconds."""

    serves_ms: float
    first_ack_ms: float
    stop_ms: float


def run(brokers: int) -> Run:
    begin = time.perf_counter()
    cluster = Cluster(brokers=brokers).start()
    serves = time.perf_counter()
    try:
        write_one(cluster.bootstrap)
        acknowledged = time.perf_counter()
    finally:
        stop = time.perf_counter()
        cluster.stop()
    end = time.perf_counter()
    return Run(
        serves_ms=(serves - begin) * 1000,
        first_ack_ms=(acknowledged - begin) * 1000,
        stop_ms=(end - stop) * 1000,
    )


def write_one(bootstrap: str) -> None:
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        outcomes.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
    producer.produce("first", b"value", on_delivery=delivered)
    producer.flush(ACK_S_MAX)
    assert outcomes == [None], outcomes


def summary(samples_ms: Sequence[float]) -> str:
    return f"p50 {quantile(samples_ms, 0.5):.0f} ms, max {max(samples_ms):.0f} ms ({len(samples_ms)} runs)"


def main() -> int:
    parser = argparse.ArgumentParser(description="how long a test waits for a cluster of its own")
    parser.add_argument("--runs", type=int, default=20, help="clusters per row (default: 20)")
    parser.add_argument("--brokers", default="1,3", metavar="N,...", help="rows (default: 1,3)")
    arguments = parser.parse_args()
    for brokers in map(int, arguments.brokers.split(",")):
        run(brokers)  # imports and codecs are paid once per process, by whoever comes first
        runs = [run(brokers) for _ in range(arguments.runs)]
        print(f"{brokers} broker(s)")
        print(f"  serves     {summary([each.serves_ms for each in runs])}")
        print(f"  first ack  {summary([each.first_ack_ms for each in runs])}")
        print(f"  stop       {summary([each.stop_ms for each in runs])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
