"""The files of every released format stay readable, and this version writes what it says it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.files import FakeFiles
from tests.storage.broker_disk import FOLDER, NEVER_FULL, BrokerDisk, recovered_from
from tests.storage.format_sample import APPLIED, CURRENT, FIXTURES, IDENTITY, TAIL, VOTE, write_sample
from tidings.raft.entries import EntryKind
from tidings.storage.identity import read_identity
from tidings.storage.verify import verify


def kept_files(folder: Path) -> FakeFiles:
    files = FakeFiles()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            file = files.open(path.relative_to(folder).as_posix(), create=True)
            file.write_at([path.read_bytes()], 0)
    return files.copy()


@pytest.fixture(params=sorted(path.name for path in FIXTURES.glob("format_*")))
def kept(request: pytest.FixtureRequest) -> FakeFiles:
    return kept_files(FIXTURES / request.param)


def test_kept_files_can_be_read(kept: FakeFiles) -> None:
    recovered = recovered_from(kept)

    assert read_identity(kept, FOLDER) == IDENTITY
    assert (recovered.damage, recovered.torn) == (None, None)
    assert recovered.groups[0].start.state == b"the cluster"
    partition = recovered.groups[1]
    assert (partition.tail, partition.hard, partition.damaged) == (TAIL, VOTE, None)
    assert recovered.groups[2].doubtful
    assert list(verify(kept, FOLDER, salt=IDENTITY.salt)) == []


def test_work_goes_on_with_kept_files(kept: FakeFiles) -> None:
    disk = BrokerDisk(kept)
    disk.apply(*TAIL)

    entries = [*APPLIED, *TAIL]
    batches = [entry.payload for entry in entries if entry.kind == EntryKind.RECORDS]
    assert disk.stores[1].read_offset(0, NEVER_FULL, NEVER_FULL) == batches[:2]
    assert disk.stores[1].read_entries(5, NEVER_FULL) == entries[4:]


def test_this_version_writes_these_bytes() -> None:
    """If this fails, a format has changed: raise its version and keep a new sample beside the old one."""
    files = FakeFiles()
    write_sample(files)
    kept = kept_files(CURRENT)

    assert {path: files.content(path) for path in files.paths()} == {
        path: kept.content(path) for path in kept.paths()
    }
