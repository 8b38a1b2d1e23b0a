"""What goes wrong behind a door ends the command in words; what is behind is imported when it opens."""

import subprocess
import sys

import pytest

from tidings.cli.doors import cluster_errors
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
