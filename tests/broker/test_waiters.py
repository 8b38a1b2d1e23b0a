"""Tests of broker/waiters.py: who is settled when, and what happens when that sets off more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidings.broker.waiters import NEVER_MS, WaiterQueue
from tidings.protocol.errors import ErrorCode


@dataclass
class Waiting:
    """A waiter that notes how it was settled, in a list it may share with others."""

    offset: int
    deadline_ms: int = 100
    settled: list[tuple[int, ErrorCode]] = field(default_factory=list)
    also: Callable[[], None] = lambda: None

    def settle(self, code: ErrorCode) -> None:
        self.settled.append((self.offset, code))
        self.also()


def test_waiters_are_settled_when_their_offset_is_reached() -> None:
    queue = WaiterQueue()
    settled: list[tuple[int, ErrorCode]] = []
    for offset in (1, 2, 2, 3):
        queue.add(Waiting(offset, settled=settled))

    queue.reach(2)

    assert settled == [(1, ErrorCode.NONE), (2, ErrorCode.NONE), (2, ErrorCode.NONE)]
    assert len(queue) == 1


def test_a_waiter_for_an_earlier_offset_is_put_in_its_place() -> None:
    queue = WaiterQueue()
    settled: list[tuple[int, ErrorCode]] = []
    for offset in (5, 9, 3):
        queue.add(Waiting(offset, settled=settled))

    queue.reach(4)

    assert settled == [(3, ErrorCode.NONE)]


def test_those_whose_time_is_up_are_settled_and_the_next_deadline_is_told() -> None:
    queue = WaiterQueue()
    settled: list[tuple[int, ErrorCode]] = []
    for offset, deadline_ms in ((1, 300), (2, 100), (3, 200)):
        queue.add(Waiting(offset, deadline_ms, settled))

    assert queue.expire(100) == 200
    assert settled == [(2, ErrorCode.REQUEST_TIMED_OUT)]
    assert queue.expire(300) == NEVER_MS


def test_failing_settles_who_waits_now_and_not_who_comes_then() -> None:
    queue = WaiterQueue()
    late = Waiting(2)
    first = Waiting(1, also=lambda: queue.add(late))
    queue.add(first)

    queue.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert first.settled == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert late.settled == []
    assert len(queue) == 1


def test_a_waiter_that_comes_while_others_are_settled_is_settled_too() -> None:
    queue = WaiterQueue()
    late = Waiting(2)
    queue.add(Waiting(1, also=lambda: queue.add(late)))

    queue.reach(2)

    assert late.settled == [(2, ErrorCode.NONE)]
