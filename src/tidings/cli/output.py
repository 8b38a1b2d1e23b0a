"""Output: what goes to the terminal, and how: results on stdout, all else on stderr, colours only for people.

Rule: a colour never reaches a file or a pipe, and NO_COLOR turns all off. Must not know: any command.
Tests: tests/cli/test_output.py
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, *, fg: str | None = None, bold: bool = False, stream: TextIO | None = None) -> str:
    """The text in a colour if `stream` (stdout) takes it."""
    return click.style(text, fg=fg, bold=bold or None) if has_colours(stream or sys.stdout) else text


def say(text: str = "") -> None:
    """A line of the result, flushed: who reads it may be waiting for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say_json(value: object) -> None:
    """A line of the result for programs."""
    say(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def remark(text: str) -> None:
    """A line beside the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    remark(styled("warning: ", fg="yellow", bold=True, stream=sys.stderr) + text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns, each as wide as its widest cell; numbers to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    numeric = [all(row[column].lstrip("-").isdigit() for row in rows) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    return [styled(line(header), bold=True), *(line(row) for row in rows)]
