"""Tests of node/freshness.py: leaders that clients are told of have answered since they were asked about."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.node.freshness import Freshness
from tidings.node.messages import Ping, Pong, decode
from tidings.node.timers import Timers

DEADLINE_MS = 500


class FakeOwner:
    """Leaders by group; a group without one has 0."""

    def __init__(self, **leaders: int) -> None:
        self.timers = Timers()
        self.leaders = {int(name[1:]): member for name, member in leaders.items()}
        self.sent: list[tuple[int, Ping]] = []
        self.looked_at: list[int] = []

    def first_unled(self, groups: Sequence[int]) -> int | None:
        self.looked_at += groups
        return next((group for group in groups if not self.leaders.get(group)), None)

    def leading_members(self, groups: Sequence[int]) -> set[int]:
        return {self.leaders[group] for group in groups if self.leaders.get(group)}

    def send_to(self, member: int, frame: bytes) -> None:
        ping = decode(frame)
        assert isinstance(ping, Ping)
        self.sent.append((member, ping))


class Asked:
    """One question, and how often it was answered."""

    def __init__(self, owner: FakeOwner, *groups: int, freshness: Freshness | None = None) -> None:
        self.freshness = freshness or Freshness(owner)
        self.count = 0
        self.freshness.when_fresh(groups, DEADLINE_MS, self._answered)
        self.contexts = {member: ping.context for member, ping in owner.sent}

    def pong(self, member: int) -> None:
        self.freshness.answered(member, Pong(self.contexts[member]))

    def _answered(self) -> None:
        self.count += 1


def test_an_answer_waits_until_every_leader_has_answered() -> None:
    owner = FakeOwner(g1=12, g2=13, g3=12)
    asked = Asked(owner, 1, 2, 3)

    asked.pong(12)
    count_after_one = asked.count
    asked.pong(13)

    assert sorted(member for member, _ in owner.sent) == [12, 13]
    assert (count_after_one, asked.count) == (0, 1)


def test_the_answer_of_an_earlier_question_does_not_count() -> None:
    owner = FakeOwner(g1=12)
    asked = Asked(owner, 1)

    asked.freshness.answered(12, Pong(asked.contexts[12] + 1))

    assert asked.count == 0


def test_with_no_other_broker_to_ask_the_answer_comes_at_once_but_not_within_the_call() -> None:
    owner = FakeOwner()
    asked = Asked(owner)
    count_within_the_call = asked.count

    owner.timers.run(0)

    assert (count_within_the_call, asked.count) == (0, 1)


def test_a_group_without_a_leader_is_waited_for() -> None:
    owner = FakeOwner(g1=0)
    asked = Asked(owner, 1)
    owner.timers.run(0)
    count_without_a_leader = asked.count

    owner.leaders[1] = 12
    asked.freshness.check()

    assert (count_without_a_leader, asked.count) == (0, 1)


def test_while_one_group_has_no_leader_the_others_are_not_looked_at_again() -> None:
    owner = FakeOwner(g1=12, g2=0, g3=12)
    asked = Asked(owner, 1, 2, 3)
    asked.pong(12)
    owner.looked_at.clear()

    asked.freshness.check()
    looked_at_while_unled = list(owner.looked_at)
    owner.leaders.update({1: 0, 2: 12})
    asked.freshness.check()
    count_without_the_first = asked.count
    owner.leaders[1] = 12
    asked.freshness.check()

    assert looked_at_while_unled == [2]
    assert (count_without_the_first, asked.count) == (0, 1)


def test_after_a_leaders_death_the_answer_waits_for_the_next_one() -> None:
    owner = FakeOwner(g1=12)
    asked = Asked(owner, 1)
    owner.leaders[1] = 0
    asked.freshness.member_gone(12)
    count_without_a_leader = asked.count

    owner.leaders[1] = 13
    asked.freshness.check()

    assert (count_without_a_leader, asked.count) == (0, 1)


def test_a_dead_broker_that_has_been_succeeded_already_is_waited_for_no_longer() -> None:
    owner = FakeOwner(g1=12)
    asked = Asked(owner, 1)
    owner.leaders[1] = 13

    asked.freshness.member_gone(12)

    assert asked.count == 1


def test_when_time_is_up_what_is_known_is_told_once() -> None:
    owner = FakeOwner(g1=12)
    asked = Asked(owner, 1)

    owner.timers.run(DEADLINE_MS)
    asked.pong(12)
    asked.freshness.check()

    assert asked.count == 1


def test_an_answer_in_time_cancels_the_alarm() -> None:
    owner = FakeOwner(g1=12)
    asked = Asked(owner, 1)

    asked.pong(12)

    assert owner.timers.next_ms() is None
