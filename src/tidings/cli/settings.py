"""Settings: the flags by which `up`, `broker` and `config` read options, and what they make of them.

Rule: a flag is an option of config/options.py by another name; nothing has a default here.
Must not know: what a command does with its options. Tests: tests/cli/test_settings.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import click

from tidings.cli.failure import Failure, config_errors
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.load import Loaded, flag_name, load_with_places

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
    config_file: Path | None,
    assignments: tuple[str, ...],
    flags: Mapping[str, object],
    *,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Loaded:
    """The options from file, environment and flags; `--set` is a flag like any other. `typed` names the flags
    that are not called like their option, for errors.
    """
    toml = config_file or (Path(FILE_NAME) if Path(FILE_NAME).is_file() else None)
    given: dict[str, object] = {}
    typed_by_option: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise Failure(f"--set {assignment}: expected NAME=VALUE", code=Exit.USAGE)
        option = name.strip().replace("-", "_")
        given[option] = value.strip()
        typed_by_option[option] = f"--set {assignment}"
    for option, flag in flags.items():
        if flag is not None:
            given[option] = flag
            typed_by_option[option] = typed.get(option, flag_name(option))
    with config_errors():
        return load_with_places(toml, os.environ, given, typed=typed_by_option)


def address(text: str) -> Address:
    """A HOST:PORT flag."""
    try:
        return Address.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}, such as 127.0.0.1:9092") from error
