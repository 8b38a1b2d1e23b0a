"""Tests of node/settling.py: when a change is visible on every living broker."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.node.messages import Ask, Settled, decode
from tidings.node.settling import Settling
from tidings.node.timers import Timers

DEADLINE_MS = 500
INDEX = 7


class FakeOwner:
    """A broker that has applied the metadata up to an index and knows the leaders of some groups."""

    def __init__(self, *peers: int, leaders_known: Sequence[int] = ()) -> None:
        self.timers = Timers()
        self.index = INDEX
        self.peers = list(peers)
        self.leaders_known = set(leaders_known)
        self.asks: list[tuple[int, Ask]] = []
        self.answers: list[tuple[int, Settled]] = []

    def metadata_index(self) -> int:
        return self.index

    def first_unled(self, groups: Sequence[int]) -> int | None:
        return next((group for group in groups if group not in self.leaders_known), None)

    def living_members(self) -> list[int]:
        return self.peers

    def send_to(self, member: int, frame: bytes) -> None:
        said = decode(frame)
        if isinstance(said, Ask):
            self.asks.append((member, said))
        else:
            assert isinstance(said, Settled)
            self.answers.append((member, said))


class Change:
    """One change that is waited for, and what was told of it."""

    def __init__(self, owner: FakeOwner, *groups: int) -> None:
        self.settling = Settling(owner)
        self.told: list[bool] = []
        self.settling.when_settled(groups, DEADLINE_MS, self.told.append)
        self.contexts = {member: ask.context for member, ask in owner.asks}

    def answer(self, member: int) -> None:
        self.settling.answered(member, Settled(self.contexts[member]))


def test_all_living_brokers_are_asked_for_what_this_one_has_applied() -> None:
    owner = FakeOwner(12, 13, leaders_known=[1])

    change = Change(owner, 1)

    assert [(member, ask.index, ask.groups) for member, ask in owner.asks] == [
        (12, INDEX, (1,)),
        (13, INDEX, (1,)),
    ]
    assert change.told == []


def test_a_change_is_settled_when_the_last_one_says_so() -> None:
    owner = FakeOwner(12, 13, leaders_known=[1])
    change = Change(owner, 1)

    change.answer(12)
    told_after_one = list(change.told)
    change.answer(13)

    assert (told_after_one, change.told) == ([], [True])


def test_a_broker_alone_is_settled_but_not_within_the_call() -> None:
    owner = FakeOwner()
    change = Change(owner)
    told_within_the_call = list(change.told)

    owner.timers.run(0)

    assert (told_within_the_call, change.told) == ([], [True])


def test_leaders_that_this_broker_does_not_know_yet_are_waited_for() -> None:
    owner = FakeOwner(12)
    change = Change(owner, 1)
    change.answer(12)
    told_without_a_leader = list(change.told)

    owner.leaders_known.add(1)
    change.settling.check()

    assert (told_without_a_leader, change.told) == ([], [True])


def test_a_leader_that_was_known_once_is_enough() -> None:
    owner = FakeOwner(12, leaders_known=[1])
    change = Change(owner, 1)
    change.settling.check()

    owner.leaders_known.clear()
    change.answer(12)

    assert change.told == [True]


def test_a_broker_that_dies_is_waited_for_no_longer() -> None:
    owner = FakeOwner(12, 13)
    change = Change(owner)
    change.answer(12)

    change.settling.member_gone(13)

    assert change.told == [True]


def test_when_time_is_up_the_change_is_told_as_unsettled_once() -> None:
    owner = FakeOwner(12)
    change = Change(owner)

    owner.timers.run(DEADLINE_MS)
    change.answer(12)

    assert change.told == [False]


def test_an_answer_to_nothing_is_ignored() -> None:
    owner = FakeOwner(12)
    change = Change(owner)

    change.settling.answered(12, Settled(999))
    change.settling.answered(99, Settled(change.contexts[12]))

    assert change.told == []


def test_a_peer_is_answered_at_once_where_all_is_known() -> None:
    owner = FakeOwner(leaders_known=[1])

    Settling(owner).asked(12, Ask(5, INDEX, (1,)))

    assert owner.answers == [(12, Settled(5))]


def test_a_peer_is_answered_as_soon_as_the_change_is_applied_and_its_leaders_are_known() -> None:
    owner = FakeOwner()
    settling = Settling(owner)
    settling.asked(12, Ask(5, INDEX + 1, (1,)))

    owner.index += 1
    settling.check()
    answers_without_a_leader = list(owner.answers)
    owner.leaders_known.add(1)
    settling.check()
    settling.check()

    assert answers_without_a_leader == []
    assert owner.answers == [(12, Settled(5))]


def test_a_peer_that_is_gone_is_not_answered() -> None:
    owner = FakeOwner()
    settling = Settling(owner)
    settling.asked(12, Ask(5, INDEX + 1, ()))

    settling.member_gone(12)
    owner.index += 1
    settling.check()

    assert owner.answers == []
