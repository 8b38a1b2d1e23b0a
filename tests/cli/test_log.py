"""`tidings log` looks into a stopped broker's folder, and changes it only when somebody says yes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.broker_folder import (
    ALONE_GROUP,
    RECORD_COUNT,
    SHARED_GROUP,
    flip,
    in_use,
    make_folder,
    segment_files,
)
from tests.cli.conftest import Command, Ended
from tidings.cli.log_folder import Progress, size_text
from tidings.cli.main import run
from tidings.config.exits import Exit
from tidings.storage.files import OsFiles
from tidings.storage.identity import Identity, write_identity
from tidings.storage.lock import LOCK_NAME

VERBS = ["ls", "verify", "salvage"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture
def damaged(folder: Path) -> Path:
    """One bit of a record in the second segment of the partition of one replica."""
    flip(segment_files(folder, "log")[1], 70)
    return folder


def log(tidings: Command, verb: str, folder: Path, *arguments: str) -> Ended:
    return tidings("log", verb, "--data", str(folder), *arguments)


def said(ended: Ended) -> dict[str, Any]:  # Any: what JSON holds
    found = json.loads(ended.out)
    assert isinstance(found, dict)
    return found


def content(folder: Path) -> dict[str, bytes]:
    """All files but the lock, which every command takes."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK_NAME)
    return {str(path): path.read_bytes() for path in files}


# -- what the folder is


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_in_use_is_refused_with_its_holder(tidings: Command, folder: Path, verb: str) -> None:
    with in_use(folder):
        ended = log(tidings, verb, folder)

    assert ended.code == Exit.FOLDER_LOCKED
    assert "is in use by process" in ended.err
    assert "stop the broker first" in ended.err
    assert len(ended.err.splitlines()) <= 3


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_is_not_there_is_refused(tidings: Command, tmp_path: Path, verb: str) -> None:
    ended = log(tidings, verb, tmp_path / "nowhere")

    assert ended.code == Exit.FAILED
    assert "there is no folder" in ended.err


def test_a_folder_of_something_else_is_refused(tidings: Command, tmp_path: Path) -> None:
    ended = log(tidings, "ls", tmp_path)

    assert ended.code == Exit.IDENTITY
    assert "is no broker's folder" in ended.err


def test_who_names_the_clusters_folder_is_led_to_the_brokers(tidings: Command, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").touch()

    ended = log(tidings, "ls", tmp_path)

    assert f"{tmp_path}/broker-1" in ended.err


def test_logs_without_an_identity_are_refused(tidings: Command, folder: Path) -> None:
    (folder / "identity").unlink()

    assert log(tidings, "verify", folder).code == Exit.IDENTITY


def test_a_folder_of_a_newer_version_is_refused(
    tidings: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("tidings.storage.identity.FORMAT_VERSION", 2)
        write_identity(
            OsFiles(), str(folder), Identity(cluster_id="c", broker_id=1, directory_uuid="00" * 16)
        )

    ended = log(tidings, "ls", folder)

    assert ended.code == Exit.FORMAT_TOO_NEW
    assert "format version 2" in ended.err


def test_a_group_that_is_not_there_is_refused(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "verify", folder, "--group", "77")

    assert ended.code == Exit.USAGE
    assert "has no group 77" in ended.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_explains_itself(tidings: Command, verb: str) -> None:
    ended = tidings("log", verb, "--help")

    assert ended.code == 0
    assert "--data DIR" in ended.out


# -- ls


def test_ls_shows_every_log(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "ls", folder)

    lines = {line.split()[1]: line.split() for line in ended.out.splitlines()[2:]}
    assert ended.code == 0
    assert list(lines) == ["metadata", "alone-0", "shared-0"]
    assert lines["alone-0"][2:7] == ["1", "0", "20", "20", "12/3"]
    assert lines["shared-0"][2:7] == ["1,2,3", "0", "0", "6", "4/1"]
    assert {line[-1] for line in lines.values()} == {"intact"}


def test_ls_says_the_same_to_programs(tidings: Command, folder: Path) -> None:
    found = said(log(tidings, "ls", folder, "--json"))

    alone = found["groups"][ALONE_GROUP]
    assert (found["broker"], found["cluster_id"]) == (1, "c")
    assert (alone["log"], alone["voters"], alone["segments"]) == ("alone-0", [1], 3)
    assert alone["checkpoint"] == alone["end"] == {"index": 12, "term": 3, "offset": RECORD_COUNT}
    assert found["groups"][SHARED_GROUP]["tail_entries"] == 4
    assert alone["damaged"] is None


def test_ls_names_what_is_wrong(tidings: Command, folder: Path) -> None:
    segment_files(folder, "index")[0].unlink()

    ended = log(tidings, "ls", folder)

    assert "alone-0 (group 1): a file is missing or cut short" in ended.out
    assert "damaged" in ended.out


@pytest.mark.parametrize("verb", ["ls", "verify"])
def test_looking_changes_nothing(tidings: Command, damaged: Path, verb: str) -> None:
    before = content(damaged)

    log(tidings, verb, damaged)

    assert content(damaged) == before


# -- verify


def test_an_intact_folder_is_verified(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "verify", folder)

    assert ended.code == 0
    assert "3 of 3 logs intact" in ended.out


def test_a_flipped_bit_is_found(tidings: Command, damaged: Path) -> None:
    ended = log(tidings, "verify", damaged)

    assert ended.code == Exit.FAILED
    assert "alone-0 (group 1): damaged" in ended.out
    assert "a payload is damaged" in ended.out
    assert "2 of 3 logs intact" in ended.out


def test_verify_tells_programs_of_the_same(tidings: Command, damaged: Path) -> None:
    ended = log(tidings, "verify", damaged, "--json")

    found = said(ended)
    assert ended.code == Exit.FAILED
    assert found["intact"] is False
    assert [group["intact"] for group in found["groups"]] == [True, False, True]
    assert found["groups"][ALONE_GROUP]["finding_count"] == 1


def test_other_groups_are_verified_without_it(tidings: Command, damaged: Path) -> None:
    ended = log(tidings, "verify", damaged, "--group", "0", "--group", "2")

    assert ended.code == 0
    assert "2 of 2 logs intact" in ended.out


def test_many_findings_are_counted(tidings: Command, folder: Path) -> None:
    for path in segment_files(folder, "index"):
        path.write_bytes(bytes(path.stat().st_size))

    ended = log(tidings, "verify", folder)

    assert "and 3 more" in ended.out


def test_damage_of_the_write_ahead_log_is_told(tidings: Command, folder: Path) -> None:
    newest = max((folder / "wal").glob("0*.wal"))
    flip(newest, 70)

    ended = log(tidings, "verify", folder)

    assert ended.code == Exit.FAILED
    assert "the write-ahead log is damaged" in ended.out


# -- salvage


def test_there_is_nothing_to_salvage_in_an_intact_folder(tidings: Command, folder: Path) -> None:
    before = content(folder)

    ended = log(tidings, "salvage", folder, "--yes")

    assert ended.code == 0
    assert "There is nothing to salvage." in ended.out
    assert content(folder) == before


def test_nobody_to_ask_and_no_yes_changes_nothing(tidings: Command, damaged: Path) -> None:
    before = content(damaged)

    ended = log(tidings, "salvage", damaged)

    assert ended.code == Exit.USAGE
    assert "lost: offsets 8 to 19 (12 records)" in ended.out
    assert "add --yes" in ended.err
    assert content(damaged) == before


def test_yes_keeps_what_is_intact_and_drops_the_rest(tidings: Command, damaged: Path) -> None:
    ended = log(tidings, "salvage", damaged, "--yes")

    assert ended.code == 0
    assert "alone-0 (group 1): damaged, and nobody else has it" in ended.out
    assert "kept: offsets 0 to 7 (8 records), up to entry 5/1" in ended.out
    assert "done." in ended.out
    assert log(tidings, "verify", damaged).code == 0
    after = said(log(tidings, "ls", damaged, "--json"))["groups"][ALONE_GROUP]
    assert after["end"]["offset"] == 8
    assert after["term"] > 1_000


def test_programs_are_told_what_is_done(tidings: Command, damaged: Path) -> None:
    found = said(log(tidings, "salvage", damaged, "--yes", "--json"))

    (group,) = found["groups"]
    assert found["done"] is True
    assert (group["log"], group["why"]) == ("alone-0", "damaged")
    assert (group["lost_records"], group["lost_is_exact"]) == (12, True)


def test_a_lost_index_is_counted_and_costs_nothing(tidings: Command, folder: Path) -> None:
    segment_files(folder, "index")[1].unlink()

    ended = log(tidings, "salvage", folder, "--yes")

    assert "is made anew by counting its batches" in ended.out
    assert "lost: nothing" in ended.out
    assert log(tidings, "verify", folder).code == 0
    assert said(log(tidings, "ls", folder, "--json"))["groups"][ALONE_GROUP]["end"]["offset"] == RECORD_COUNT


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("y\n", Exit.OK), ("n\n", Exit.FAILED), ("\n", Exit.FAILED)])
def test_somebody_at_a_terminal_is_asked(
    damaged: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    code: Exit,
) -> None:
    before = content(damaged)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))

    ended = run(["log", "salvage", "--data", str(damaged)])

    assert ended == code
    assert "This cannot be undone. Go on?" in capsys.readouterr().err
    assert (content(damaged) == before) == (code is not Exit.OK)


def test_a_log_that_others_have_is_not_salvaged(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "salvage", folder, "--group", "2", "--yes")

    assert ended.code == Exit.FAILED
    assert "shared-0 (group 2) is not to be salvaged here" in ended.err
    assert "--lost ID" in ended.err


def test_a_damaged_log_that_others_have_is_left_to_them(tidings: Command, folder: Path) -> None:
    flip(folder / "groups" / "2" / "checkpoint", 50)

    ended = log(tidings, "salvage", folder, "--yes")

    assert ended.code == 0
    assert "shared-0 (group 2): damaged, but a majority of its voters is left" in ended.out
    assert "nothing to salvage" in ended.out


def test_a_survivor_goes_on_alone_in_all_logs_without_a_majority(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "salvage", folder, "--lost", "2", "--lost", "3", "--yes")

    assert ended.code == 0
    assert "metadata (group 0): no majority of its voters is left" in ended.out
    assert "shared-0 (group 2): no majority of its voters is left" in ended.out
    assert "lost: what only the lost brokers had, which nobody can tell" in ended.out
    assert "alone-0" not in ended.out
    after = said(log(tidings, "ls", folder, "--json"))["groups"]
    assert [group["voters"] for group in after] == [[1], [1], [1]]
    assert after[SHARED_GROUP]["end"]["offset"] == 6
    assert log(tidings, "verify", folder).code == 0


def test_the_loss_of_a_minority_is_no_matter(tidings: Command, folder: Path) -> None:
    ended = log(tidings, "salvage", folder, "--lost", "2", "--yes")

    assert "nothing to salvage" in ended.out


@pytest.mark.parametrize(
    ("broker", "problem"), [("1", "whose folder this is"), ("9", "there is no broker 9")]
)
def test_only_other_brokers_can_be_lost(tidings: Command, folder: Path, broker: str, problem: str) -> None:
    ended = log(tidings, "salvage", folder, "--lost", broker, "--yes")

    assert ended.code == Exit.USAGE
    assert problem in ended.err


def test_metadata_without_a_beginning_cannot_be_salvaged(tidings: Command, folder: Path) -> None:
    (folder / "groups" / "0" / "checkpoint").write_bytes(b"rotten")
    newest = max((folder / "wal").glob("0*.wal"))
    newest.write_bytes(newest.read_bytes().replace(b"FormCluster", b"FormCluste!"))

    ended = log(tidings, "salvage", folder, "--lost", "2", "--lost", "3", "--yes")

    assert ended.code == Exit.FAILED
    assert "metadata cannot be salvaged" in ended.err


# -- progress


def test_who_waits_is_told_how_much_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tidings.cli.log_folder._LOG_PAUSE_S", 0.0)
    progress = Progress(4096)

    progress.took(1024)
    progress.end()

    assert capsys.readouterr().err == "read 1.0 KiB of 4.0 KiB\n"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3072.0 GiB")],
)
def test_sizes_are_told_as_people_read_them(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text
