"""The newest lines are kept, however many are written."""

from __future__ import annotations

from tidings.testing.recent_lines import RecentLines


def test_only_the_newest_lines_are_kept() -> None:
    stream = RecentLines(2)

    for line in ("one\n", "two\n", "three\n"):
        stream.write(line)

    assert stream.lines() == ("two", "three")


def test_it_is_no_terminal() -> None:
    assert not RecentLines(1).isatty()
