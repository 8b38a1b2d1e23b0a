"""Messages are published from the argument or from stdin; ids come in order; the first failure ends it."""

import json

import pytest

from tests.cli.conftest import Command
from tests.fakes.cluster_doors import FakeCluster, message
from tidings.config.exits import Exit


def test_one_message_gives_its_id(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news", "hello")

    assert (ended.code, ended.out) == (0, "0-0\n")
    assert cluster.messages == [message(b"hello")]
    assert cluster.asked == [("publish to", "news", -1, 30_000), ("publisher closed",)]


def test_key_headers_and_partition_travel_with_it(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings(
        *("pub", "news", "hello", "-k", "élan", "-H", "a=1", "-H", "b=x=y", "-H", "a="),
        *("--partition", "3", "--timeout", "2.5", "--json"),
    )

    assert json.loads(ended.out) == {"id": "3-0", "topic": "news", "partition": 3, "offset": 0}
    headers = (("a", b"1"), ("b", b"x=y"), ("a", b""))
    assert cluster.messages == [message(b"hello", key="élan".encode(), headers=headers)]
    assert cluster.asked[0] == ("publish to", "news", 3, 2_500)


def test_every_line_of_stdin_is_a_message(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news", stdin=b"one\n\n\xff\x00three\r\nlast")

    assert ended.out == "0-0\n0-1\n0-2\n0-3\n"
    assert [each.value for each in cluster.messages] == [b"one", b"", b"\xff\x00three\r", b"last"]


def test_an_empty_message_is_a_message(tidings: Command, cluster: FakeCluster) -> None:
    tidings("pub", "news", "")

    assert cluster.messages == [message(b"")]


def test_no_lines_are_no_messages(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news")

    assert (ended.code, ended.out, cluster.messages) == (0, "", [])


def test_quiet_prints_no_ids(tidings: Command) -> None:
    assert tidings("pub", "news", "hello", "-q").out == ""


def test_the_first_message_that_is_not_stored_ends_it(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news", stdin=b"one\nbad\nthree\n")

    assert ended.code == Exit.FAILED
    assert ended.out == "0-0\n"
    assert ended.err.splitlines() == [
        "error: message 2 to news was not stored",
        "  Broker: Message size too large",
        "  hint: the topic's setting max.message.bytes says how large a message may be",
    ]
    assert [each.value for each in cluster.messages] == [b"one"]


def test_a_header_without_a_value_is_refused(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news", "hello", "-H", "origin")

    assert ended.code == Exit.USAGE
    assert cluster.asked == []


def test_lines_come_with_keys_of_their_own(tidings: Command, cluster: FakeCluster) -> None:
    tidings("pub", "news", "--key-separator", ":", stdin=b"k1:a\nk2:b\n")

    assert [(each.key, each.value) for each in cluster.messages] == [(b"k1", b"a"), (b"k2", b"b")]


def test_what_sub_printed_is_published_again(tidings: Command, cluster: FakeCluster) -> None:
    tidings("pub", "news", "--json-lines", stdin=b'{"key":"k","value":"a","headers":[]}\n{"value":null}\n')

    assert [(each.key, each.value) for each in cluster.messages] == [(b"k", b"a"), (None, None)]


def test_what_stands_before_a_wrong_line_is_published(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("pub", "news", "--key-separator", ":", stdin=b"k:a\nb\nk:c\n")

    assert (ended.code, ended.out) == (Exit.USAGE, "0-0\n")
    assert "line 2" in ended.err
    assert cluster.asked[-1] == ("publisher closed",)


@pytest.mark.parametrize(
    "flags", [("--json-lines", "--key-separator", ":"), ("a", "--json-lines"), ("a", "--key-separator", ":")]
)
def test_flags_of_lines_are_refused_where_they_say_nothing(
    tidings: Command, cluster: FakeCluster, flags: tuple[str, ...]
) -> None:
    assert tidings("pub", "news", *flags).code == Exit.USAGE
    assert cluster.asked == []
