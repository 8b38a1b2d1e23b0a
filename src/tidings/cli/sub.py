"""`tidings sub`: prints the messages of a topic, one per line.

Rule: bytes leave as they were published, except on a terminal, which control characters could harm.
Must not know: the protocol. Tests: tests/cli/test_sub.py
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from tidings.cli.doors import Doors, MessageReader, cluster_errors, json_option, kafka_option
from tidings.cli.failure import Failure
from tidings.cli.output import remark
from tidings.config.exits import Exit

if TYPE_CHECKING:
    from tidings.kafka.positions import Position
    from tidings.kafka.reader import Received

APPEARANCE_CHECK_SECONDS = 0.5


@click.command()
@click.argument("topic")
@click.option("--from", "begin", metavar="POSITION", default="latest", show_default=True, help="See above.")
@click.option("--limit", type=click.IntRange(1), help="End after so many messages.")
@click.option("--partition", type=click.IntRange(0), help="Read this partition only.")
@click.option("--follow/--no-follow", default=True, help="Wait for new messages, or end at the end. [follow]")
@click.option("-k", "--key", "with_key", is_flag=True, help="Print the key before the message.")
@click.option("-H", "--headers", "with_headers", is_flag=True, help="Print the headers before the message.")
@click.option("-i", "--id", "with_id", is_flag=True, help="Print PARTITION-OFFSET before the message.")
@json_option
@kafka_option
@click.pass_obj
def sub(
    doors: Doors,
    topic: str,
    begin: str,
    limit: int | None,
    partition: int | None,
    follow: bool,
    with_key: bool,
    with_headers: bool,
    with_id: bool,
    as_json: bool,
    kafka: str,
) -> None:
    """Print the messages of TOPIC, one per line, until Ctrl-C.

    \b
    POSITION  earliest           the oldest message that is kept
              latest             only what is published from now on
              -10                the last ten messages of the topic
              42                 offset 42 of every partition
              10m 2h 7d          so long ago (s, m, h, d)
              2026-11-19T08:30   a time, local unless it names a zone
              @1763541000        a time in seconds since 1970
    """
    position = _position(begin)
    write = _writer(as_json, with_id=with_id, with_key=with_key, with_headers=with_headers)
    with cluster_errors(kafka, f"topic {topic} cannot be read"):
        reader = doors.reader(kafka, topic, partition=partition)
        try:
            if follow and not reader.topic_exists():
                position = _wait_for(reader, topic, position)
            received = reader.read(
                position,
                follow=follow,
                on_idle=sys.stdout.flush,
                on_beyond=lambda end: remark(f"topic {topic} ends at offset {end}, before {begin}"),
            )
            for message in islice(received, limit):
                write(message)
        except KeyboardInterrupt:
            if not follow:
                raise  # otherwise it is how reading ends
        finally:
            reader.close()
        sys.stdout.flush()


def _position(text: str) -> Position:
    from tidings.kafka.positions import PositionError, parse_position

    try:
        return parse_position(text, now_ms=time.time_ns() // 1_000_000)
    except PositionError as error:
        raise Failure(f"--from {error}", hint="tidings sub --help", code=Exit.USAGE) from error


def _wait_for(reader: MessageReader, topic: str, position: Position) -> Position:
    """Waits until the topic is there. All that it holds then is new, so `latest` begins at its start."""
    from tidings.kafka.positions import Edge

    remark(f"there is no topic {topic} yet: waiting for it")
    while not reader.topic_exists():
        time.sleep(APPEARANCE_CHECK_SECONDS)
    return Edge.EARLIEST if position is Edge.LATEST else position


def _writer(
    as_json: bool, *, with_id: bool, with_key: bool, with_headers: bool
) -> Callable[[Received], None]:
    if as_json:
        return lambda message: _write_bytes(
            json.dumps(_as_json(message), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        )
    clean = _printable if sys.stdout.isatty() else bytes

    def write(message: Received) -> None:
        parts: list[bytes] = []
        if with_id:
            parts.append(f"{message.partition}-{message.offset}".encode())
        if with_key:
            parts.append(clean(message.key or b""))
        if with_headers:
            parts.append(clean(b",".join(_header_parts(message))))
        parts.append(clean(message.value or b""))
        _write_bytes(b"\t".join(parts) + b"\n")

    return write


def _header_parts(message: Received) -> Iterator[bytes]:
    for name, value in message.headers:
        yield name.encode() + b"=" + (value or b"")


def _write_bytes(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def _printable(line: bytes) -> bytes:
    """The text with everything escaped that a terminal might obey."""
    text = line.decode(errors="backslashreplace")
    return "".join(
        each if each.isprintable() or each == "\t" else each.encode("unicode_escape").decode()
        for each in text
    ).encode()


def _as_json(message: Received) -> dict[str, object]:
    """Text where the bytes are text; `key_base64` and the like where they are not."""
    fields: dict[str, object] = {
        "id": f"{message.partition}-{message.offset}",
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
        **_text_or_base64("key", message.key),
        "headers": [{"name": name, **_text_or_base64("value", value)} for name, value in message.headers],
        **_text_or_base64("value", message.value),
    }
    return fields


def _text_or_base64(name: str, value: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode()}
