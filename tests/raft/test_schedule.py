"""Alarms of groups: never late, and cheap to put off."""

from __future__ import annotations

from tidings.raft.schedule import Schedule


def test_a_group_is_named_once_its_time_has_come() -> None:
    schedule = Schedule()
    schedule.wake(7, 100)

    assert schedule.due(99) == []
    assert schedule.due(100) == [7]
    assert schedule.due(1000) == []


def test_the_earliest_alarm_counts() -> None:
    schedule = Schedule()
    schedule.wake(7, 100)
    schedule.wake(7, 50)
    schedule.wake(7, 200)

    assert schedule.due(60) == [7]
    assert schedule.due(300) == []


def test_alarms_ring_in_order_of_time() -> None:
    schedule = Schedule()
    for group, at_ms in ((1, 30), (2, 10), (3, 20)):
        schedule.wake(group, at_ms)

    assert schedule.next_ms() == 10
    assert schedule.due(30) == [2, 3, 1]
    assert schedule.next_ms() is None


def test_a_forgotten_group_is_not_named() -> None:
    schedule = Schedule()
    schedule.wake(7, 100)

    schedule.forget(7)

    assert schedule.due(100) == []
