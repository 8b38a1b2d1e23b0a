"""`tidings config` shows what a broker started here would read."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tidings.config.exits import Exit
from tidings.config.options import Config


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_option_is_shown_with_unit_default_source_and_reason(
    tidings: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "tidings.toml").write_text('\nrack = "east"\n')
    monkeypatch.setenv("TIDINGS_BEAT_INTERVAL_MS", "100")

    ended = tidings("config", "--json", "--set", "join=a:1,b:2")

    said = json.loads(ended.out)
    assert set(said) == set(Config.__dataclass_fields__)
    assert said["beat_interval_ms"] == {
        "value": 100,
        "unit": "ms",
        "default": 150,
        "source": "environment TIDINGS_BEAT_INTERVAL_MS",
        "reason": said["beat_interval_ms"]["reason"],
        "group": "raft",
    }
    assert said["rack"]["source"] == "tidings.toml:2"
    assert said["join"]["value"] == ["a:1", "b:2"]
    assert said["data_folder"]["value"] is None


def test_people_see_what_was_set_and_by_whom(tidings: Command) -> None:
    lines = tidings(
        "config", "--set", "wal-bytes-max=268435456", "--set", "data_folder=/srv"
    ).out.splitlines()

    [changed] = [line for line in lines if line.startswith("wal_bytes_max")]
    assert changed.endswith("= 268_435_456 bytes  (--set wal-bytes-max=268435456; default 268_435_456)")
    [folder] = [line for line in lines if line.startswith("data_folder")]
    assert '"/srv"' in folder
    assert lines[0] == "# up"


def test_a_named_file_is_read_instead_of_the_one_here(tidings: Command, here: Path) -> None:
    (here / "tidings.toml").write_text("nonsense")
    (here / "other.toml").write_text("broker_id = 9\n")

    ended = tidings("config", "--json", "--config", "other.toml")

    assert json.loads(ended.out)["broker_id"]["value"] == 9


@pytest.mark.parametrize("command", [["config"], ["up"], ["broker", "--data", "d"]])
def test_a_wrong_option_stops_every_command_with_its_line(
    tidings: Command, here: Path, command: list[str]
) -> None:
    (here / "tidings.toml").write_text("# mine\nretension_ms = 5\n")

    ended = tidings(*command)

    assert ended.code == Exit.CONFIG
    assert ended.err.splitlines() == [
        "error: tidings.toml:2: unknown option 'retension_ms'",
        "  hint: did you mean 'retention_ms'?",
    ]


def test_a_setting_without_a_value_is_refused(tidings: Command) -> None:
    ended = tidings("config", "--set", "rack")

    assert ended.code == Exit.USAGE
    assert "expected NAME=VALUE" in ended.err


def test_a_file_that_is_not_there_is_refused(tidings: Command) -> None:
    assert tidings("config", "--config", "missing.toml").code == Exit.CONFIG
