"""Lines of a trace."""

from tests.sim.knobs import calm_world
from tidings.raft.entries import Entry, EntryKind
from tidings.raft.messages import Append, InstallStart, VoteReply
from tidings.sim.describe import describe_entries, describe_message, describe_replica


def entry(index: int) -> Entry:
    return Entry(index, 3, EntryKind.RECORDS, index, 1, b"")


def test_entries_are_told_by_the_first_and_the_last() -> None:
    assert describe_entries([]) == "-"
    assert describe_entries([entry(4)]) == "4:3"
    assert describe_entries([entry(4), entry(5), entry(6)]) == "4:3..6:3"


def test_a_message_names_its_fields_and_only_the_flags_that_are_set() -> None:
    append = Append(0, 3, 1, 2, 7, 3, 6, [entry(8)], 0, 0)
    reply = VoteReply(0, 3, 2, 1, False, True, 3)

    assert "prev_index=7" in describe_message(append)
    assert "entries=8:3" in describe_message(append)
    assert "granted" in describe_message(reply).split()
    assert "pre" not in describe_message(reply).split()


def test_bytes_are_told_by_their_length() -> None:
    assert "piece=5B" in describe_message(InstallStart(0, 3, 1, 2, 7, 3, 0, 5, b"12345", 0))


def test_a_replica_is_told_by_its_role_and_the_marks_of_its_log() -> None:
    [group, *_] = calm_world().replicas_of(0)

    assert describe_replica(group).startswith("follower term 0 vote 0 leader 0 log 0..0:0")
