"""The secret of a cluster is made once."""

from pathlib import Path

from tests.cli.conftest import Command
from tidings.config.exits import Exit
from tidings.runtime.secret import read_secret


def test_a_secret_is_made_for_its_owner(tidings: Command, tmp_path: Path) -> None:
    ended = tidings("secret", str(tmp_path / "secret"))

    assert ended.code == 0
    assert "--secret-file" in ended.out
    assert len(read_secret(tmp_path / "secret")) == 32


def test_a_file_that_is_there_is_left_as_it_is(tidings: Command, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("mine")

    ended = tidings("secret", str(path))

    assert ended.code == Exit.FAILED
    assert path.read_text() == "mine"
    assert "exists already" in ended.err


def test_a_place_that_cannot_be_written_is_told(tidings: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ended = tidings("secret", str(tmp_path / "file" / "secret"))

    assert ended.code == Exit.FAILED
    assert "cannot be written" in ended.err


def test_a_folder_that_is_not_there_is_not_made(tidings: Command, tmp_path: Path) -> None:
    ended = tidings("secret", str(tmp_path / "typo" / "secret"))

    assert ended.code == Exit.FAILED
    assert f"there is no folder {tmp_path / 'typo'}" in ended.err
    assert not (tmp_path / "typo").exists()
