"""Tests of broker/changes.py: several commands for one request, told when they can be seen or when time is
up."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.changes import UNKNOWN, UNSETTLED, Change, make_changes
from tidings.broker.commands import AllotProducerIds, CreateTopic
from tidings.broker.outcome import Outcome
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode

TIMEOUT_MS = 5_000


class Made:
    """A broker's site over a world, and what became of the changes made there."""

    def __init__(self) -> None:
        self.world = World()
        self.told: list[list[Outcome]] = []
        self.site = Site(config=self.world.config, cluster=self.world.broker.cluster, ports=self.world.ports)

    def make(self, *changes: Change, timeout_ms: int = TIMEOUT_MS) -> None:
        now_ms = self.world.now_ms
        make_changes(self.site, changes, now_ms=now_ms, timeout_ms=timeout_ms, then=self.told.append)


def creation(name: str, *, replication_factor: int = 1) -> Change:
    command = CreateTopic(
        name=name,
        topic_id=name.encode() * 16,
        partition_count=2,
        replication_factor=replication_factor,
        candidates=(1, 2, 3),
    )
    return Change(command=command)


@pytest.fixture
def made() -> Made:
    return Made()


def test_outcomes_are_told_in_the_order_of_the_changes_once_all_is_settled(made: Made) -> None:
    made.make(creation("a"), creation("b", replication_factor=9), creation("c"))
    assert made.told == []

    made.world.settle()

    (outcomes,) = made.told
    assert [outcome.code for outcome in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.NONE,
    ]
    assert made.world.settling.asked == [(1, 2, 3, 4)]
    assert made.world.timers.pending_count == 0


def test_changes_that_need_no_leaders_are_awaited_without_groups(made: Made) -> None:
    made.make(Change(command=AllotProducerIds(broker_id=1, id_count=1), awaits_leaders=False))

    made.world.settle()

    assert made.world.settling.asked == [()]


def test_nothing_is_awaited_where_everything_was_refused(made: Made) -> None:
    made.make(creation("a", replication_factor=9))

    made.world.settle()

    assert made.world.settling.asked == []
    assert made.told[0][0].code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_change_whose_fate_is_unknown_timed_out(made: Made) -> None:
    made.world.controller.is_reachable = False
    made.make(creation("a"))

    made.world.settle()

    assert made.told == [[UNKNOWN]]


def test_the_answer_comes_in_the_time_the_client_gave(made: Made) -> None:
    made.make(creation("a"))

    made.world.timers.advance(TIMEOUT_MS)
    assert made.told == [[UNKNOWN]]
    made.world.settle()

    assert made.told == [[UNKNOWN]]


def test_no_client_waits_longer_than_the_brokers_own_limit(made: Made) -> None:
    made.make(creation("a"), timeout_ms=2**31 - 1)

    made.world.timers.advance(made.world.config.controller_timeout_ms)

    assert made.told == [[UNKNOWN]]


def test_a_change_that_is_not_seen_everywhere_in_time_is_told_so(made: Made) -> None:
    made.world.settling.is_settled = False
    made.make(creation("a"))

    made.world.settle()

    assert made.told == [[UNSETTLED]]
