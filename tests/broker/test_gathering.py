"""Tests of broker/gathering.py: an answer leaves when its last part is there, once."""

from __future__ import annotations

from tests.fakes.world import Asked
from tidings.broker.gathering import Gathering
from tidings.protocol.apis import ApiKey
from tidings.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse


def make_asked() -> Asked:
    return Asked(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest())


def test_an_answer_that_misses_nothing_is_returned() -> None:
    asked, response = make_asked(), ListOffsetsResponse()

    assert Gathering(asked.request).seal(response) is response
    assert not asked.is_answered


def test_an_answer_leaves_with_its_last_part() -> None:
    asked, response = make_asked(), ListOffsetsResponse()
    gathering = Gathering(asked.request)
    gathering.expect()
    gathering.expect()
    assert gathering.seal(response) is None

    gathering.arrived()
    assert not asked.is_answered
    gathering.arrived()

    assert asked.answers == [response]


def test_parts_that_arrive_before_the_rest_is_known_do_not_answer() -> None:
    asked, response = make_asked(), ListOffsetsResponse()
    gathering = Gathering(asked.request)
    gathering.expect()
    gathering.arrived()

    assert not asked.is_answered
    assert gathering.seal(response) is response
