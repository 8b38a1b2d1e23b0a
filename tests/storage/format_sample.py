"""The folder that is kept as a fixture of the files' format, and how it is made.

`python -m tests.storage.format_sample` writes it anew, after the format version was raised on purpose: a new
folder beside the older ones, which must stay readable.
"""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from tests.storage.broker_disk import (
    FOLDER,
    BrokerDisk,
    Written,
    membership_entry,
    records,
    start_at,
    term_start,
)
from tidings.raft.entries import Entry, HardState
from tidings.storage.files import Files, OsFiles
from tidings.storage.identity import Identity, write_identity
from tidings.storage.recovery import group_folder
from tidings.storage.state_store import StateStore
from tidings.storage.wal_format import Mark

FIXTURES = Path(__file__).parent / "fixtures"
CURRENT = FIXTURES / "format_1"
IDENTITY = Identity(
    cluster_id="sample",
    broker_id=2,
    directory_uuid=bytes(range(16)).hex(),
    seeds=("127.0.0.1:19092", "127.0.0.1:19093"),
    members={1: 17, 2: 283686952306183, 3: 19},
)
VOTE = HardState(term=3, vote=17)
APPLIED = [
    term_start(1, term=1, offset=0),
    records(2, offset=0, count=3, timestamp=1_700_000_000_000),
    membership_entry(3, term=1, offset=3),
    records(4, offset=3, timestamp=1_700_000_000_500),
    records(5, offset=4, count=2, timestamp=1_700_000_001_000),
]
REPLACED = records(6, offset=6)
TAIL = [term_start(6, term=3, offset=6), records(7, term=3, offset=6, count=4, size=600)]


def write_sample(files: Files) -> None:
    """A metadata group, a partition with two segments, and one that lives in the write-ahead log alone."""
    files.make_folder(FOLDER)
    write_identity(files, FOLDER, IDENTITY)
    disk = BrokerDisk(files, first_file_bytes=1024, file_bytes_max=2048)
    metadata = StateStore(files, group_folder(FOLDER, 0), group=0, checkpoint=None)
    disk.write(Entry(1, 1, 4, 0, 0, b"command"), group=0, hard=HardState(term=1, vote=18))
    metadata.checkpoint(start_at(1, offset=0, state=b"the cluster"), "cluster")
    store = disk.create(1)
    disk.write(*APPLIED, REPLACED, hard=HardState(term=1, vote=18))
    disk.apply(*APPLIED, segment_bytes=150)
    store.checkpoint(start_at(5, offset=6, state=b"producers"), "orders-0")
    disk.write(*TAIL, hard=VOTE)
    disk.wal.mark(2, Mark.DOUBTFUL)
    disk.wal.write(Written(entries=[(2, records(1, term=3, size=300))], hard_states={2: VOTE}))
    disk.close()


if __name__ == "__main__":
    CURRENT.mkdir(parents=True)
    with chdir(CURRENT):
        write_sample(OsFiles())
