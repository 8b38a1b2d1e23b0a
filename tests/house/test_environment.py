"""Set-up, run as a person runs it, in a copy of the house where a scripted `uv` stands in for uv."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 30
# Writes down what it was asked, and makes what the real one would leave: an interpreter and our command.
SCRIPTED_UV = """#!{python}
import os, sys
from pathlib import Path

root = Path({root!r})
with open(root / "asked.txt", "a") as asked:
    print(*sys.argv[1:], file=asked)
if (root / "uv-fails").exists():
    sys.exit(3)
programs = root / ".venv" / "bin"
programs.mkdir(parents=True, exist_ok=True)
if not (programs / "python").exists():
    os.symlink({python!r}, programs / "python")
(programs / "tidings").write_text("#!/bin/sh\\necho started: $*\\n")
(programs / "tidings").chmod(0o755)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A clone's Makefile, tools and requirements in an empty folder; a PATH that holds the scripted uv."""

    root: Path
    path: str

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": self.path, "PYTHON": sys.executable, "HOME": str(self.root)}
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def set_up(self, level: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "tools/environment.py", level)

    @property
    def asked(self) -> list[str]:
        """What uv was asked so far, a line per command."""
        record = self.root / "asked.txt"
        return record.read_text().splitlines() if record.exists() else []

    @property
    def stamps(self) -> set[str]:
        return {path.name for path in (self.root / ".venv").glob(".installed-*")}


@pytest.fixture
def house(tmp_path: Path) -> House:
    for name in ("Makefile", "pyproject.toml", "tools", "requirements"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    programs = tmp_path / "programs"
    programs.mkdir()
    uv = programs / "uv"
    uv.write_text(SCRIPTED_UV.format(python=sys.executable, root=str(tmp_path)))
    uv.chmod(0o755)
    return House(root=tmp_path, path=os.pathsep.join((str(programs), os.defpath)))


def test_develop_installs_every_lock_file_with_its_hashes_then_the_project_from_here(house: House) -> None:
    finished = house.set_up("develop")

    assert finished.returncode == 0, finished.stderr
    made, locks, project = house.asked
    assert made.startswith("venv ")
    assert "--require-hashes" in locks
    assert [Path(part).stem for part in locks.split() if part.endswith(".txt")] == [
        "runtime",
        "build",
        "test",
        "check",
    ]
    assert project.endswith(f"--no-deps --no-build-isolation --editable {house.root}")
    assert house.stamps == {".installed-runtime", ".installed-develop"}


def test_runtime_installs_nothing_that_only_developers_need(house: House) -> None:
    finished = house.set_up("runtime")

    assert finished.returncode == 0, finished.stderr
    assert "test.txt" not in " ".join(house.asked)
    assert house.stamps == {".installed-runtime"}


def test_an_environment_that_runs_is_kept(house: House) -> None:
    house.set_up("runtime")
    kept = house.root / ".venv" / "kept"
    kept.touch()

    house.set_up("develop")

    assert kept.exists()
    assert [line for line in house.asked if line.startswith("venv")] == house.asked[:1]


def test_an_environment_whose_python_is_gone_is_made_anew(house: House) -> None:
    programs = house.root / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(house.root / "gone")

    finished = house.set_up("runtime")

    assert finished.returncode == 0, finished.stderr
    assert house.asked[0].startswith("venv ")


def test_the_uv_of_the_environment_serves_where_the_machine_has_none(house: House) -> None:
    programs = house.root / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    shutil.move(house.root / "programs" / "uv", programs / "uv")

    finished = house.set_up("runtime")

    assert finished.returncode == 0, finished.stderr
    assert len(house.asked) == 3, house.asked  # asked for its version, then the two installations


def test_a_failed_installation_is_one_line_and_leaves_no_stamp(house: House) -> None:
    house.set_up("runtime")
    shutil.rmtree(house.root / ".venv")
    (house.root / "uv-fails").touch()

    finished = house.set_up("develop")

    assert finished.returncode == 1
    [installing, line] = finished.stderr.splitlines()
    assert installing.startswith("tidings set-up: installing into .venv")
    assert line.startswith("tidings set-up: this failed with exit code 3: ")
    assert house.stamps == set()


def test_an_unknown_level_is_answered_with_the_levels_there_are(house: House) -> None:
    finished = house.set_up("everything")

    assert finished.returncode == 1
    assert "runtime|develop|programs" in finished.stderr


def test_a_missing_program_of_the_tests_is_named_and_stops_nothing(house: House) -> None:
    nowhere = House(root=house.root, path=str(house.root))

    finished = nowhere.set_up("programs")

    assert finished.returncode == 0
    assert "kcat" in finished.stderr


def test_make_up_installs_once_and_hands_its_options_on(house: House) -> None:
    first = house.run("make", "up", "ARGS=--brokers 1")
    asked_by_the_first = house.asked

    second = house.run("make", "up")

    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stdout == "started: up --brokers 1\n"
    assert second.stdout == "started: up\n"
    assert house.asked == asked_by_the_first


def test_make_installs_again_when_a_lock_file_is_newer(house: House) -> None:
    house.run("make", "up")
    asked_before = len(house.asked)
    in_an_hour = (house.root / ".venv" / ".installed-runtime").stat().st_mtime + 3600
    os.utime(house.root / "requirements" / "runtime.txt", (in_an_hour, in_an_hour))

    house.run("make", "up")

    assert len(house.asked) == asked_before + 2


def test_make_says_in_one_line_that_the_python_is_too_old(house: House) -> None:
    finished = house.run("make", "up", "PYTHON=false")

    assert finished.returncode != 0
    assert "Python 3.11 or newer is needed" in finished.stderr.splitlines()[0]
    assert house.asked == []


def test_make_alone_lists_every_target(house: House) -> None:
    finished = house.run("make")

    listed = {line.split()[1] for line in finished.stdout.splitlines()}
    assert listed == {
        *("up", "test", "test-long", "check", "format", "bench", "compatibility", "lock", "clean", "help")
    }
