"""The lock files: pinned, hashed, of one mind, free of hosts, made from the pyproject.toml beside them."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import GROUPS, compile_command

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENT = re.compile(r"^(?P<pin>[^\s#][^\\]*?)\s*\\?\n(?P<below>(?:[ ]+\S.*\n?)*)", re.MULTILINE)
DIRECT = "via tidings (pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One requirement of a lock file with the hashes and the remarks below it."""

    requirement: Requirement
    below: str

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    @property
    def is_direct(self) -> bool:
        return DIRECT in " ".join(self.below.replace("#", " ").split())


def text_of(group: str) -> str:
    return (ROOT / "requirements" / f"{group}.txt").read_text(encoding="utf-8")


def pins_of(group: str) -> list[Pin]:
    found = REQUIREMENT.finditer(text_of(group))
    return [Pin(requirement=Requirement(pin["pin"]), below=pin["below"]) for pin in found]


def asked_for(group: str) -> list[Requirement]:
    """What pyproject.toml asks for by name in this group."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (
        settings["project"]["dependencies"] if group == "runtime" else settings["dependency-groups"][group]
    )
    return [Requirement(line) for line in lines]


def test_every_group_has_its_lock_file_and_no_file_is_left_over() -> None:
    assert {path.stem for path in (ROOT / "requirements").iterdir()} == set(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_file_names_no_host(group: str) -> None:
    assert "://" not in text_of(group)
    assert not re.search(r"^--", text_of(group), re.MULTILINE)


@pytest.mark.parametrize("group", GROUPS)
def test_every_requirement_is_pinned_and_hashed(group: str) -> None:
    pins = pins_of(group)

    assert pins
    for pin in pins:
        assert re.fullmatch(r"==[\w.+!]+", str(pin.requirement.specifier)), pin
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin.below), pin


def test_the_groups_agree_on_one_version_of_each_package() -> None:
    versions: dict[str, set[str]] = {}
    for group in GROUPS:
        for pin in pins_of(group):
            versions.setdefault(pin.name, set()).add(pin.version)

    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_file_was_made_from_this_pyproject(group: str) -> None:
    asked = {canonicalize_name(requirement.name): requirement.specifier for requirement in asked_for(group)}
    locked = {pin.name: pin.version for pin in pins_of(group) if pin.is_direct}

    assert locked.keys() == asked.keys()
    assert [name for name in asked if locked[name] not in asked[name]] == []


def test_each_group_is_resolved_under_the_pins_of_those_before_it() -> None:
    command = compile_command("test", ["runtime", "bootstrap"])

    assert [command[place + 1] for place, part in enumerate(command) if part == "--constraints"] == [
        "requirements/runtime.txt",
        "requirements/bootstrap.txt",
    ]
    assert {"--generate-hashes", "--universal", "--no-emit-index-url"} <= set(command)
