"""Lines are messages alone, with keys, or as JSON; one that is not is named by its number."""

import pytest

from tidings.cli.failure import Failure
from tidings.cli.pub_lines import Line, json_lines, keyed_lines, plain_lines


def test_a_line_is_a_message() -> None:
    assert list(plain_lines([b"a", b""])) == [Line(value=b"a"), Line(value=b"")]


def test_what_stands_before_the_separator_is_the_key() -> None:
    assert list(keyed_lines([b"k:a:b", b":"], ":")) == [
        Line(key=b"k", value=b"a:b"),
        Line(key=b"", value=b""),
    ]


def test_a_line_without_the_separator_is_named() -> None:
    with pytest.raises(Failure, match="line 2 has no '::'"):
        list(keyed_lines([b"k::a", b"k:a"], "::"))


def test_json_is_taken_as_sub_prints_it() -> None:
    line = (
        b'{"id":"0-1","topic":"t","partition":0,"offset":1,"timestamp":5,"key_base64":"/w==",'
        b'"headers":[{"name":"a","value":"1"},{"name":"b","value":null}],"value":"h"}'
    )

    assert list(json_lines([line])) == [Line(key=b"\xff", value=b"h", headers=(("a", b"1"), ("b", None)))]


def test_a_value_of_null_is_none() -> None:
    assert list(json_lines([b'{"key":"k","value":null}'])) == [Line(key=b"k", value=None)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"hello", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no value"),
        (b'{"value":1}', "value is no text"),
        (b'{"value_base64":"?"}', "value_base64 is not base64"),
        (b'{"value":"a","headers":1}', "headers is no list"),
        (b'{"value":"a","headers":[{}]}', "no name"),
    ],
)
def test_what_is_no_message_is_named(line: bytes, problem: str) -> None:
    with pytest.raises(Failure, match="line 2 is no message") as caught:
        list(json_lines([b'{"value":"a"}', line]))

    assert problem in caught.value.why
