"""Failure: how a command says that it did not succeed: what, why and what to do, three lines at most.

Rule: what goes wrong for a reason outside our code ends here, never in a traceback.
Must not know: any command. Tests: tests/cli/test_main.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidings.config.exits import Exit
from tidings.config.load import ConfigError


class Failure(Exception):
    """Ends a command with an exit code and up to three lines on stderr."""

    def __init__(self, what: str, why: str = "", hint: str = "", *, code: Exit = Exit.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code


def reason(error: Exception) -> str:
    """An error's words for people: of the system's, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def show(failure: Failure) -> None:
    from tidings.cli.output import styled

    lines = [styled("error: ", fg="red", bold=True, stream=sys.stderr) + failure.what]
    if failure.why:
        lines.append(f"  {failure.why}")
    if failure.hint:
        lines.append(styled("  hint: ", fg="cyan", stream=sys.stderr) + failure.hint)
    sys.stderr.write("\n".join(lines) + "\n")


@contextmanager
def config_errors() -> Iterator[None]:
    """A wrong option, whatever command reads it, ends with one code and the place where it stands."""
    try:
        yield
    except ConfigError as error:
        raise Failure(f"{error.place}: {error.problem}", hint=error.hint, code=Exit.CONFIG) from error
