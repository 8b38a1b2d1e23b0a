"""What goes wrong behind a door ends the command in words; what is behind is imported when it opens."""

import subprocess
import sys
from pathlib import Path

import pytest

from tidings.cli.doors import cluster_errors, default_kafka
from tidings.cli.failure import Failure
from tidings.config.exits import Exit
from tidings.kafka.errors import Refused, Unreachable


def test_a_refusal_without_a_known_name_has_no_hint() -> None:
    with (
        pytest.raises(Failure, match="nothing was done") as caught,
        cluster_errors("a:1", "nothing was done"),
    ):
        raise Refused("because", "SOME_ERROR")

    assert (caught.value.why, caught.value.hint, caught.value.code) == ("because", "", Exit.FAILED)


def test_an_unreachable_cluster_has_a_code_of_its_own() -> None:
    with pytest.raises(Failure) as caught, cluster_errors("a:1", "nothing was done"):
        raise Unreachable("a:1: Connection refused")

    assert caught.value.code == Exit.UNREACHABLE


@pytest.mark.parametrize("command", ["pub", "sub", "topic", "status", "broker", "config"])
def test_help_of_a_command_imports_no_client_and_no_broker(command: str) -> None:
    code = (
        "import sys; from tidings.cli.main import run; run([sys.argv[1], '--help']);"
        "heavy = {'confluent_kafka', 'asyncio', 'tidings.runtime.server'};"
        "print(heavy.intersection(sys.modules))"
    )

    said = subprocess.check_output([sys.executable, "-c", code, command], text=True)

    assert said.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("toml", "address"),
    [
        ("", "127.0.0.1:9092"),
        ("kafka_port = 7000", "127.0.0.1:7000"),
        ("kafka_port = 0", "127.0.0.1:9092"),
        ("kafka_host = '::1'", "[::1]:9092"),
        ("kafka_host = '0.0.0.0'\ninsecure_network = true", "127.0.0.1:9092"),
    ],
)
def test_commands_look_where_the_brokers_of_this_folder_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str, address: str
) -> None:
    (tmp_path / "tidings.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)

    assert default_kafka() == address
