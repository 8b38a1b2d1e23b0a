"""Reading the write-ahead log: where a walk along the chain of flushes ends, and where the next process goes
on."""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.files import Keep, PowerLost
from tests.storage.broker_disk import WAL, BrokerDisk, indexes, records, recovered_from
from tidings.raft.entries import HardState
from tidings.storage.wal_format import (
    END,
    FLUSH,
    NEW_CHAIN,
    OPENED,
    SEALED,
    FileHeader,
    Salt,
    decode_file_header,
    decode_header,
    encode_mark,
    file_name,
)

VOTE = HardState(term=1, vote=11)
SALT = Salt(b"a folder")


def test_a_header_of_another_folder_is_none() -> None:
    header = FileHeader(version=1, flags=NEW_CHAIN | OPENED, number=7, first_sequence=9, previous_crc=5)

    assert decode_file_header(header.encode(SALT), SALT) == header
    assert decode_file_header(header.encode(SALT), Salt(b"another")) is None
    assert decode_file_header(header.encode(SALT)[:63], SALT) is None


@pytest.mark.parametrize("kind", [END, SEALED])
def test_a_mark_is_known_by_its_kind_and_folder(kind: int) -> None:
    mark = encode_mark(kind, 12, 99, SALT)

    found = decode_header(mark, SALT)

    assert found is not None
    assert (found.kind, found.sequence, found.previous_crc, found.body_bytes) == (kind, 12, 99, 0)
    assert decode_header(mark, Salt(b"another")) is None
    assert decode_header(mark[:31], SALT) is None
    assert decode_header(FLUSH.to_bytes(4, "little") + mark[4:], SALT) is None


def test_a_clean_end_is_neither_torn_nor_damaged() -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=VOTE)

    found = recovered_from(disk.files)

    assert (found.torn, found.damage) == (None, None)
    assert found.wal.file_number == 2
    assert found.wal.sequence == 3
    assert found.wal.seal_file == 1


def test_a_torn_flush_is_cut_and_the_next_process_goes_on_before_it() -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=VOTE)
    disk.fake.crash_at_step = disk.fake.steps
    with pytest.raises(PowerLost):
        disk.write(records(2), records(3))
    content = disk.fake.content(f"{WAL}/{file_name(1)}")
    files = disk.fake.copy()
    end = content.rindex(records(3).payload) + 30
    files.overwrite(f"{WAL}/{file_name(1)}", content[:end] + bytes(len(content) - end))

    torn = BrokerDisk(files)
    torn.write(records(2, term=2))
    found = recovered_from(torn.files)

    assert torn.recovered.torn is not None
    assert torn.recovered.groups[1].doubtful
    assert (found.torn, found.damage) == (None, None)
    assert found.groups[1].tail == [records(1), records(2, term=2)]


def test_a_flush_that_never_reached_the_disk_leaves_a_clean_end() -> None:
    disk = BrokerDisk()
    disk.write(records(1), hard=VOTE)
    disk.fake.crash_at_step = disk.fake.steps
    with pytest.raises(PowerLost):
        disk.write(records(2))

    found = recovered_from(disk.fake.after_crash(Random(1), Keep.NOTHING))

    assert found.torn is None
    assert indexes(found.groups[1].tail) == [1]


def test_the_chain_goes_on_over_many_processes() -> None:
    disk = BrokerDisk()
    for index in range(1, 12):
        disk.write(records(index), hard=VOTE)
        disk = BrokerDisk(disk.fake.copy())

    assert disk.wal.current_file == 12
    assert disk.recovered.damage is None
    assert indexes(disk.recovered.groups[1].tail) == list(range(1, 12))


def test_a_file_that_holds_an_older_use_of_itself_is_read_to_its_own_end() -> None:
    disk = BrokerDisk(first_file_bytes=4096, file_bytes_max=4096)
    index = 0
    while disk.wal.current_file < 4:
        index += 1
        last = disk.write(records(index, size=300), hard=VOTE)
        disk.wal.cut(disk.wal.current_file)

    found = recovered_from(disk.files)

    assert (found.torn, found.damage) == (None, None)
    assert found.wal.sequence == last.sequence + 1


def test_a_flush_longer_than_a_read_of_the_file_is_read_whole() -> None:
    disk = BrokerDisk(file_bytes_max=4 << 20)
    entries = [records(1, size=3 << 20), records(2, size=100)]

    disk.write(*entries, hard=VOTE)
    disk.write(records(3))

    assert recovered_from(disk.files).groups[1].tail == [*entries, records(3)]
