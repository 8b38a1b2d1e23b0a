"""Kcat, the C command-line client (an older librdkafka), against the cluster. `make test` installs it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final

import pytest

from tests.clients import murmur2
from tests.clients.cluster import Cluster
from tests.clients.contract import AT_ONCE_S, KEYS, PARTITIONS, ReaderContract, WriterContract
from tests.clients.topics import Topics
from tests.clients.witness import ANSWER_S_MAX, Beginning, Last, Message, Offset, Since, Start, Stored

KEY_END: Final = "\x01"
MESSAGE_END: Final = "\x02"
HEAD: Final = re.compile(rb"(\d+) (\d+) (-?\d+) (-?\d+) \[(.*)\]\n")
FORMAT: Final = r"%o %T %K %S [%h]\n%k%s\n"
"""Offset, time, length of key and value (-1 for null) and the headers; then key and value as they are."""
PLACED: Final = re.compile(r"% Message delivered to partition (\d+) \(offset (\d+)\)")


class Kcat:
    """Implements Writer and Reader of witness.py. Kcat administers nothing, and no reader of it is moved."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def write(
        self, topic: str, messages: Sequence[Message], *, compression: str = "none", idempotent: bool = False
    ) -> list[int]:
        options = ["-p", "0", "-z", compression, "-X", f"enable.idempotence={str(idempotent).lower()}"]
        offsets: list[int] = []
        # Headers and the meaning of "nothing" are options of the command, so each kind of message is a run of
        # it.
        for (headers, has_null), alike in groupby(
            messages, lambda message: (message.headers, is_null(message))
        ):
            for name, value in headers:
                assert value is not None, "the command line has no null header beside an empty one"
                options += ["-H", f"{name}={value.decode()}"]
            offsets += [
                offset for _, offset in self._produce(topic, list(alike), options + ["-Z"] * has_null)
            ]
        return offsets

    def place(self, topic: str, keys: Sequence[bytes], *, partitioner: str = "murmur2_random") -> list[int]:
        # Kcat tells where messages went in no certain order, so each is sent alone.
        alone = [[Message(key=key, value=b"")] for key in keys]
        return [self._produce(topic, each, ["-X", f"partitioner={partitioner}"])[0][0] for each in alone]

    def _produce(
        self, topic: str, messages: Sequence[Message], options: Sequence[str]
    ) -> list[tuple[int, int]]:
        """Partition and offset of each, in the order of offsets."""
        lines = [(message.key or b"") + KEY_END.encode() + (message.value or b"") for message in messages]
        done = self._run(
            ["-P", "-t", topic, "-K", KEY_END, "-D", MESSAGE_END, "-vv", *options],
            MESSAGE_END.encode().join(lines),
        )
        placed = [(int(found[1]), int(found[2])) for found in PLACED.finditer(done.stderr.decode())]
        assert len(placed) == len(messages), done.stderr
        return sorted(placed)

    def read(self, topic: str, start: Start, count: int) -> list[Stored]:
        options = ["-C", "-q", "-t", topic, "-p", "0", "-o", first(start), "-c", str(count), "-f", FORMAT]
        return parse(self._run(options, b"").stdout, count)

    @contextmanager
    def follow(self, topic: str) -> Iterator[Callable[[int], list[Stored]]]:
        argv = ["kcat", "-b", self._bootstrap, "-C", "-u", "-t", topic, "-p", "0", "-o", "end", "-c", "1"]
        process = subprocess.Popen(
            [*argv, "-f", FORMAT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(b"% Reached end of topic"), "it stands elsewhere"
            yield lambda count: parse(process.communicate(timeout=ANSWER_S_MAX)[0], count)
        finally:
            process.kill()
            process.communicate()

    def ask_for_group(self, topic: str) -> str:
        argv = ["kcat", "-b", self._bootstrap, "-G", "a-group", topic]
        done = subprocess.run(argv, capture_output=True, timeout=AT_ONCE_S, check=False)
        return done.stderr.decode()

    def metadata(self) -> str:
        return self._run(["-L", "-J"], b"").stdout.decode()

    def _run(self, options: Sequence[str], words: bytes) -> subprocess.CompletedProcess[bytes]:
        argv = ["kcat", "-b", self._bootstrap, *options]
        done = subprocess.run(argv, input=words, capture_output=True, timeout=ANSWER_S_MAX, check=False)
        assert done.returncode == 0, done.stderr
        return done


def is_null(message: Message) -> bool:
    return message.key is None or message.value is None


def first(start: Start) -> str:
    match start:
        case Beginning():
            return "beginning"
        case Offset(value):
            return str(value)
        case Since(timestamp_ms):
            return f"s@{timestamp_ms}"
        case Last(count):
            return str(-count)


def parse(printed: bytes, count: int) -> list[Stored]:
    found: list[Stored] = []
    while len(found) < count:
        head = HEAD.match(printed)
        assert head is not None, printed
        key_bytes, value_bytes = int(head[3]), int(head[4])
        key_end = head.end() + max(key_bytes, 0)
        value_end = key_end + max(value_bytes, 0)
        message = Message(
            key=printed[head.end() : key_end] if key_bytes >= 0 else None,
            value=printed[key_end:value_end] if value_bytes >= 0 else None,
            headers=tuple(header(part) for part in head[5].split(b",") if part),
        )
        found.append(Stored(offset=int(head[1]), timestamp_ms=int(head[2]), message=message))
        printed = printed[value_end + 1 :]
    return found


def header(printed: bytes) -> tuple[str, bytes]:
    name, _, value = printed.partition(b"=")
    return name.decode(), value


class TestKcat(WriterContract, ReaderContract):
    CLIENT = "kcat"

    @pytest.fixture
    def client(self, cluster: Cluster) -> Kcat:
        return Kcat(cluster.bootstrap)

    @pytest.mark.shows("admin: describe a topic")
    def test_describes_topics_and_brokers(self, client: Kcat, topics: Topics, cluster: Cluster) -> None:
        topic = topics.create(partitions=3)

        view = json.loads(client.metadata())

        (described,) = [each for each in view["topics"] if each["topic"] == topic]
        assert [len(partition["replicas"]) for partition in described["partitions"]] == [topics.replicas] * 3
        assert {broker["name"] for broker in view["brokers"]} == set(cluster.addresses)

    @pytest.mark.shows("refused at once: consumer groups")
    def test_a_group_is_refused_with_the_reason(
        self, client: Kcat, topics: Topics, without_groups: None
    ) -> None:
        topic = topics.create()

        said = client.ask_for_group(topic)

        assert "consumer groups are not served" in said

    def test_the_default_partitioner_is_not_javas(self, client: Kcat, topics: Topics) -> None:
        topic = topics.create(partitions=PARTITIONS)

        placed = client.place(topic, KEYS[:8], partitioner="consistent_random")

        assert placed != [murmur2.partition(key, PARTITIONS) for key in KEYS[:8]]
