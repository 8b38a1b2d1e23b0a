"""Colours are for people at a terminal who do not mind them; tables are aligned."""

import io

import pytest

from tidings.cli.output import has_colours, styled, table


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_colours() -> None:
    assert styled("x", fg="red", stream=Terminal()) == "\x1b[31mx\x1b[0m"


def test_a_pipe_gets_none() -> None:
    assert styled("x", fg="red", bold=True, stream=io.StringIO()) == "x"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_minds_colours_gets_none(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)

    assert not has_colours(Terminal())


def test_an_empty_no_color_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")

    assert has_colours(Terminal())


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right() -> None:
    lines = table(["name", "count"], [["a", "7"], ["longer", "-120"]])

    assert lines == ["name    count", "a           7", "longer   -120"]
