"""Thin: every load once against a cluster that already runs, for quick work on the broker.

`python -m bench.thin --bootstrap 127.0.0.1:9092 [--seconds 5] [--rows one,64,...]`. Figures of one run on a
shared machine say which way the wind blows; `bench.compare` says how strong it is. It knows only the loads of
bench/loads.py; it is itself a test drive and has no other tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import clients, loads
from bench.figures import Latency, Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    bootstrap: str
    seconds: float
    topic: str


def _consume(target: Target, message_bytes: int, count: int) -> Rate:
    """Fills a topic with about `count` messages, then reads it back."""
    topic = clients.create_topic(target.bootstrap)
    written = 0
    while written < count:
        piece = loads.produce_batched(target.bootstrap, topic, message_bytes=message_bytes, seconds=1.0)
        written += piece.count
    return loads.read_back(target.bootstrap, topic, seconds=min(target.seconds, 2.0))


def _outstanding(target: Target, window: int, linger_ms: int) -> Rate:
    return loads.produce_outstanding(
        target.bootstrap, target.topic, window=window, linger_ms=linger_ms, seconds=target.seconds
    )


def _batched(target: Target, message_bytes: int) -> Rate:
    return loads.produce_batched(
        target.bootstrap, target.topic, message_bytes=message_bytes, seconds=target.seconds
    )


def _many_partitions(target: Target) -> Rate:
    topic = clients.create_topic(target.bootstrap, partitions=loads.MANY_PARTITIONS)
    return loads.produce_many_partitions(target.bootstrap, topic, seconds=target.seconds)


ROWS: dict[str, Callable[[Target], Rate | Latency]] = {
    "one": lambda t: loads.produce_one_at_a_time(t.bootstrap, t.topic, seconds=t.seconds),
    "64": lambda t: _outstanding(t, 64, 5),
    "64-no-linger": lambda t: _outstanding(t, 64, 0),
    "500": lambda t: _outstanding(t, 500, 5),
    "500-no-linger": lambda t: _outstanding(t, 500, 0),
    "end-to-end": lambda t: loads.end_to_end(t.bootstrap, t.topic, seconds=t.seconds),
    "produce-1k": lambda t: _batched(t, 1024),
    "produce-100": lambda t: _batched(t, 100),
    "partitions-200": _many_partitions,
    "consume-1k": lambda t: _consume(t, 1024, 100_000),
    "consume-100": lambda t: _consume(t, 100, 1_000_000),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="run each load once against a running cluster")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each load (default: 5)")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {','.join(ROWS)}")
    arguments = parser.parse_args()
    names = arguments.rows.split(",")
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"unknown rows: {', '.join(unknown)}")
    begin = time.perf_counter()
    topic = clients.create_topic(arguments.bootstrap)
    print(f"topic {topic} made and written in {(time.perf_counter() - begin) * 1000:.0f} ms", flush=True)
    for name in names:
        figure = ROWS[name](Target(bootstrap=arguments.bootstrap, seconds=arguments.seconds, topic=topic))
        print(f"{name:15} {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
