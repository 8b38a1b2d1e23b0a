"""The commands as users type them, against real brokers: ours, or Apache Kafka's if it is named."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.clients.cluster import Cluster, running_cluster
from tidings.config.exits import Exit

SECONDS_MAX = 40


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


class Shell:
    """Runs `tidings` in a process of its own, pointed at the brokers."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._environment = os.environ | {"TIDINGS_KAFKA": bootstrap}
        self._folder = folder

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "tidings", *arguments],
            input=stdin,
            capture_output=True,
            env=self._environment,
            cwd=self._folder,
            timeout=SECONDS_MAX,
        )

    def lines(self, *arguments: str, stdin: bytes = b"") -> list[bytes]:
        finished = self.run(*arguments, stdin=stdin)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.splitlines()


@pytest.fixture
def shell(brokers: Cluster, tmp_path: Path) -> Shell:
    return Shell(brokers.bootstrap, tmp_path)


@pytest.fixture
def topic(shell: Shell) -> str:
    name = f"commands-{uuid4().hex[:12]}"
    shell.lines("topic", "create", name, "--partitions", "3")
    return name


def test_what_is_published_is_read_back_with_key_and_headers(shell: Shell, topic: str) -> None:
    [stored] = shell.lines("pub", topic, "hello", "-k", "k1", "-H", "origin=desk", "--json")

    [line] = shell.lines("sub", topic, "--from", "earliest", "--no-follow", "--json")

    message = json.loads(line)
    assert message["id"] == json.loads(stored)["id"]
    assert (message["key"], message["value"]) == ("k1", "hello")
    assert message["headers"] == [{"name": "origin", "value": "desk"}]


def test_lines_of_one_key_keep_their_order(shell: Shell, topic: str) -> None:
    lines = [f"line {number}".encode() for number in range(2_000)]

    ids = shell.lines("pub", topic, "-k", "k", stdin=b"\n".join(lines))
    read = shell.lines("sub", topic, "--from", "earliest", "--no-follow")

    assert len(ids) == len(lines)
    assert read == lines


def test_the_last_ones_are_read(shell: Shell, topic: str) -> None:
    shell.lines("pub", topic, "-k", "k", stdin=b"a\nb\nc\nd\n")

    assert shell.lines("sub", topic, "--from", "-2", "--no-follow") == [b"c", b"d"]


def test_messages_are_found_by_time(shell: Shell, topic: str) -> None:
    shell.lines("pub", topic, "now")

    assert shell.lines("sub", topic, "--from", "10m", "--limit", "1") == [b"now"]
    assert shell.lines("sub", topic, "--from", "@4102444800", "--no-follow") == []


def test_a_reader_that_waits_for_a_topic_gets_its_first_message(shell: Shell, brokers: Cluster) -> None:
    name = f"commands-{uuid4().hex[:12]}"
    command = [sys.executable, "-m", "tidings", "sub", name, "--limit", "1", "--kafka", brokers.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stderr is not None
        waiting = reader.stderr.readline()
        shell.lines("topic", "create", name)
        shell.lines("pub", name, "first")

        said, _ = reader.communicate(timeout=SECONDS_MAX)

    assert b"waiting for it" in waiting
    assert said == b"first\n"


def test_status_names_every_broker(shell: Shell, brokers: Cluster, topic: str) -> None:
    [line] = shell.lines("status", "--json")

    said = json.loads(line)
    assert sorted(each["kafka"] for each in said["brokers"]) == sorted(brokers.addresses)
    assert all(each["up"] for each in said["brokers"])
    mine = [each for each in said["partitions"] if each["topic"] == topic]
    assert len(mine) == 3
    assert all(each["leader_epoch"] >= 0 for each in mine)


def test_topics_live_from_create_to_rm(shell: Shell, topic: str) -> None:
    shell.lines("topic", "add-partitions", topic, "--partitions", "4")
    [described] = shell.lines("topic", "describe", topic, "--json")
    shell.lines("topic", "rm", topic, "--yes")
    [listed] = shell.lines("topic", "ls", "--json")

    assert len(json.loads(described)["partitions"]) == 4
    assert topic not in {each["topic"] for each in json.loads(listed)["topics"]}


def test_a_partition_that_is_not_there_takes_no_message(shell: Shell, topic: str) -> None:
    finished = shell.run("pub", topic, "x", "--partition", "77", "--timeout", "5")

    assert finished.returncode == Exit.FAILED
    assert finished.stdout == b""
    assert f"message 1 to {topic} was not stored" in finished.stderr.decode()


def test_a_topic_that_is_not_there_cannot_be_read_to_its_end(shell: Shell) -> None:
    finished = shell.run("sub", "nobody-made-this", "--no-follow")

    assert finished.returncode == Exit.FAILED
    assert b"there is no topic nobody-made-this" in finished.stderr
