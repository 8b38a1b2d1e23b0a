"""What the write-ahead log says of a group: the newest record at an index wins, and what is lost is not
guessed."""

from __future__ import annotations

from tests.storage.broker_disk import indexes, records, start_mark
from tidings.raft.entries import Entry, HardState
from tidings.storage.wal_format import (
    FORGOTTEN,
    HARD_STATE,
    LAST_TERM,
    MARKS,
    RECORD,
    STATE,
    HeldFile,
    Mark,
)
from tidings.storage.wal_tails import CheckpointedAt, GroupTail, WalTails

GROUP = 1


def entry_record(entry: Entry) -> bytes:
    head = RECORD.pack(
        GROUP,
        entry.kind,
        entry.record_count,
        len(entry.payload),
        entry.index,
        entry.term,
        entry.base_offset,
    )
    return head + entry.payload


def hard_record(term: int, vote: int) -> bytes:
    return RECORD.pack(GROUP, HARD_STATE, 0, 0, 0, term, vote)


def state_record(term: int, last_index: int, last_term: int, marks: Mark = Mark.NONE) -> bytes:
    return RECORD.pack(GROUP, STATE, marks, LAST_TERM.size, last_index, term, 0) + LAST_TERM.pack(last_term)


class Log:
    """A log of one group whose checkpoint stands at an index."""

    def __init__(self, *, index: int = 0, term: int = 1, reset_sequence: int = 0) -> None:
        checkpoint = CheckpointedAt(index=index, term=term, reset_sequence=reset_sequence)
        self.tails = WalTails({GROUP: checkpoint} if index else {})
        self._sequence = 0
        self.file()
        if index:
            self.flush(hard_record(term, 0))

    @property
    def group(self) -> GroupTail:
        return self.tails.groups[GROUP]

    def file(self, *, is_opened: bool = False) -> None:
        number = len(self.tails.files) + 1
        self.tails.begin_file(HeldFile(number=number, file_bytes=0, last_index={}), is_opened=is_opened)

    def flush(self, *parts: Entry | bytes) -> None:
        self._sequence += 1
        body = b"".join(entry_record(part) if isinstance(part, Entry) else part for part in parts)
        self.tails.take_flush(self._sequence, body)

    def held(self) -> list[int]:
        return [file.last_index.get(GROUP, 0) for file in self.tails.files]


def test_entries_behind_the_checkpoint_are_the_tail() -> None:
    log = Log(index=2)

    log.flush(records(1), records(2), records(3), records(4))

    assert log.group.tail == [records(3), records(4)]
    assert log.group.problem() is None


def test_an_entry_replaces_what_is_at_its_index_and_behind() -> None:
    log = Log()
    log.flush(records(1), records(2), records(3))

    log.flush(records(2, term=2))

    assert log.group.tail == [records(1), records(2, term=2)]
    assert log.group.problem() is None


def test_an_entry_below_the_checkpoint_replaces_the_whole_tail() -> None:
    log = Log(index=5, term=2)
    log.flush(records(6), records(7))

    log.flush(records(4, term=2), records(5, term=2))

    assert log.group.tail == []
    assert log.group.problem() is None


def test_a_tail_written_again_is_the_same_tail() -> None:
    log = Log(index=2)
    log.flush(records(3), records(4))

    log.flush(records(3), records(4))

    assert log.group.tail == [records(3), records(4)]


def test_a_hole_is_damage_until_the_tail_is_written_again() -> None:
    log = Log(index=2)
    log.flush(records(5))
    assert "entries before index 5 are missing" in str(log.group.problem())

    log.flush(records(3), records(4), records(5))

    assert log.group.problem() is None
    assert indexes(log.group.tail) == [3, 4, 5]


def test_a_log_that_ends_before_where_it_had_reached_is_damaged() -> None:
    log = Log(index=2)

    log.flush(state_record(term=1, last_index=9, last_term=1))

    assert "had reached index 9" in str(log.group.problem())


def test_a_checkpoint_of_another_term_than_the_log_had_there_is_damage() -> None:
    log = Log(index=9, term=1)

    log.flush(state_record(term=2, last_index=9, last_term=2))

    assert log.group.problem() is not None


def test_the_newest_term_and_vote_count() -> None:
    log = Log()

    log.flush(hard_record(3, 11), hard_record(4, 12))

    assert log.group.hard == HardState(term=4, vote=12)


def test_a_checkpointed_group_without_term_and_vote_is_damaged() -> None:
    tails = WalTails({GROUP: CheckpointedAt(index=2, term=1, reset_sequence=0)})

    assert "its term and vote are not known" in str(tails.groups[GROUP].problem())


def test_a_new_group_needs_no_vote() -> None:
    tails = WalTails({GROUP: CheckpointedAt(index=0, term=0, reset_sequence=0)})

    assert tails.groups[GROUP].problem() is None


def test_behind_lost_flushes_nothing_of_a_group_is_known() -> None:
    log = Log()
    log.flush(records(1), hard_record(1, 0))

    log.tails.lose_all("a hole")

    assert log.group.tail == []
    assert "its term and vote are not known: a hole" in str(log.group.problem())
    log.flush(hard_record(2, 0))
    assert "the end of its log is not known: a hole" in str(log.group.problem())


def test_a_tail_written_whole_behind_lost_flushes_is_known() -> None:
    log = Log(index=2)
    log.flush(records(3), records(4))
    log.tails.lose_all("a hole")

    log.flush(hard_record(2, 0), records(3, term=2), records(4, term=2))

    assert log.group.problem() is None
    assert log.group.tail == [records(3, term=2), records(4, term=2)]


def test_a_state_behind_lost_flushes_clears_a_group_that_is_checkpointed_as_far() -> None:
    log = Log(index=4)
    log.flush(records(3), records(4))
    log.tails.lose_all("a hole")

    log.flush(state_record(term=2, last_index=4, last_term=1))

    assert log.group.problem() is None


def test_a_state_behind_lost_flushes_does_not_clear_a_group_whose_tail_was_lost() -> None:
    log = Log(index=2)
    log.flush(records(3), records(4))
    log.tails.lose_all("a hole")

    log.flush(state_record(term=2, last_index=4, last_term=1))

    assert log.group.problem() is not None


def test_a_group_first_seen_behind_lost_flushes_has_lost_its_vote() -> None:
    log = Log()
    log.tails.lose_all("a hole")

    log.flush(records(1))

    assert "its term and vote are not known" in str(log.group.problem())


def test_a_group_first_seen_in_a_file_after_the_damage_is_new() -> None:
    log = Log()
    log.tails.lose_all("a hole")

    log.file()
    log.flush(hard_record(1, 11))

    assert log.group.problem() is None


def test_marks_come_and_go() -> None:
    log = Log()
    log.flush(records(1), RECORD.pack(GROUP, MARKS, Mark.DAMAGED, 0, 0, 0, 0))
    assert log.group.problem() is not None

    log.flush(RECORD.pack(GROUP, MARKS, Mark.NONE, 0, 0, 0, 0))

    assert log.group.problem() is None


def test_a_start_mark_that_was_carried_out_empties_the_tail() -> None:
    log = Log(index=20, term=3, reset_sequence=3)
    log.flush(records(21), records(22))

    log.flush(start_mark(20, term=3), records(21, term=3))

    assert log.group.tail == [records(21, term=3)]
    assert log.group.problem() is None


def test_behind_a_start_mark_that_was_not_carried_out_the_old_log_counts() -> None:
    log = Log(index=2, reset_sequence=0)
    log.flush(records(3), records(4))

    log.flush(start_mark(20, term=3), records(21, term=3), hard_record(3, 0))
    log.flush(records(22, term=3), state_record(term=3, last_index=22, last_term=3))

    assert indexes(log.group.tail) == [3, 4]
    assert log.group.hard == HardState(term=3, vote=0)
    assert log.group.problem() is None


def test_the_next_process_writes_on_behind_a_start_mark_that_was_not_carried_out() -> None:
    log = Log(index=2)
    log.flush(records(3))
    log.flush(start_mark(20, term=3), records(21, term=3))

    log.file(is_opened=True)
    log.flush(state_record(term=3, last_index=3, last_term=1))
    log.flush(records(4))

    assert indexes(log.group.tail) == [3, 4]
    assert log.group.problem() is None


def test_a_start_mark_not_carried_out_is_not_taken_for_a_later_one() -> None:
    log = Log(index=30, term=4, reset_sequence=3)
    log.flush(start_mark(20, term=3))

    log.flush(start_mark(30, term=4))

    assert not log.group.is_ignoring
    assert log.group.problem() is None


def test_a_forgotten_group_is_unknown() -> None:
    log = Log()
    log.flush(records(1), hard_record(1, 0))

    log.flush(RECORD.pack(GROUP, FORGOTTEN, 0, 0, 0, 0, 0))

    assert log.tails.groups == {}
    assert log.held() == [0]


def test_a_forgotten_group_that_came_back_has_only_its_new_records() -> None:
    log = Log(index=2)
    log.flush(records(3), records(4))

    log.flush(RECORD.pack(GROUP, FORGOTTEN, 0, 0, 0, 0, 0), records(3, term=7), hard_record(7, 0))

    assert log.group.tail == [records(3, term=7)]
    assert log.group.problem() is None


def test_a_file_holds_what_no_later_file_replaced() -> None:
    log = Log()
    log.flush(records(1), records(2), records(3))
    log.file()
    log.flush(records(4), records(5))
    assert log.held() == [3, 5]

    log.file()
    log.flush(records(3, term=2))

    assert log.held() == [2, 2, 3]


def test_what_was_written_behind_a_start_mark_in_vain_holds_no_file() -> None:
    log = Log(index=2, reset_sequence=4)
    log.flush(start_mark(20, term=3), records(21, term=3))
    log.file(is_opened=True)
    log.flush(state_record(term=3, last_index=2, last_term=1))

    log.flush(start_mark(2, term=4), records(3, term=4))

    assert log.held() == [1, 3]


def test_behind_a_start_mark_not_carried_out_the_old_log_still_holds_its_files() -> None:
    log = Log(index=2)
    log.flush(records(3), records(4), records(5))

    log.flush(start_mark(3, term=3), records(4, term=3))
    log.file()
    log.flush(state_record(term=3, last_index=4, last_term=3))

    assert log.held() == [5, 0]
