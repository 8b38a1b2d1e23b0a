"""Tests of storage/salvage.py: what is left of a log, and the log that is written anew from it, whatever
happens meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

import pytest

from tests.fakes.files import FakeFiles, Keep, PowerLost
from tests.storage.broker_disk import (
    FOLDER,
    SALT,
    WAL,
    BrokerDisk,
    indexes,
    membership_entry,
    recovered_from,
    term_start,
)
from tests.storage.lone_log import (
    ALONE,
    GROUP,
    OWN,
    batch_of,
    disk_with,
    log_of,
    start_behind,
    stems,
    terms_of,
)
from tidings.raft.entries import Entry, HardState, StartState
from tidings.storage.checkpoint import CHECKPOINT_NAME
from tidings.storage.errors import WalFull
from tidings.storage.recovery import RecoveredGroup, group_folder
from tidings.storage.rows import ROW_BYTES
from tidings.storage.salvage import Examined, Rewrite, examine, rewrite
from tidings.storage.verify import verify
from tidings.storage.wal_format import HEADER_BYTES, file_name

PATH = group_folder(FOLDER, GROUP)
ENTRIES = log_of((1, 5), (3, 5))
TAIL = [batch_of(13, term=3, offset=20), batch_of(14, term=3, offset=21)]
NEW = HardState(term=1_003, vote=0)


def examined(files: FakeFiles, *, alone: Collection[int] = (GROUP,)) -> Examined:
    found = examine(
        files,
        FOLDER,
        recovered_from(files),
        salt=SALT,
        groups=[GROUP],
        alone=alone,
        on_read=lambda _: None,
    )
    return found[0]


def salvaged(files: FakeFiles, *, orphans: Collection[int] = (), more: Sequence[Entry] = ()) -> Examined:
    """Keep what is left, and all producers that the log has had."""
    one = examined(files)

    def start_of(entries_from: object) -> StartState:
        scan = one.scan
        return StartState(
            index=scan.end.index,
            term=scan.end.term,
            offset=scan.end.offset,
            membership=ALONE,
            terms=scan.terms,
            state=b"salvaged",
        )

    plan = Rewrite(examined=one, title="events-0", entries=[*one.tail, *more], hard=NEW, start_of=start_of)
    rewrite(files, FOLDER, recovered_from(files), [plan], salt=SALT, orphans=orphans)
    return one


def recovered(files: FakeFiles) -> RecoveredGroup:
    return recovered_from(files).groups[GROUP]


def entries_in(files: FakeFiles) -> list[Entry]:
    """The whole log as a start finds it."""
    disk = BrokerDisk(files.copy())
    state = disk.recovered.groups[GROUP]
    assert state.damaged is None
    found: list[Entry] = []
    while entries := disk.stores[GROUP].read_entries(state.first_index + len(found), 1 << 20):
        found += entries
    return found + state.tail


def goes_on(files: FakeFiles) -> bool:
    """Whether the log can be written to, checkpointed and read again like any other."""
    disk = BrokerDisk(files)
    state = disk.recovered.groups[GROUP]
    index, offset = state.start.index, state.start.offset
    if state.tail:
        index, offset = state.tail[-1].index, state.tail[-1].next_offset
    more = [*state.tail, batch_of(index + 1, term=1_004, offset=offset)]
    disk.write(more[-1], group=GROUP, hard=HardState(term=1_004, vote=OWN))
    disk.apply(*more, group=GROUP)
    whole = entries_in(disk.fake)
    disk.stores[GROUP].checkpoint(start_behind(whole), "events-0")
    disk.close()
    files = disk.fake.copy()
    return list(verify(files, FOLDER, salt=SALT)) == [] and entries_in(files) == whole


# -- examining


def test_an_intact_log_is_left_as_it_is() -> None:
    found = examined(disk_with(ENTRIES, tail=TAIL, is_log_cut=True))

    assert found.is_intact
    assert (found.end.index, found.lost_records, found.lost_entries) == (14, 0, 0)


def test_examining_changes_nothing() -> None:
    files = disk_with(ENTRIES, tail=TAIL, is_log_cut=True)
    files.flip(f"{stems(files)[1]}.log", 70)
    files.lose(f"{stems(files)[0]}.index")
    before = {path: files.content(path) for path in files.paths()}

    examined(files)

    assert {path: files.content(path) for path in files.paths()} == before


def test_behind_a_wrong_batch_all_is_lost_and_counted() -> None:
    files = disk_with(ENTRIES, tail=TAIL, is_log_cut=True)
    files.flip(f"{stems(files)[1]}.log", 70)

    found = examined(files)

    assert (found.end.offset, found.known_offset, found.lost_records) == (8, 22, 14)
    assert found.lost_entries == 14 - found.end.index
    assert "is damaged at byte" in found.problems[0]


def test_nothing_is_lost_that_the_write_ahead_log_still_has() -> None:
    files = disk_with(ENTRIES, tail=TAIL, is_log_cut=False)
    files.flip(f"{stems(files)[1]}.log", 70)

    found = examined(files)

    assert not found.is_intact
    assert (found.end.index, found.lost_records) == (14, 0)


def test_of_a_log_with_other_voters_nothing_is_taken_that_may_have_been_replaced() -> None:
    files = disk_with(ENTRIES, tail=TAIL, is_log_cut=True)
    files.flip(f"{WAL}/{file_name(2)}", position_of_first_flush(files))

    alone, others = examined(files), examined(files, alone=())

    assert indexes(alone.tail) == indexes(others.tail) == []


def position_of_first_flush(files: FakeFiles) -> int:
    """Where the body of the first flush behind the states begins."""
    content = files.content(f"{WAL}/{file_name(2)}")
    first = content.index(b"FLSH", 64)
    return content.index(b"FLSH", first + 1) + HEADER_BYTES


def test_entries_that_are_lost_without_a_trace_are_told_as_far_as_they_are_known() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, is_log_cut=True))
    disk.write(*TAIL[:1], group=GROUP)
    lost = disk.write(*TAIL[1:], group=GROUP).file_bytes
    disk.write(batch_of(15, term=3, offset=22), group=GROUP)
    disk.close()
    files = disk.fake.copy()
    files.flip(f"{WAL}/{file_name(3)}", lost - 1)

    found = examined(files)

    assert indexes(found.tail) == [13]
    assert (found.known_end.index, found.lost_entries) == (15, 2)


def test_the_newest_term_of_all_is_known() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, is_log_cut=True))
    disk.write(group=GROUP, hard=HardState(term=9, vote=OWN))
    disk.close()

    assert examined(disk.fake.copy()).newest_term == 9


# -- rewriting


DAMAGES = ["batch", "index", "checkpoint", "first batch", "segment gone", "all gone"]


def damaged_disk(how: str, *, is_log_cut: bool = True) -> FakeFiles:
    files = disk_with(ENTRIES, tail=TAIL, is_log_cut=is_log_cut)
    first, second = stems(files)[:2]
    match how:
        case "batch":
            files.flip(f"{second}.log", 200)
        case "index":
            files.flip(f"{first}.index", 2 * ROW_BYTES)
        case "checkpoint":
            files.flip(f"{PATH}/{CHECKPOINT_NAME}", 30)
        case "first batch":
            files.flip(f"{first}.log", 70)
        case "segment gone":
            files.lose(f"{second}.log")
        case "all gone":
            for path in files.paths():
                if path.startswith(f"{PATH}/0"):
                    files.lose(path)
    return files


@pytest.mark.parametrize("how", DAMAGES)
def test_a_salvaged_log_holds_what_is_left_and_takes_writes_again(how: str) -> None:
    files = damaged_disk(how)

    found = salvaged(files)

    state = recovered(files)
    assert state.damaged is None
    assert not state.doubtful
    assert not state.vote_lost
    assert state.hard == NEW
    left = entries_in(files)
    assert [entry.index for entry in left] == list(range(1, found.end.index + 1))
    assert [one for one in left if one.record_count] == [
        one for one in [*ENTRIES, *TAIL] if one.record_count and one.next_offset <= found.end.offset
    ]
    assert goes_on(files)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_log_that_the_write_ahead_log_has_is_salvaged_whole(how: str) -> None:
    files = damaged_disk(how, is_log_cut=False)

    found = salvaged(files)

    assert found.lost_records == 0
    assert [one for one in entries_in(files) if one.record_count] == [
        one for one in [*ENTRIES, *TAIL] if one.record_count
    ]
    assert goes_on(files)


def test_the_epoch_table_goes_as_far_as_the_log() -> None:
    files = damaged_disk("batch")

    salvaged(files)

    kept = [entry for entry in ENTRIES if entry.index <= recovered(files).start.index]
    assert recovered(files).start.terms == terms_of(kept)


def test_what_comes_behind_stands_in_the_new_log() -> None:
    files = damaged_disk("index")

    salvaged(files, more=[batch_of(15, term=1_003, offset=22)])

    assert indexes(recovered(files).tail) == [13, 14, 15]


def test_a_mark_of_damage_without_damage_is_taken_away() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, tail=TAIL, is_log_cut=True))
    intact = disk.fake.content(f"{stems(disk.fake)[-1]}.index")
    disk.fake.overwrite(f"{stems(disk.fake)[-1]}.index", b"")
    marked = BrokerDisk(disk.fake.copy())
    marked.fake.overwrite(f"{stems(marked.fake)[-1]}.index", intact)
    marked.close()
    files = marked.fake.copy()
    was_damaged = recovered(files).damaged

    salvaged(files)

    assert was_damaged is not None
    assert recovered(files).damaged is None
    assert entries_in(files) == [*ENTRIES, *TAIL]


def test_doubt_ends_with_it() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, is_log_cut=True))
    end = disk.write(*TAIL, group=GROUP).file_bytes
    disk.close()
    files = disk.fake.copy()
    files.flip(f"{WAL}/{file_name(3)}", end - 1)
    was_doubtful = recovered(files).doubtful

    salvaged(files)

    assert was_doubtful
    assert not recovered(files).doubtful


def test_a_log_that_never_had_a_checkpoint_gets_one() -> None:
    disk = BrokerDisk()
    disk.write(*ENTRIES[:3], group=GROUP, hard=HardState(term=1, vote=OWN))
    lost = disk.write(*ENTRIES[3:5], group=GROUP).file_bytes
    disk.write(*ENTRIES[5:], group=GROUP)
    disk.close()
    files = disk.fake.copy()
    files.flip(f"{WAL}/{file_name(1)}", lost - 1)

    salvaged(files)

    assert recovered(files).start.membership == ALONE
    assert entries_in(files) == ENTRIES[:3]
    assert goes_on(files)


def test_other_groups_stay_what_they_were() -> None:
    disk = BrokerDisk(damaged_disk("batch"))
    disk.create(2)
    disk.write(membership_entry(1, term=1, offset=0), group=2, hard=HardState(term=1, vote=7))
    disk.close()
    files = disk.fake.copy()
    before = recovered_from(files).groups[2]

    salvaged(files)

    assert recovered_from(files).groups[2] == before


def test_orphans_are_put_aside_and_forgotten() -> None:
    disk = BrokerDisk(damaged_disk("batch"))
    disk.create(5)
    disk.write(*ENTRIES, group=5, hard=HardState(term=1, vote=OWN))
    disk.apply(*ENTRIES, group=5)
    disk.close()
    files = disk.fake.copy()
    content = files.content(f"{group_folder(FOLDER, 5)}/{0:020d}-1.log")

    salvaged(files, orphans=[5])

    assert 5 not in recovered_from(files).groups
    assert files.content(f"{FOLDER}/orphans/5/{0:020d}-1.log") == content
    assert not files.names(group_folder(FOLDER, 5))


def test_what_was_lost_is_still_known_after_a_start_that_went_on_before_it() -> None:
    disk = BrokerDisk(disk_with(ENTRIES, is_log_cut=True))
    lost = disk.write(TAIL[0], group=GROUP).file_bytes
    disk.write(TAIL[1], group=GROUP)
    disk.close()
    disk.fake.flip(f"{WAL}/{file_name(3)}", lost - 1)
    disk = BrokerDisk(disk.fake.copy())
    disk.write(term_start(13, term=4, offset=20), group=GROUP)
    disk.close()

    found = examined(disk.fake.copy())

    assert (found.end.index, found.end.offset) == (13, 20)
    assert (found.lost_records, found.lost_entries) == (2, 1)


@pytest.mark.parametrize("how", ["batch", "index", "checkpoint"])
@pytest.mark.parametrize("keep", [Keep.NOTHING, Keep.EVERYTHING, Keep.TORN])
def test_a_crash_leaves_what_can_be_salvaged_again(how: str, keep: Keep) -> None:
    """At any step: either the log is damaged as before, or it is the new one."""
    random = Random(7)
    whole = salvaged(damaged_disk(how))
    steps = steps_of(how)
    for step in range(steps):
        files = damaged_disk(how)
        files.crash_at_step = files.steps + step
        with pytest.raises(PowerLost):
            salvaged(files)

        after = files.after_crash(random, keep)
        state = recovered(after)
        is_untouched = segments_of(after) == segments_of(damaged_disk(how))
        again = salvaged(after)

        assert is_untouched or state.damaged is not None or state.hard == NEW, step
        assert again.end == whole.end, step
        assert recovered(after).damaged is None, step
        assert goes_on(after), step


def segments_of(files: FakeFiles) -> dict[str, bytes]:
    return {path: files.content(path) for path in files.paths() if path.startswith(f"{PATH}/0")}


def steps_of(how: str) -> int:
    files = damaged_disk(how)
    before = files.steps
    salvaged(files)
    return files.steps - before


def test_a_broker_that_starts_after_a_crash_finds_the_damage_as_it_was() -> None:
    for step in range(steps_of("index")):
        files = damaged_disk("index")
        files.crash_at_step = files.steps + step
        with pytest.raises(PowerLost):
            salvaged(files)
        disk = BrokerDisk(files.after_crash(Random(step), Keep.NOTHING))
        disk.write(batch_of(1, term=1, offset=0), group=9, hard=HardState(term=1, vote=OWN))
        disk.close()

        left = salvaged(disk.fake.copy())

        assert left.end.offset == 22, step


def test_a_full_disk_changes_nothing() -> None:
    files = damaged_disk("batch")
    files.free_bytes = 1_000
    before = recovered(files).damaged

    with pytest.raises(WalFull):
        salvaged(files)

    assert recovered(files).damaged == before
