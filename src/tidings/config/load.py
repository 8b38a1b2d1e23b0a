"""Load: options from `tidings.toml`, the environment (`TIDINGS_*`) and flags; each is stronger than the last.

Rule: an unknown or wrong option stops the start, with the place where it stands and the nearest right name.
Must not know: what an option means. Tests: tests/config/test_load.py
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import cast

from tidings.config.options import Config, OptionError, about

ENVIRONMENT_PREFIX = "TIDINGS_"
# Not options of a broker: the file to read, the cluster that commands talk to, and whatever tests are told.
ENVIRONMENT_OF_COMMANDS = frozenset({"TIDINGS_CONFIG", "TIDINGS_KAFKA"})
ENVIRONMENT_PREFIX_OF_TESTS = "TIDINGS_TEST_"
SOURCE_DEFAULT = "default"

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_PLACE_IN_MESSAGE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

Value = int | bool | str | Path | tuple[str, ...] | None


class ConfigError(Exception):
    """What is wrong, where it stands (`tidings.toml:3`), and what to do about it."""

    def __init__(self, place: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{place}: {problem}" + (f"; {hint}" if hint else ""))
        self.place = place
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One option as it was given: its name, its raw value, and where it stands."""

    name: str
    value: object
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The options, and for each that was set the place that set it."""

    config: Config
    place_by_option: Mapping[str, str]


def load(toml: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    return load_with_places(toml, environment, flags).config


def load_with_places(
    toml: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Loaded:
    """`flags` hold values or texts by option name; None: the flag was not given. `typed` is what was typed
    for an option, where that is not the flag of its name.
    """
    kind_by_option = {each.name: _kind_of(each) for each in fields(Config)}
    values: dict[str, Value] = {}
    place_by_option: dict[str, str] = {}
    for setting in _settings(toml, environment, flags, typed):
        if setting.name not in kind_by_option:
            if isinstance(setting.value, dict):
                raise _section_error(setting, kind_by_option)
            raise ConfigError(setting.place, f"unknown option '{setting.name}'", _nearest(setting.name))
        values[setting.name] = _value_of(setting, kind_by_option[setting.name])
        place_by_option[setting.name] = setting.place
    try:
        config = Config(**values)  # type: ignore[arg-type]  # each value was just made of its field's kind
    except OptionError as error:
        place = place_by_option.get(error.option, SOURCE_DEFAULT)
        raise ConfigError(place, f"{error.option}: {error.problem}", error.hint) from error
    return Loaded(config=config, place_by_option=place_by_option)


def flag_name(option: str) -> str:
    return "--" + option.replace("_", "-")


def _section_error(setting: Setting, options: Collection[str]) -> ConfigError:
    """Whoever writes a [section] has options in it; they are wanted without it."""
    assert isinstance(setting.value, dict), setting
    known = next((name for name in setting.value if name in options), None)
    example = f"{known} = ... at the top" if known else "NAME = VALUE lines at the top"
    problem = f"unknown option '{setting.name}': sections are not used"
    return ConfigError(setting.place, problem, f"write {example}")


def _settings(
    toml: Path | None, environment: Mapping[str, str], flags: Mapping[str, object], typed: Mapping[str, str]
) -> Iterator[Setting]:
    if toml is not None:
        yield from _settings_of_file(toml)
    for variable, text in sorted(environment.items()):
        if _is_option(variable):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            yield Setting(name=name, value=text, place=f"environment {variable}")
    for name, value in flags.items():
        if value is not None:
            yield Setting(name=name, value=value, place=typed.get(name, f"flag {flag_name(name)}"))


def _is_option(variable: str) -> bool:
    is_other = variable in ENVIRONMENT_OF_COMMANDS or variable.startswith(ENVIRONMENT_PREFIX_OF_TESTS)
    return variable.startswith(ENVIRONMENT_PREFIX) and not is_other


def _settings_of_file(toml: Path) -> Iterator[Setting]:
    try:
        text = toml.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigError(str(toml), f"cannot be read: {reason}") from error
    try:
        value_by_name = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _PLACE_IN_MESSAGE.search(message)
        place = f"{toml}:{found[1]}:{found[2]}" if found and found[1] else f"{toml}:{len(text.splitlines())}"
        raise ConfigError(place, f"not TOML: {_PLACE_IN_MESSAGE.sub('', message)}") from error
    for name, value in value_by_name.items():
        yield Setting(name=name, value=value, place=f"{toml}:{_line_of(name, text)}")


def _line_of(name: str, text: str) -> int:
    """The line where an option or a table begins; tomllib tells no places."""
    begins = re.compile(rf"""\s*(?:\[+\s*)?["']?{re.escape(name)}["']?\s*[=.\]]""")
    for line, content in enumerate(text.splitlines(), start=1):
        if begins.match(content):
            return line
    return 1


def _kind_of(each: Field[object]) -> type:
    return Path if each.default is None else type(each.default)


def _value_of(setting: Setting, kind: type) -> Value:
    value = setting.value
    if isinstance(value, str) and kind is not str:
        return _parsed(setting, value, kind)
    if kind is tuple and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if isinstance(value, dict):
        raise ConfigError(setting.place, f"{setting.name} is no table", "options stand without [tables]")
    # bool is a kind of int in Python, and never one here.
    if isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
        return cast(Value, value)
    raise ConfigError(setting.place, f"{setting.name} is {_NAME_OF_KIND[kind]}, not {value!r}")


def _parsed(setting: Setting, text: str, kind: type) -> Value:
    if kind is Path and text:
        return Path(text).expanduser()
    if kind is tuple:
        return tuple(each.strip() for each in text.split(",") if each.strip())
    if kind is bool and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if kind is int and re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", text):
        return int(text)
    raise ConfigError(setting.place, f"{setting.name} is {_NAME_OF_KIND[kind]}, not '{text}'")


_NAME_OF_KIND = {
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    tuple: "a list of texts",
    Path: "a path",
}


def _nearest(name: str) -> str:
    names = [each.name for each in fields(Config)]
    close = get_close_matches(name.replace("-", "_").lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "`tidings config` lists them all"


def describe(loaded: Loaded) -> Iterator[Described]:
    """Every option with all that is known of it, in the order of the declaration."""
    for each in fields(Config):
        known = about(each)
        yield Described(
            name=each.name,
            group=known.group,
            unit=known.unit,
            value=getattr(loaded.config, each.name),
            default=cast(Value, each.default),
            source=loaded.place_by_option.get(each.name, SOURCE_DEFAULT),
            reason=known.reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One option as `tidings config` prints it."""

    name: str
    group: str
    unit: str
    value: Value
    default: Value
    source: str
    reason: str
