"""Options of `up`, `broker` and `config` are read alike, from the same three sources."""

from pathlib import Path

import pytest

from tidings.cli.failure import Failure
from tidings.cli.settings import read_settings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_of_this_folder_is_read_if_there_is_one(here: Path) -> None:
    without = read_settings(None, (), {}).config
    (here / "tidings.toml").write_text("broker_id = 5\n")

    assert without.broker_id == 1
    assert read_settings(None, (), {}).config.broker_id == 5


def test_set_takes_names_with_dashes_and_spaces() -> None:
    assert read_settings(None, ("kafka-port = 7",), {}).config.kafka_port == 7


def test_flags_that_were_not_given_say_nothing() -> None:
    assert read_settings(None, ("rack=east",), {"rack": None}).config.rack == "east"


def test_what_is_wrong_ends_the_command_with_its_place() -> None:
    with pytest.raises(Failure, match="--set rak=east: unknown option 'rak'") as caught:
        read_settings(None, ("rak=east",), {})

    assert caught.value.hint == "did you mean 'rack'?"


def test_a_flag_that_is_not_called_like_its_option_is_named_as_it_was_typed() -> None:
    with pytest.raises(Failure, match=r"--kafka 0\.0\.0\.0:31200: kafka_host: "):
        read_settings(None, (), {"kafka_host": "0.0.0.0"}, typed={"kafka_host": "--kafka 0.0.0.0:31200"})
