"""Settings: the flags by which `up`, `broker` and `config` read options, and what they make of them.

Rule: a flag is an option of config/options.py by another name; nothing has a default here.
Must not know: what a command does with its options. Tests: tests/cli/test_settings.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from tidings.cli.failure import Failure, config_errors
from tidings.config.exits import Exit
from tidings.config.load import Loaded, load_with_places
from tidings.config.options import PORT_MAX

FILE_NAME = "tidings.toml"

F = TypeVar("F", bound=Callable[..., object])


def setting_options(command: F) -> F:
    """`--config FILE` and `--set NAME=VALUE`."""
    command = click.option(
        "--set",
        "assignments",
        metavar="NAME=VALUE",
        multiple=True,
        help="Set any option; `tidings config` lists them. May be repeated.",
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="TIDINGS_CONFIG",
        help=f"File of options.  [default: {FILE_NAME} in this folder, if there is one]",
    )(command)


def read_settings(
    config_file: Path | None, assignments: tuple[str, ...], flags: Mapping[str, object]
) -> Loaded:
    """The options from file, environment and flags; `--set` is a flag like any other."""
    toml = config_file or (Path(FILE_NAME) if Path(FILE_NAME).is_file() else None)
    given: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise Failure(f"--set {assignment}: expected NAME=VALUE", code=Exit.USAGE)
        given[name.strip().replace("-", "_")] = value.strip()
    given.update({name: value for name, value in flags.items() if value is not None})
    with config_errors():
        return load_with_places(toml, os.environ, given)


def address(text: str) -> tuple[str, int]:
    """HOST:PORT as a host and a port; an IPv6 host stands in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise click.BadParameter(f"'{text}' is not HOST:PORT, such as 127.0.0.1:9092")
    return host.removeprefix("[").removesuffix("]"), int(port)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
