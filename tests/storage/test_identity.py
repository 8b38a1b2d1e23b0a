"""The identity file of a data folder."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import google_crc32c
import pytest

from tests.fakes.files import FakeFiles, Keep, PowerLost
from tidings.storage.errors import FormatTooNew, NotAFolderOfOurs
from tidings.storage.identity import Identity, read_identity, write_identity

UUID = "0123456789abcdef0011223344556677"
BLANK = Identity(cluster_id="", broker_id=1, directory_uuid=UUID, seeds=("a:1", "b:2"))
FORMED = Identity(
    cluster_id="c-1", broker_id=1, directory_uuid=UUID, seeds=("a:1", "b:2"), members={1: 5, 2: (1 << 64) - 1}
)
PATH = "data/identity"


def test_what_was_written_is_read() -> None:
    files = FakeFiles()

    write_identity(files, "data", FORMED)

    assert read_identity(files, "data") == FORMED


def test_a_blank_folder_has_none() -> None:
    assert read_identity(FakeFiles(), "data") is None


@pytest.mark.parametrize("path", ["data/wal/1.wal", "data/groups/4/checkpoint"])
def test_logs_without_an_identity_are_nobodys(path: str) -> None:
    files = FakeFiles()
    files.open(path, create=True).close()

    with pytest.raises(NotAFolderOfOurs, match="data/identity is missing"):
        read_identity(files, "data")


def test_the_member_is_drawn_from_the_uuid_and_never_none() -> None:
    assert FORMED.member == 0x0123456789ABCDEF
    assert Identity(cluster_id="", broker_id=1, directory_uuid="0" * 32).member == 1
    assert len(FORMED.salt) == 16


def test_a_crash_leaves_the_old_or_the_new_one() -> None:
    seen = set()
    for step in range(12):
        for keep in Keep:
            files = FakeFiles()
            write_identity(files, "data", BLANK)
            files.crash_at_step = files.steps + step
            with suppress(PowerLost):
                write_identity(files, "data", FORMED)
            found = read_identity(files.after_crash(Random(step), keep), "data")
            assert found is not None
            seen.add(found.cluster_id)

    assert seen == {"", "c-1"}


def test_what_was_read_after_a_kill_is_not_lost_with_the_power() -> None:
    for step in range(12):
        files = FakeFiles()
        write_identity(files, "data", BLANK)
        files.crash_at_step = files.steps + step
        with suppress(PowerLost):
            write_identity(files, "data", FORMED)
        killed = files.after_crash(Random(step), Keep.EVERYTHING)

        found = read_identity(killed, "data")

        assert read_identity(killed.after_crash(Random(step), Keep.NOTHING), "data") == found


def test_rotten_bytes_are_refused() -> None:
    files = FakeFiles()
    write_identity(files, "data", FORMED)
    for position in range(0, len(files.content(PATH)), 7):
        copy = files.copy()
        copy.flip(PATH, position)

        with pytest.raises(NotAFolderOfOurs):
            read_identity(copy, "data")


def test_a_newer_version_is_refused_by_name() -> None:
    files = FakeFiles()
    write_identity(files, "data", FORMED)
    line = b'{"format_version": 2}'
    files.overwrite(PATH, line + b"\n%08x\n" % google_crc32c.value(line))

    with pytest.raises(FormatTooNew, match="data/identity has format version 2"):
        read_identity(files, "data")
