"""Tests of broker/producer_ids.py: ids out of blocks, each once."""

from __future__ import annotations

from functools import partial

from tests.fakes.calls import Calls
from tests.fakes.controller import FakeController
from tidings.broker.cluster import FIRST_PRODUCER_ID, ClusterState
from tidings.broker.producer_ids import BLOCK_ID_COUNT, ProducerIds


class Source:
    """A broker's ids over a metadata group of its own."""

    def __init__(self, state: ClusterState | None = None) -> None:
        self.calls = Calls()
        self.controller = FakeController(self.calls, partial((state or ClusterState()).apply, proposal=b""))
        self.ids = ProducerIds(broker_id=1, controller=self.controller)
        self.taken: list[int | None] = []

    def take(self) -> None:
        """One id, at once or later."""
        producer_id = self.ids.take()
        if producer_id is None:
            self.ids.take_later(self.taken.append, 0)
            self.calls.run()
        else:
            self.taken.append(producer_id)


def test_a_block_is_asked_for_once_per_thousand_ids() -> None:
    source = Source()

    for _ in range(BLOCK_ID_COUNT + 1):
        source.take()

    assert source.taken == list(range(FIRST_PRODUCER_ID, FIRST_PRODUCER_ID + BLOCK_ID_COUNT + 1))
    assert len(source.controller.proposed) == 2


def test_two_brokers_never_have_the_same_id() -> None:
    state = ClusterState()
    one, other = Source(state), Source(state)

    for _ in range(3):
        one.take()
        other.take()

    assert not set(one.taken) & set(other.taken)


def test_all_who_wait_are_served_from_one_block() -> None:
    source = Source()
    for _ in range(3):
        source.ids.take_later(source.taken.append, 0)

    source.calls.run()

    assert source.taken == [1, 2, 3]
    assert len(source.controller.proposed) == 1


def test_nobody_gets_an_id_when_no_block_can_be_had() -> None:
    source = Source()
    source.controller.is_reachable = False

    source.take()

    assert source.taken == [None]


def test_the_next_request_asks_again() -> None:
    source = Source()
    source.controller.is_reachable = False
    source.take()
    source.controller.is_reachable = True

    source.take()

    assert source.taken == [None, 1]
