"""What recovery makes of the durable flushes."""

from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.outbox import Flush
from tidings.sim.flush_log import NO_HARD_STATE, FlushLog, GroupImage

GROUP = 3
MEMBERS = Membership(voters=(1, 2, 3))
BLANK = StartState(index=0, term=0, offset=0, membership=MEMBERS)


def entry(index: int, term: int, kind: EntryKind = EntryKind.RECORDS) -> Entry:
    return Entry(index, term, kind, index - 1, 1 if kind == EntryKind.RECORDS else 0, b"")


def flush(*entries: Entry, hard: HardState | None = None) -> Flush:
    hard_states = {} if hard is None else {GROUP: hard}
    return Flush(number=1, entries=[(GROUP, e) for e in entries], hard_states=hard_states, last={})


def log_of(*flushes: Flush) -> FlushLog:
    log = FlushLog()
    for one in flushes:
        log.append(one)
    return log


def image(checkpoint: StartState = BLANK) -> GroupImage:
    return GroupImage(checkpoint=checkpoint, log_start=BLANK, durable_last=checkpoint.index)


def positions(tail: list[Entry]) -> list[tuple[int, int]]:
    return [(e.index, e.term) for e in tail]


def test_an_entry_replaces_its_index_and_all_behind_it() -> None:
    log = log_of(flush(entry(1, 1), entry(2, 1), entry(3, 1)), flush(entry(2, 2)))

    assert positions(log.tail(GROUP, image())) == [(1, 1), (2, 2)]


def test_the_tail_begins_behind_the_checkpoint_also_when_older_entries_were_replaced() -> None:
    log = log_of(flush(entry(1, 1), entry(2, 1), entry(3, 1)), flush(entry(1, 2), entry(2, 2)))
    saved = StartState(index=1, term=2, offset=1, membership=MEMBERS)

    assert positions(log.tail(GROUP, image(saved))) == [(2, 2)]


def test_what_stands_behind_a_hole_is_not_reached() -> None:
    log = log_of(flush(entry(1, 1)), flush(entry(3, 1)), flush(entry(2, 2)))

    assert positions(log.tail(GROUP, image())) == [(1, 1), (2, 2)]


def test_a_start_that_is_not_the_checkpoint_yet_hides_what_follows_it() -> None:
    start = entry(5, 4, EntryKind.START)
    log = log_of(flush(entry(1, 1)), flush(start, entry(6, 4)))

    assert positions(log.tail(GROUP, image())) == [(1, 1)]


def test_a_start_that_is_the_checkpoint_voids_what_came_before_it() -> None:
    start = entry(5, 4, EntryKind.START)
    log = log_of(flush(entry(1, 1), entry(6, 1)), flush(start, entry(6, 4)))
    installed = image(StartState(index=5, term=4, offset=4, membership=MEMBERS))
    installed.start_marker = start

    assert positions(log.tail(GROUP, installed)) == [(6, 4)]


def test_after_a_start_came_to_nothing_later_entries_count_again() -> None:
    log = log_of(flush(entry(1, 1)), flush(entry(5, 4, EntryKind.START), entry(6, 4)))
    here = image()

    log.drop_other_logs(GROUP, here)
    log.append(flush(entry(2, 4)))

    assert positions(log.tail(GROUP, here)) == [(1, 1), (2, 4)]


def test_a_checkpoint_whose_start_was_lost_with_its_flush_begins_an_empty_log() -> None:
    log = log_of(flush(entry(1, 1), entry(6, 1)))
    installed = image(StartState(index=5, term=4, offset=4, membership=MEMBERS))
    installed.start_marker = entry(5, 4, EntryKind.START)

    log.drop_other_logs(GROUP, installed)
    log.append(flush(entry(6, 4)))

    assert positions(log.tail(GROUP, installed)) == [(6, 4)]


def test_cutting_stops_at_the_first_flush_that_a_checkpoint_does_not_cover() -> None:
    log = log_of(flush(entry(1, 1)), flush(entry(2, 1)), flush(entry(3, 1)))

    log.cut({GROUP: image(StartState(index=2, term=1, offset=2, membership=MEMBERS))})

    assert len(log) == 1


def test_a_flush_with_a_start_stays_until_its_start_state_is_the_checkpoint() -> None:
    start = entry(5, 4, EntryKind.START)
    log = log_of(flush(start))
    here = image()

    log.cut({GROUP: here})
    kept = len(log)
    here.checkpoint = StartState(index=5, term=4, offset=4, membership=MEMBERS)
    here.start_marker = start
    log.cut({GROUP: here})

    assert kept == 1
    assert len(log) == 0
    assert here.start_marker is None


def test_terms_and_votes_outlive_the_flushes_and_the_replica() -> None:
    vote = HardState(term=4, vote=2)
    log = log_of(flush(entry(1, 1), hard=vote))

    log.cut({GROUP: image(StartState(index=1, term=1, offset=1, membership=MEMBERS))})
    log.remove_group(GROUP)

    assert log.hard_state_of(GROUP) == vote
    assert log.hard_state_of(GROUP + 1) == NO_HARD_STATE


def test_recovery_never_finds_a_term_below_that_of_the_last_entry() -> None:
    saved = StartState(index=4, term=6, offset=4, membership=MEMBERS)
    log = log_of(flush(hard=HardState(term=5, vote=2)))

    assert log.recover(GROUP, image(saved)).hard == HardState(term=6, vote=0)


def test_a_damaged_group_is_recovered_without_its_log() -> None:
    here = image(StartState(index=4, term=6, offset=4, membership=MEMBERS))
    here.is_damaged = True

    found = log_of(flush(entry(5, 6))).recover(GROUP, here)

    assert (found.start.index, found.start.membership) == (4, MEMBERS)
    assert found.tail == []
    assert not here.holds(4, 6)


def test_an_image_knows_what_a_crash_would_leave() -> None:
    here = image()

    for one in (entry(1, 1), entry(2, 1), entry(3, 1), entry(2, 2)):
        here.note_durable(one)

    assert here.holds(1, 1)
    assert here.holds(2, 2)
    assert not here.holds(2, 1)
    assert not here.holds(3, 1)


def test_segments_before_the_log_start_are_dropped_with_the_checkpoint() -> None:
    here = image()
    here.segments = [entry(index, 1) for index in range(1, 6)]

    here.replace_checkpoint(StartState(index=4, term=1, offset=4, membership=MEMBERS, log_start_offset=3))

    assert here.first_index == 4
    assert positions(here.entries_from(4, 1 << 20)) == [(4, 1), (5, 1)]
    assert here.entries_from(3, 1 << 20) == []
