"""Compare: Apache Kafka and Tidings side by side on this machine, one table.

`python -m bench.compare [--rows 64,kill-p50] [--rounds 3] [--quick] [--systems kafka,kafka-fsync,tidings]
[--json FILE] [--markdown]`. Progress goes to stderr, the table to stdout. Kafka needs `mvn` and `java` and,
once, the network. The one rule: systems take turns within every round, so that what the machine does
besides hits all alike. Tests: tests/bench/test_compare.py (arguments and bookkeeping).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import confluent_kafka
from confluent_kafka import KafkaException

from bench import table
from bench.apache_kafka import VERSION, ApacheKafka
from bench.clients import LoadError
from bench.measurements import MEASUREMENTS, Laboratory, Measurement, Plan, Samples
from bench.processes import StartError
from bench.rows import KAFKA, KAFKA_FSYNC, ROWS, TIDINGS
from bench.systems import System
from bench.table import Results
from bench.tidings_cluster import Tidings

Maker = Callable[[Mapping[str, str]], System]
"""Makes a system, given what to add to its processes' environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the command line asked for."""

    systems: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    rounds: int
    plan: Plan
    json_file: Path | None
    markdown: bool


def task_of(arguments: Sequence[str]) -> Task:
    """Reads the command line; leaves the program with a message when it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description="Apache Kafka beside Tidings"
    )
    names = [row.name for row in ROWS]
    systems = (KAFKA, KAFKA_FSYNC, TIDINGS)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings-bench"
    parser.add_argument("--rows", default=",".join(names), help=f"some of {','.join(names)} (default: all)")
    parser.add_argument("--systems", default=",".join(systems), help="in the order in which they take turns")
    parser.add_argument("--rounds", type=_count, help="turns of each system (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one round of short loads: does it work at all?")
    parser.add_argument("--seconds", type=_duration, help="length of each load (default: 5)")
    parser.add_argument("--kills", type=_count, help="kill -9 per round (default: 7)")
    parser.add_argument("--stops", type=_count, help="SIGSTOP per variant and round (default: 2)")
    parser.add_argument(
        "--minutes", type=_duration, help="full load per round for counting elections (default: 10)"
    )
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help=f"default: {cache}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all samples, for later")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    asked = parser.parse_args(arguments)
    wanted_rows, wanted_systems = asked.rows.split(","), tuple(asked.systems.split(","))
    if unknown := [name for name in wanted_rows if name not in names]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(names)}")
    if unknown := [name for name in wanted_systems if name not in systems]:
        parser.error(f"no such system: {', '.join(unknown)}; there are {', '.join(systems)}")
    quick = asked.quick
    return Task(
        systems=wanted_systems,
        measurements=tuple(each for each in MEASUREMENTS if set(each.rows) & set(wanted_rows)),
        rounds=asked.rounds or (1 if quick else 3),
        plan=Plan(
            warm_up_s=5.0 if quick else 45.0,
            load_s=asked.seconds or (2.0 if quick else 5.0),
            idle_s=5.0 if quick else 20.0,
            kills=asked.kills or (2 if quick else 7),
            stops=asked.stops or (1 if quick else 2),
            election_minutes=asked.minutes or (0.5 if quick else 10.0),
            cache=asked.cache,
        ),
        json_file=asked.json,
        markdown=asked.markdown,
    )


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return count


def _duration(text: str) -> float:
    if (duration := float(text)) <= 0.0:
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return duration


def makers(cache: Path) -> dict[str, Maker]:
    """How each system is made."""
    return {
        KAFKA: lambda environment: ApacheKafka(cache=cache, fsync=False, environment=environment),
        KAFKA_FSYNC: lambda environment: ApacheKafka(cache=cache, fsync=True, environment=environment),
        TIDINGS: lambda environment: Tidings(environment=environment),
    }


def measure(task: Task, make: Mapping[str, Maker], results: Results) -> None:
    """Fills `results`, round by round, system by system."""
    for round_number in range(1, task.rounds + 1):
        for system in task.systems:
            laboratory = Laboratory(make[system], warm_up_s=task.plan.warm_up_s)
            try:
                for measurement in task.measurements:
                    if measurement.tidings_only and system != TIDINGS:
                        continue
                    _say(f"round {round_number}/{task.rounds}  {system}  {', '.join(measurement.rows)}")
                    _run(measurement, laboratory, task.plan, system, results)
            finally:
                laboratory.close()


def _run(measurement: Measurement, laboratory: Laboratory, plan: Plan, system: str, results: Results) -> None:
    # What the load before left to be written back must not be charged to this one.
    os.sync()
    try:
        samples: Samples = measurement.run(laboratory, plan)
    except (LoadError, StartError, KafkaException, subprocess.SubprocessError, OSError) as error:
        _say(f"    failed: {type(error).__name__}: {error}")
        for row in measurement.rows:
            results.add_failure(row, system)
        laboratory.close()  # the next measurement gets a cluster that is not broken
        return
    for row, values in samples.items():
        results.add(row, system, values)
        _say(f"    {row}: {', '.join(f'{value:,.2f}' for value in values)}")


def machine() -> dict[str, str]:
    """What the figures depend on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
        "kafka": VERSION,
    }


def report(task: Task, results: Results) -> None:
    """The table to stdout, all samples to the file that was asked for."""
    shown = {name for measurement in task.measurements for name in measurement.rows}
    rows = [row for row in ROWS if row.name in shown]
    print("\n".join(table.lines(rows, task.systems, results, markdown=task.markdown)))
    if task.json_file is not None:
        content = {"machine": machine(), "samples": results.samples, "failures": results.failures}
        task.json_file.write_text(json.dumps(content, indent=1) + "\n")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _interrupted(signal_number: int, frame: FrameType | None) -> None:
    """The first signal stops everything; a second one must not stop the stopping, which has its own limit."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _say("interrupted: stopping what was started")
    raise KeyboardInterrupt


def main() -> int:
    task = task_of(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    results = Results()
    exit_code = 0
    try:
        measure(task, makers(task.plan.cache), results)
    except KeyboardInterrupt:
        _say("all is stopped; the table shows what was measured until now")
        exit_code = 130
    report(task, results)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
