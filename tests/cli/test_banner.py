"""The banner's lines work as pasted; the line for programs has what they need."""

import shutil
import sys
from pathlib import Path

import pytest

from tidings.cli.banner import banner, program_name, ready_line
from tidings.runtime.supervisor import BrokerPlan, Running

FOLDER = Path("/srv/tidings")


def running(*kafka: str) -> list[Running]:
    return [
        Running(
            plan=BrokerPlan(
                broker_id=number, kafka=address, peer="p:1", data=FOLDER / f"broker-{number}", argv=("a", "b")
            ),
            pid=100 + number,
        )
        for number, address in enumerate(kafka, start=1)
    ]


def test_the_default_address_needs_no_flag() -> None:
    text = banner(running("127.0.0.1:9092", "127.0.0.1:9093"), FOLDER, is_kept=True, seconds=0.6)

    assert "2 brokers are ready after 0.60 s" in text
    assert "Kafka    127.0.0.1:9092,127.0.0.1:9093" in text
    assert "--kafka" not in text
    assert "/srv/tidings (kept between runs)" in text


def test_another_address_stands_in_the_lines() -> None:
    text = banner(running("127.0.0.1:7000"), FOLDER, is_kept=False, seconds=0.6)

    assert "pub greetings hello --kafka 127.0.0.1:7000" in text
    assert "sub greetings --from earliest --kafka 127.0.0.1:7000" in text
    assert "(removed at the end)" in text


def test_programs_get_every_broker() -> None:
    line = ready_line(running("127.0.0.1:9092"), seconds=0.6)

    assert line == {
        "event": "ready",
        "kafka": "127.0.0.1:9092",
        "brokers": [
            {
                "id": 1,
                "pid": 101,
                "kafka": "127.0.0.1:9092",
                "peer": "p:1",
                "data": "/srv/tidings/broker-1",
                "argv": ["a", "b"],
            }
        ],
        "seconds": 0.6,
    }


def test_a_program_on_the_path_is_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tidings"
    shutil.copy(sys.executable, program)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert program_name(str(program)) == "tidings"


def test_a_program_elsewhere_is_called_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert program_name(".venv/bin/tidings") == ".venv/bin/tidings"
    assert program_name("my programs/tidings") == "'my programs/tidings'"


def test_a_module_is_called_as_one() -> None:
    assert program_name("/somewhere/tidings/__main__.py") == f"{sys.executable} -m tidings"
