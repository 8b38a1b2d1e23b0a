"""The secret is its owner's alone, whole, and never overwritten."""

import stat
from pathlib import Path

import pytest

from tidings.runtime.secret import SECRET_BYTES, SecretError, make_secret, read_secret


def test_a_secret_is_random_and_its_owner_s(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "deep" / "other"

    make_secret(one)
    make_secret(other)

    assert len(read_secret(one)) == SECRET_BYTES
    assert read_secret(one) != read_secret(other)
    assert stat.S_IMODE(one.stat().st_mode) == 0o600


def test_a_secret_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    make_secret(path)
    before = path.read_bytes()

    with pytest.raises(FileExistsError):
        make_secret(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_that_everybody_can_read_is_none(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    make_secret(path)
    path.chmod(0o644)

    with pytest.raises(SecretError, match="everybody on this machine") as caught:
        read_secret(path)

    assert caught.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize("text", ["", "xyz", "ab" * (SECRET_BYTES - 1), "abc", "ä" * 64])
def test_a_file_without_32_bytes_in_hexadecimal_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)

    with pytest.raises(SecretError, match="does not hold 32 bytes"):
        read_secret(path)


def test_a_missing_file_comes_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="No such file") as caught:
        read_secret(tmp_path / "secret")

    assert "tidings secret" in caught.value.hint
