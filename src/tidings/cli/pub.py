"""`tidings pub`: publishes a message, or every line of stdin, and prints the id of each once it is stored.

Rule: an id is printed when a majority has the message on disk, in the order of the input; the first message
that is not stored ends the command. Must not know: the protocol. Tests: tests/cli/test_pub.py
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tidings.cli.doors import Doors, cluster_errors, json_option, kafka_option
from tidings.cli.failure import Failure
from tidings.cli.output import remark
from tidings.cli.pub_lines import Line, json_lines, keyed_lines, plain_lines
from tidings.config.exits import Exit
from tidings.kafka.errors import Refused, Unreachable

if TYPE_CHECKING:
    from tidings.kafka.publisher import Outcome

ANY_PARTITION = -1
DELIVERY_SECONDS = 30.0
PROGRESS_SECONDS = 0.5


@click.command()
@click.argument("topic")
@click.argument("message", required=False)
@click.option("-k", "--key", help="Messages of one key are kept in one partition, in order.")
@click.option("-H", "--header", "headers", metavar="H=V", multiple=True, help="A header. May be repeated.")
@click.option("--partition", type=click.IntRange(0), help="The partition, whatever the key says.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=DELIVERY_SECONDS,
    show_default=True,
    help="Seconds after which a message that is not stored has failed.",
)
@click.option("--key-separator", metavar="SEP", help="Each line of stdin is KEY, SEP and the message.")
@click.option(
    "--json-lines",
    "as_json_lines",
    is_flag=True,
    help="Each line of stdin is as `tidings sub --json` prints it.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no ids.")
@json_option
@kafka_option
@click.pass_obj
def pub(
    doors: Doors,
    topic: str,
    message: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timeout: float,
    key_separator: str | None,
    as_json_lines: bool,
    quiet: bool,
    as_json: bool,
    kafka: str,
) -> None:
    """Publish MESSAGE to TOPIC, or every line of stdin as a message.

    Prints PARTITION-OFFSET of each message once a majority of its brokers has it on disk.
    """
    named = [_header(text) for text in headers]
    lines = _messages(message, key_separator, is_json=as_json_lines)
    report = _Report(topic, is_json=as_json, is_quiet=quiet)
    with cluster_errors(kafka, f"nothing was published to {topic}"):
        publisher = doors.publisher(
            kafka,
            topic,
            partition=ANY_PARTITION if partition is None else partition,
            delivery_ms_max=int(timeout * 1000),
            on_outcome=report.outcome,
            on_pause=report.flush,
        )
    try:
        for line in lines:
            own_key = None if key is None else key.encode(errors="surrogateescape")
            publisher.publish(
                line.value,
                key=own_key if line.key is None else line.key,
                headers=[*named, *line.headers],
            )
            if report.failure:
                break
            report.progress()
    finally:
        publisher.close()
        report.flush()
    with cluster_errors(kafka, f"message {report.stored + 1} to {topic} was not stored"):
        if report.failure:
            raise report.failure


class _Report:
    """What came of the messages, told as it comes. `outcome` is called from the publisher's thread."""

    def __init__(self, topic: str, *, is_json: bool, is_quiet: bool) -> None:
        self._topic_json = json.dumps(topic)
        self._is_json = is_json
        self._is_quiet = is_quiet
        self._is_watched = sys.stderr.isatty() and not sys.stdout.isatty()
        self._shown_s = time.monotonic()
        self._is_broken = False
        self.stored = 0
        self.failure: Refused | Unreachable | None = None

    def outcome(self, number: int, outcome: Outcome) -> None:
        if isinstance(outcome, Refused | Unreachable):
            self.failure = self.failure or outcome
            return
        if self.failure is None:
            self.stored = number + 1
        if self._is_quiet:
            return
        if self._is_json:
            where = f'"partition":{outcome.partition},"offset":{outcome.offset}'
            self._write(f'{{"id":"{outcome.message_id}","topic":{self._topic_json},{where}}}\n')
        else:
            self._write(f"{outcome.message_id}\n")

    def flush(self) -> None:
        self._write("", is_last=True)

    def progress(self) -> None:
        """For long input: how many are stored, on a line of the terminal that is written over and over."""
        now_s = time.monotonic()
        if self._is_watched and now_s - self._shown_s > PROGRESS_SECONDS:
            self._shown_s = now_s
            sys.stderr.write(f"\r{self.stored:,} stored ")
            sys.stderr.flush()

    def _write(self, text: str, *, is_last: bool = False) -> None:
        if self._is_broken:
            return
        try:
            sys.stdout.write(text)
            if is_last:
                sys.stdout.flush()
        except BrokenPipeError:
            self._is_broken = True  # nobody reads the ids; the messages are published all the same


def _messages(message: str | None, separator: str | None, *, is_json: bool) -> Iterator[Line]:
    """The one of the command line, or those of stdin."""
    if is_json and separator:
        raise Failure("--json-lines and --key-separator exclude each other", code=Exit.USAGE)
    if message is not None:
        if is_json or separator:
            raise Failure("--json-lines and --key-separator are for lines of stdin", code=Exit.USAGE)
        return plain_lines([message.encode(errors="surrogateescape")])
    if is_json:
        return json_lines(_lines())
    return keyed_lines(_lines(), separator) if separator else plain_lines(_lines())


def _lines() -> Iterator[bytes]:
    """Lines of stdin as bytes, without their ends."""
    if sys.stdin.isatty():
        remark("one message per line; Ctrl-D ends")
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n")


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Failure(f"--header {text}: expected H=V", hint="-H origin=desk", code=Exit.USAGE)
    return name, value.encode(errors="surrogateescape")
