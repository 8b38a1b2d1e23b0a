"""`tidings config`: every option with unit, default, value, source and reason.

Rule: it reads exactly what a broker started here would read. Must not know: what an option does.
Tests: tests/cli/test_config.py
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click

from tidings.cli.output import say, say_json, styled
from tidings.cli.settings import read_settings, setting_options
from tidings.config.load import SOURCE_DEFAULT, Described, describe


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@setting_options
def config(as_json: bool, config_file: Path | None, assignments: tuple[str, ...]) -> None:
    """Show every option, its value, where the value comes from, and why the default is what it is.

    Options are read from tidings.toml, then from the environment (TIDINGS_NAME), then from flags (--set
    NAME=VALUE).
    """
    described = list(describe(read_settings(config_file, assignments, {})))
    if as_json:
        say_json({each.name: _json_of(each) for each in described})
        return
    width = max(len(each.name) for each in described)
    for group, of_group in groupby(described, key=lambda each: each.group):
        say(styled(f"# {group}", bold=True))
        for each in of_group:
            _print_option(each, width)
        say()


def _print_option(each: Described, width: int) -> None:
    value = _toml_of(each.value)
    unit = f" {each.unit}" if each.unit else ""
    is_set = each.source != SOURCE_DEFAULT
    origin = f"  ({each.source}; default {_toml_of(each.default)})" if is_set else ""
    say(f"{each.name:{width}} = {styled(value, fg='green' if is_set else None)}{unit}{origin}")
    say(styled(f"{'':{width}}   {each.reason}", fg="bright_black"))


def _toml_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{each}"' for each in value) + "]"
    return '""' if value is None else f'"{value}"'


def _json_of(each: Described) -> dict[str, object]:
    return {
        "value": _plain(each.value),
        "unit": each.unit,
        "default": _plain(each.default),
        "source": each.source,
        "reason": each.reason,
        "group": each.group,
    }


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
