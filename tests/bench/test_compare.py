"""Arguments, turns, failures and the file of samples, with clusters that need no process."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench import compare
from bench.clients import LoadError
from bench.measurements import Laboratory, Measurement, Plan, Samples
from bench.rows import KAFKA, TIDINGS
from bench.systems import Broker
from bench.table import Results


class IdleSystem:
    """A cluster that notes what is done to it and needs no process."""

    bootstrap = "127.0.0.1:1"

    def __init__(self, name: str, deeds: list[str]) -> None:
        self.name = name
        self._deeds = deeds

    def prepare(self) -> None:
        self._deeds.append(f"{self.name} prepare")

    def start(self) -> None:
        self._deeds.append(f"{self.name} start")

    def stop(self) -> None:
        self._deeds.append(f"{self.name} stop")

    def brokers(self) -> tuple[Broker, ...]:
        return ()

    def restart(self, broker_id: int) -> None:
        self._deeds.append(f"{self.name} restart {broker_id}")


def _fresh(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh():
        return {"64": [1.0]}


def _failing(laboratory: Laboratory, plan: Plan) -> Samples:
    with laboratory.fresh():
        raise LoadError("a message was lost")


def _task(*measurements: Measurement, rounds: int = 1) -> compare.Task:
    task = compare.task_of(["--systems", "kafka,tidings", "--rounds", str(rounds), "--rows", "64"])
    return replace(task, measurements=measurements)


def _measure(task: compare.Task) -> tuple[Results, list[str]]:
    deeds: list[str] = []
    results = Results()

    def maker(name: str) -> compare.Maker:
        def make(environment: Mapping[str, str]) -> IdleSystem:
            return IdleSystem(name, deeds)

        return make

    compare.measure(task, {KAFKA: maker(KAFKA), TIDINGS: maker(TIDINGS)}, results)
    return results, deeds


def test_systems_take_turns_and_each_is_stopped_before_the_next_starts() -> None:
    task = _task(Measurement(rows=("64",), run=_fresh), rounds=2)

    results, deeds = _measure(task)

    one_turn = [
        "kafka prepare",
        "kafka start",
        "kafka stop",
        "tidings prepare",
        "tidings start",
        "tidings stop",
    ]
    assert deeds == one_turn * 2
    assert results.samples == {"64": {KAFKA: [1.0, 1.0], TIDINGS: [1.0, 1.0]}}


def test_a_lost_message_fails_its_row_and_not_the_next() -> None:
    task = _task(Measurement(rows=("500",), run=_failing), Measurement(rows=("64",), run=_fresh))

    results, deeds = _measure(task)

    assert results.failures == {"500": {KAFKA: 1, TIDINGS: 1}}
    assert results.samples == {"64": {KAFKA: [1.0], TIDINGS: [1.0]}}
    assert deeds.count("kafka stop") == 2


def test_what_only_tidings_can_show_is_not_asked_of_kafka() -> None:
    task = _task(Measurement(rows=("64",), run=_fresh, tidings_only=True))

    results, deeds = _measure(task)

    assert results.samples == {"64": {TIDINGS: [1.0]}}
    assert deeds == ["tidings prepare", "tidings start", "tidings stop"]


def test_a_row_brings_its_whole_measurement() -> None:
    task = compare.task_of(["--rows", "kill-p99"])

    assert [measurement.rows for measurement in task.measurements] == [("kill-p50", "kill-p99")]


def test_by_default_every_row_is_measured_three_times_on_all_systems() -> None:
    task = compare.task_of([])

    assert task.rounds == 3
    assert task.systems == ("kafka", "kafka-fsync", "tidings")
    assert task.plan.kills * task.rounds >= 20


def test_quick_means_one_round_unless_more_are_asked_for() -> None:
    assert compare.task_of(["--quick"]).rounds == 1
    assert compare.task_of(["--quick", "--rounds", "2"]).rounds == 2


@pytest.mark.parametrize(
    "arguments", [["--rows", "65"], ["--systems", "nats"], ["--rounds", "many"], ["--rounds", "0"]]
)
def test_what_makes_no_sense_is_refused_with_the_choices(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        compare.task_of(arguments)

    assert refused.value.code == 2
    assert arguments[1] in capsys.readouterr().err


def test_the_json_file_holds_every_sample_and_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results()
    results.add("64", TIDINGS, [10.0, 12.0])
    task = replace(compare.task_of(["--rows", "64"]), json_file=tmp_path / "figures.json")

    compare.report(task, results)

    content = json.loads((tmp_path / "figures.json").read_text())
    assert content["samples"] == {"64": {"tidings": [10.0, 12.0]}}
    assert content["machine"]["kafka"] == "4.3.1"
    assert "64 outstanding" in capsys.readouterr().out
