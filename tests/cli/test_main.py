"""The command line as a whole: help, unknown commands, errors of three lines, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidings as package
from tests.cli.conftest import Command
from tests.fakes.cluster_doors import FakeCluster
from tidings.cli.main import COMMANDS
from tidings.config.exits import Exit
from tidings.kafka.errors import NoMajority, Refused, Unreachable


def test_the_version_is_that_of_the_package(tidings: Command) -> None:
    ended = tidings("--version")

    assert (ended.code, ended.out) == (0, f"tidings {package.__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command_and_the_exit_codes(tidings: Command, arguments: list[str]) -> None:
    ended = tidings(*arguments)

    assert ended.code == 0
    assert all(f"  {name} " in ended.out for name in COMMANDS)
    assert "Exit codes: 0 done, 1 failed" in ended.out


def test_what_is_rarely_needed_stands_apart(tidings: Command) -> None:
    everyday, _, rare = tidings("--help").out.partition("For rarer needs:")

    assert all(f"  {name} " in rare for name in ("log", "sim", "completion"))
    assert "  sim " not in everyday


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits_its_summary(tidings: Command, name: str) -> None:
    ended = tidings(name, "--help")

    assert ended.code == 0
    assert ended.out.startswith(f"Usage: tidings {name}")


def test_a_command_that_is_misspelt_comes_with_the_right_name(tidings: Command) -> None:
    ended = tidings("topics", "ls")

    assert ended.code == Exit.USAGE
    assert ended.err == "error: there is no command 'topics'\n  hint: did you mean 'topic'?\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["topic", "create"], "tidings topic create: Missing argument 'NAME'."),
        (["pub", "--partition", "x", "t"], "tidings pub: Invalid value for '--partition'"),
        (["status", "--verbose"], "tidings status: No such option"),
        (["sub", "a", "b"], "tidings sub: Got unexpected extra argument"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(tidings: Command, arguments: list[str], problem: str) -> None:
    ended = tidings(*arguments)

    assert ended.code == Exit.USAGE
    assert ended.err.startswith(f"error: {problem}")
    assert ended.err.count("\n") == 2
    assert "--help" in ended.err


def test_a_cluster_that_is_not_there_is_told_in_three_lines(tidings: Command, cluster: FakeCluster) -> None:
    cluster.problem = Unreachable("127.0.0.1:9092: Connection refused")

    ended = tidings("topic", "ls")

    assert ended.code == Exit.UNREACHABLE
    assert ended.err.splitlines() == [
        "error: no Kafka broker answers at 127.0.0.1:9092",
        "  127.0.0.1:9092: Connection refused",
        "  hint: start a cluster with `tidings up`, or name one with --kafka HOST:PORT",
    ]


def test_a_majority_that_is_missed_is_told_in_three_lines(tidings: Command, cluster: FakeCluster) -> None:
    cluster.problem = NoMajority("only 1 of 3 brokers answers (127.0.0.1:9092)")

    ended = tidings("topic", "create", "news")

    assert ended.code == Exit.FAILED
    assert ended.err.splitlines() == [
        "error: topic news was not created",
        "  only 1 of 3 brokers answers (127.0.0.1:9092); a majority is needed",
        "  hint: start the other brokers again",
    ]


def test_a_refusal_is_told_with_a_hint_where_there_is_one(tidings: Command, cluster: FakeCluster) -> None:
    cluster.problem = Refused("Topic 'news' already exists.", "TOPIC_ALREADY_EXISTS")

    ended = tidings("topic", "create", "news")

    assert ended.code == Exit.FAILED
    assert ended.err.splitlines() == [
        "error: topic news was not created",
        "  Topic 'news' already exists.",
        "  hint: `tidings topic describe` shows it",
    ]


def test_commands_talk_to_loopback_the_environment_or_the_flag(
    tidings: Command, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidings("topic", "ls")
    monkeypatch.setenv("TIDINGS_KAFKA", "b:2")
    tidings("topic", "ls")
    tidings("topic", "ls", "--kafka", "c:3")

    assert cluster.bootstraps == ["127.0.0.1:9092", "b:2", "c:3"]


def test_the_module_runs_as_the_program_does() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tidings", "--version"], capture_output=True, text=True, check=True
    )

    assert finished.stdout == f"tidings {package.__version__}\n"


def test_an_interrupt_amid_the_imports_ends_us_quietly(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join((str(tmp_path), *sys.path))

    finished = subprocess.run(
        [sys.executable, "-m", "tidings", "--version"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )

    assert (finished.returncode, finished.stdout, finished.stderr) == (Exit.INTERRUPTED, "", "")


def test_a_reader_that_has_seen_enough_ends_us_quietly() -> None:
    command = f"{sys.executable} -m tidings config | head -1"

    finished = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)

    assert (finished.returncode, finished.stdout.strip(), finished.stderr) == (0, "# up", "")
