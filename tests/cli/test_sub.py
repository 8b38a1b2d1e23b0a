"""Messages are printed as they were published, from a position on, until the end or Ctrl-C."""

import json

import pytest

from tests.cli.conftest import Command
from tests.fakes.cluster_doors import FakeCluster, message
from tidings.cli.sub import _printable
from tidings.config.exits import Exit
from tidings.kafka.positions import AtOffset, Edge, Last


@pytest.fixture
def filled(cluster: FakeCluster) -> FakeCluster:
    cluster.add_topic("news", 2)
    cluster.messages = [
        message(b"one", partition=1, offset=7, key=b"k", headers=(("a", b"1"), ("b", None))),
        message(None, offset=0),
        message(b"\xff\x1b", offset=1, key=b"\xfe"),
    ]
    return cluster


def test_by_default_only_what_is_new_is_printed(tidings: Command, filled: FakeCluster) -> None:
    ended = tidings("sub", "news")

    assert (ended.code, ended.out) == (0, "")
    assert filled.asked == [("read", "news", None), ("from", Edge.LATEST, True), ("reader closed",)]


@pytest.mark.parametrize(
    ("text", "position"), [("earliest", Edge.EARLIEST), ("-10", Last(10)), ("42", AtOffset(42))]
)
def test_reading_begins_where_it_is_told(
    tidings: Command, filled: FakeCluster, text: str, position: object
) -> None:
    tidings("sub", "news", "--from", text, "--no-follow", "--partition", "1")

    assert filled.asked[:2] == [("read", "news", 1), ("from", position, False)]


def test_a_position_that_is_none_is_refused(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("sub", "news", "--from", "yesterday")

    assert ended.code == Exit.USAGE
    assert "'yesterday' is none of earliest, latest" in ended.err
    assert cluster.asked == []


def test_values_are_printed_byte_for_byte(tidings: Command, filled: FakeCluster) -> None:
    ended = tidings("sub", "news", "--from", "earliest", "--no-follow")

    assert ended.out.encode(errors="surrogateescape") == b"one\n\n\xff\x1b\n"


def test_id_key_and_headers_stand_before_the_value(tidings: Command, filled: FakeCluster) -> None:
    filled.messages = filled.messages[:2]

    ended = tidings("sub", "news", "--from", "earliest", "--no-follow", "-i", "-k", "-H")

    assert ended.out == "1-7\tk\ta=1,b=\tone\n0-0\t\t\t\n"


def test_json_tells_text_from_bytes_and_null_from_empty(tidings: Command, filled: FakeCluster) -> None:
    ended = tidings("sub", "news", "--from", "earliest", "--no-follow", "--json")

    first, second, third = map(json.loads, ended.out.splitlines())
    assert first == {
        "id": "1-7",
        "topic": "news",
        "partition": 1,
        "offset": 7,
        "timestamp": 1_700_000_000_000,
        "key": "k",
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
        "value": "one",
    }
    assert (second["key"], second["value"]) == (None, None)
    assert (third["key_base64"], third["value_base64"]) == ("/g==", "/xs=")


def test_a_limit_ends_reading(tidings: Command, filled: FakeCluster) -> None:
    ended = tidings("sub", "news", "--from", "earliest", "--limit", "1")

    assert (ended.code, ended.out) == (0, "one\n")
    assert filled.asked[-1] == ("reader closed",)


def test_ctrl_c_is_how_following_ends(tidings: Command, filled: FakeCluster) -> None:
    filled.messages = filled.messages[:1]

    ended = tidings("sub", "news", "--from", "earliest")

    assert (ended.code, ended.out, ended.err) == (0, "one\n", "")


def test_a_terminal_is_not_obeyed_by_what_was_published() -> None:
    assert _printable(b"a\tb \xc3\xa9 \x1b[2J \xff\x07\n") == b"a\tb \xc3\xa9 \\x1b[2J \\xff\\x07\\n"


def test_an_offset_behind_the_end_is_told(tidings: Command, cluster: FakeCluster) -> None:
    cluster.add_topic("news", 1)

    ended = tidings("sub", "news", "--from", "42", "--no-follow")

    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "topic news ends at offset 0, before 42\n"
