"""Who leads what, and digests that agree exactly when the tables do."""

from __future__ import annotations

from tidings.raft.leaders import LeaderTable, mix


def test_the_newest_term_wins_whatever_the_order() -> None:
    leaders = LeaderTable()

    leaders.learn(7, 2, 5)
    leaders.learn(7, 1, 4)

    assert leaders.table[7] == (2, 5)


def test_a_newer_term_without_a_leader_replaces_the_old_leader() -> None:
    leaders = LeaderTable()
    leaders.learn(7, 2, 5)

    leaders.learn(7, 0, 6)

    assert leaders.table[7] == (0, 6)
    assert leaders.digest_of(2) == 0


def test_within_a_term_a_known_leader_stays() -> None:
    leaders = LeaderTable()
    leaders.learn(7, 2, 5)

    leaders.learn(7, 0, 5)

    assert leaders.table[7] == (2, 5)


def test_only_the_leader_itself_can_disown_a_group() -> None:
    leaders = LeaderTable()
    leaders.learn(7, 2, 5)

    leaders.disown(7, 1)
    assert leaders.table[7] == (2, 5)
    leaders.disown(7, 2)

    assert leaders.table[7] == (0, 5)


def test_digests_agree_when_the_same_is_known_by_whatever_way() -> None:
    one, other = LeaderTable(), LeaderTable()
    for group in range(20):
        one.learn(group, 2, 3)
    for group in reversed(range(25)):
        other.learn(group, 1, 2)
        other.learn(group, 2, 3)
    for group in range(20, 25):
        other.forget(group)

    assert one.digest_of(2) == other.digest_of(2) != 0
    assert other.digest_of(1) == 0
    assert sorted(other.led_by(2)) == [(group, 3) for group in range(20)]


def test_a_digest_tells_terms_and_groups_apart() -> None:
    numbers = {mix(group, term) for group in range(100) for term in range(100)}

    assert len(numbers) == 100 * 100
    assert all(number < 1 << 64 for number in numbers)
