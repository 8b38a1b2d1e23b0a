"""What checking and stamping a produced batch costs, per batch size; beside it the searches that decompress.

The one rule: the same calls as the produce path makes, on a view into a larger frame.
Run: python -m bench.records
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial

from tidings.protocol.compression import Compression
from tidings.protocol.record_codec import Record, encode_batch, find_timestamp
from tidings.protocol.records import check_produced, check_timestamps, read_header, stamp, stamp_append_time

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
BATCH_BYTES_MAX = 2 << 20
DECODED_BYTES_MAX = 64 << 20
ROUNDS = 5
ROUND_SECONDS = 0.1

# One record of 100 bytes with its overhead; a batch as librdkafka fills one; one at Kafka's default limit.
BATCH_VALUE_BYTES = {"100 B": 100, "16 KiB": 16 * 1024 - 80, "1 MiB": (1 << 20) - 80}


def microseconds(call: Callable[[], object]) -> float:
    """The best of some rounds: what the others took longer was the machine's."""
    timer = timeit.Timer(call)
    once_seconds = max(timer.timeit(10) / 10, 1e-7)
    count = max(1, int(ROUND_SECONDS / once_seconds))
    return min(timer.repeat(ROUNDS, count)) / count * 1e6


def check_and_stamp(view: memoryview) -> bytes:
    checked = check_produced(view, batch_bytes_max=BATCH_BYTES_MAX, produce_version=9)
    check_timestamps(checked.header, NOW_MS, HOUR_MS, HOUR_MS)
    return stamp(checked.view, 12_345, 7)


def measure_batch(name: str, value_bytes: int) -> None:
    record = Record(0, NOW_MS, None, bytes(value_bytes))
    batch = encode_batch([record], producer_id=9, producer_epoch=0, base_sequence=0)
    view = memoryview(b"frame before" + batch + b"behind")[12 : 12 + len(batch)]
    rows: dict[str, Callable[[], object]] = {
        "check + stamp": lambda: check_and_stamp(view),
        "read header": lambda: read_header(view),
        "stamp": lambda: stamp(view, 12_345, 7),
        "stamp append time": lambda: stamp_append_time(view, 12_345, 7, NOW_MS),
    }
    for row, call in rows.items():
        print(f"{name:>8}  {row:<20} {microseconds(call):10.2f} us")


def measure_search() -> None:
    """The worst case of a search by time: the last of 1,000 records."""
    records = [Record(offset, NOW_MS + offset, b"key", bytes(100)) for offset in range(1_000)]
    for codec in Compression:
        batch = encode_batch(records, compression=codec)
        took = microseconds(partial(find_timestamp, batch, NOW_MS + 999, decoded_bytes_max=DECODED_BYTES_MAX))
        print(f"{codec.name.lower():>8}  {'find among 1,000':<20} {took:10.2f} us")


def main() -> None:
    for name, value_bytes in BATCH_VALUE_BYTES.items():
        measure_batch(name, value_bytes)
    measure_search()


if __name__ == "__main__":
    main()
