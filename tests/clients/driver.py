"""Driver: clients of other languages as witnesses, by programs that answer a JSON request per line.

The one rule: the requests are the methods of witness.py's ports, so that one contract holds for all.
Must not know: which program answers (java/Witness.java, javascript/witness.js).
"""

from __future__ import annotations

import base64
import json
import selectors
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from bench import processes
from tests.clients.deadline import Deadline
from tests.clients.witness import (
    Beginning,
    ClusterView,
    Last,
    Message,
    Offset,
    Since,
    Start,
    Stored,
    TopicView,
)

ASK_S_MAX = 45.0
"""Longer than the programs wait themselves, so that they can say what they waited for."""

Row = Mapping[str, object]


class Refusal(Exception):
    """The client reported an error: its name and text."""


class Program:
    """A running program, and its answers in the order of the requests."""

    def __init__(self, argv: Sequence[str], *, log: Path) -> None:
        self._log = log
        with log.open("a") as sink:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                start_new_session=True,
                text=True,
            )

    def wait_until_up(self) -> None:
        """Compiling and starting takes seconds that no test should count."""
        self.ask("topic_names")

    def ask(self, what: str, **arguments: object) -> object:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._line(what))
        if "error" in answer:
            raise Refusal(answer["error"])
        return cast(object, answer["result"])

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        processes.end(self._process)

    def _line(self, what: str) -> str:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            deadline = Deadline(ASK_S_MAX, f"the answer to {what}")
            while not selector.select(deadline.left_s()):
                pass
        line = self._process.stdout.readline()
        assert line, processes.last_lines(self._log)
        return line


class Driven:
    """Implements all ports of witness.py by asking a program."""

    def __init__(self, program: Program) -> None:
        self._ask = program.ask

    # Writer

    def write(
        self, topic: str, messages: Sequence[Message], *, compression: str = "none", idempotent: bool = False
    ) -> list[int]:
        places = self._write(topic, messages, partition=0, compression=compression, idempotent=idempotent)
        assert {partition for partition, _ in places} == {0}
        return [offset for _, offset in places]

    def place(self, topic: str, keys: Sequence[bytes]) -> list[int]:
        messages = [Message(key=key, value=b"") for key in keys]
        places = self._write(topic, messages, partition=None, compression="none", idempotent=False)
        return [partition for partition, _ in places]

    def _write(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        partition: int | None,
        compression: str,
        idempotent: bool,
    ) -> list[tuple[int, int]]:
        answer = self._ask(
            "write",
            topic=topic,
            messages=[as_row(message) for message in messages],
            partition=partition,
            compression=compression,
            idempotent=idempotent,
        )
        return [(partition, offset) for partition, offset in cast(list[list[int]], answer)]

    # Reader and Seeker

    def read(self, topic: str, start: Start, count: int) -> list[Stored]:
        return stored_rows(self._ask("read", topic=topic, start=start_row(start), count=count))

    def read_at(self, topic: str, offsets: Sequence[int]) -> list[Stored]:
        return stored_rows(self._ask("read_at", topic=topic, offsets=list(offsets)))

    @contextmanager
    def follow(self, topic: str) -> Iterator[Callable[[int], list[Stored]]]:
        self._ask("follow", topic=topic)
        try:
            yield lambda count: stored_rows(self._ask("next", count=count))
        finally:
            self._ask("leave")

    # Refused

    def ask_for_group(self, topic: str) -> str:
        return self._refusal("group", topic)

    def ask_for_transactions(self) -> str:
        return self._refusal("transactions", "")

    def _refusal(self, what: str, topic: str) -> str:
        try:
            taken = self._ask(what, topic=topic)
        except Refusal as refusal:
            return str(refusal)
        raise AssertionError(taken)

    # Administrator

    def create_topic(
        self, topic: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        self._ask(
            "create_topic", topic=topic, partitions=partitions, replicas=replicas, settings=dict(settings)
        )

    def topic_names(self) -> set[str]:
        return set(cast(list[str], self._ask("topic_names")))

    def describe_topic(self, topic: str) -> TopicView:
        partitions = cast(list[Row], self._ask("describe_topic", topic=topic))
        return TopicView(
            leaders=tuple(cast(int, partition["leader"]) for partition in partitions),
            replicas=tuple(numbers(partition["replicas"]) for partition in partitions),
            in_sync=tuple(numbers(partition["in_sync"]) for partition in partitions),
        )

    def delete_topic(self, topic: str) -> None:
        self._ask("delete_topic", topic=topic)

    def add_partitions(self, topic: str, total: int) -> None:
        self._ask("add_partitions", topic=topic, total=total)

    def settings(self, topic: str) -> Mapping[str, str]:
        return cast(Mapping[str, str], self._ask("settings", topic=topic))

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        self._ask("change_settings", topic=topic, settings=dict(settings))

    def delete_records(self, topic: str, before_offset: int) -> int:
        return cast(int, self._ask("delete_records", topic=topic, before=before_offset))

    def describe_cluster(self) -> ClusterView:
        view = cast(Row, self._ask("describe_cluster"))
        addresses = cast(Mapping[str, str], view["addresses"])
        return ClusterView(
            addresses={int(broker): address for broker, address in addresses.items()},
            controller=cast(int, view["controller"]),
        )


def numbers(row: object) -> frozenset[int]:
    return frozenset(cast(list[int], row))


def start_row(start: Start) -> Row:
    match start:
        case Beginning():
            return {"kind": "beginning", "value": 0}
        case Offset(value):
            return {"kind": "offset", "value": value}
        case Since(timestamp_ms):
            return {"kind": "since", "value": timestamp_ms}
        case Last(count):
            return {"kind": "last", "value": count}


def as_row(message: Message) -> Row:
    return {
        "key": as_text(message.key),
        "value": as_text(message.value),
        "headers": [[name, as_text(value)] for name, value in message.headers],
    }


def stored_rows(rows: object) -> list[Stored]:
    return [
        Stored(
            offset=cast(int, row["offset"]),
            timestamp_ms=cast(int, row["timestamp_ms"]),
            message=Message(
                key=as_octets(row["key"]),
                value=as_octets(row["value"]),
                headers=tuple(
                    (name, as_octets(value)) for name, value in cast(list[tuple[str, str]], row["headers"])
                ),
            ),
        )
        for row in cast(list[Row], rows)
    ]


def as_text(octets: bytes | None) -> str | None:
    """JSON has no bytes: they travel in Base64, and null stays null."""
    return None if octets is None else base64.b64encode(octets).decode()


def as_octets(text: object) -> bytes | None:
    return None if text is None else base64.b64decode(cast(str, text))
