"""What one client's connection may hold of the memory of all, and what it waits for."""

from __future__ import annotations

import pytest

from tests.clients import wire
from tests.runtime.client_side import MIB, Owner, connect, produce, question
from tidings.config.options import Config
from tidings.protocol.messages.api_versions import ApiVersionsResponse
from tidings.protocol.messages.produce import ProduceResponse


@pytest.fixture
def owner() -> Owner:
    return Owner()


def test_reading_stops_while_the_whole_broker_holds_too_much(owner: Owner) -> None:
    connection, transport = connect(owner)
    owner.memory.request_bytes = owner.config.memory_bytes_max + 1

    transport.receive(question(1))
    assert owner.requests == []
    assert transport.is_reading_paused
    assert owner.starving == [connection]
    owner.memory.request_bytes = 0
    connection.proceed()

    assert len(owner.requests) == 1
    assert not transport.is_reading_paused


def test_a_large_request_is_counted_whole_as_soon_as_it_is_begun(owner: Owner) -> None:
    _, transport = connect(owner)
    request = produce(1, value=b"v" * MIB)

    transport.receive(request[:1_000])
    assert owner.buffered_bytes == len(request) - 4
    transport.receive(request[1_000:])
    owner.turn()

    assert len(owner.requests) == 1
    assert owner.buffered_bytes == 0


def test_a_large_request_waits_where_there_is_no_room_for_it(owner: Owner) -> None:
    connection, transport = connect(owner)
    held_bytes = owner.memory.begun_bytes = owner.config.memory_bytes_max // 2 - 1_000

    transport.receive(produce(1, value=b"v" * MIB)[:500])

    assert transport.is_reading_paused
    assert owner.starving == [connection]
    assert owner.buffered_bytes == held_bytes


def test_answers_that_nobody_takes_hold_up_fetches_only(owner: Owner) -> None:
    connection, transport = connect(owner)
    owner.memory.answer_bytes = owner.config.memory_bytes_max + 1

    transport.receive(question(1))
    transport.receive(wire.frame(wire.FETCH, 4, wire.fetch_body("t", 0), correlation=2))
    assert [request.correlation_id for request in owner.requests] == [1]
    assert owner.starving == [connection]
    owner.memory.answer_bytes = 0
    connection.proceed()

    assert [request.correlation_id for request in owner.requests] == [1, 2]


def test_memory_that_an_answer_reserves_is_held_until_it_leaves(owner: Owner) -> None:
    owner.answers_at_once = False
    _, transport = connect(owner)
    transport.receive(question(1))
    (request,) = owner.requests
    room_bytes = request.room()

    request.reserve(MIB)
    assert owner.memory.answer_bytes == MIB
    assert request.room() < room_bytes
    request.answer(ApiVersionsResponse())

    assert owner.memory.answer_bytes == 0


def test_memory_reserved_for_who_is_gone_is_free(owner: Owner) -> None:
    owner.answers_at_once = False
    connection, transport = connect(owner)
    transport.receive(question(1))
    (request,) = owner.requests
    request.reserve(MIB)

    connection.abort()
    request.reserve(MIB)

    assert owner.memory.answer_bytes == 0


def test_whole_requests_that_wait_for_memory_are_counted_until_they_are_begun(owner: Owner) -> None:
    owner.answers_at_once = False
    connection, transport = connect(owner)
    owner.memory.request_bytes = owner.config.memory_bytes_max + 1
    request = produce(1, value=b"v" * MIB)
    frame_bytes = len(request) - 4

    transport.receive(request[:1_000])
    transport.receive(request[1_000:])
    assert (owner.memory.begun_bytes, owner.memory.waiting_bytes) == (0, frame_bytes)
    owner.memory.request_bytes = 0
    connection.proceed()

    assert (owner.memory.waiting_bytes, owner.memory.request_bytes) == (0, frame_bytes)


def test_whole_requests_of_who_is_gone_are_counted_no_more(owner: Owner) -> None:
    connection, transport = connect(owner)
    owner.memory.request_bytes = owner.config.memory_bytes_max + 1
    transport.receive(produce(1) + produce(2))
    assert owner.memory.waiting_bytes

    connection.abort()

    assert owner.memory.waiting_bytes == 0


def test_large_requests_that_wait_hold_up_large_ones_that_arrive(owner: Owner) -> None:
    connection, transport = connect(owner)
    owner.memory.waiting_bytes = owner.config.memory_bytes_max // 2

    transport.receive(produce(1, value=b"v" * MIB)[:1_000])

    assert transport.is_reading_paused
    assert owner.starving == [connection]


def test_one_connection_takes_its_share_and_not_the_memory_of_all() -> None:
    owner = Owner(Config(request_bytes_max=2 * MIB, memory_bytes_max=8 * MIB))
    owner.answers_at_once = False
    _, transport = connect(owner)

    transport.receive(b"".join(produce(number, value=b"v" * (800 * 1024)) for number in range(1, 5)))
    assert len(owner.requests) == 2
    assert owner.starving == []  # others are not asked to hurry for it
    owner.requests[0].answer(ProduceResponse(throttle_time_ms=0))
    owner.turn()

    assert len(owner.requests) == 3


def test_a_request_without_records_is_not_as_long_as_one_with() -> None:
    owner = Owner(Config(request_bytes_max=2 * MIB))
    connection, transport = connect(owner)

    transport.receive(wire.frame(wire.METADATA, 4, bytes(MIB // 2)))

    (complaint,) = owner.complaints
    assert complaint.startswith("too long for a request without records")
    assert owner.gone == [connection]


def test_a_request_that_is_padded_is_refused(owner: Owner) -> None:
    connection, transport = connect(owner)

    transport.receive(wire.frame(wire.FETCH, 4, wire.fetch_body("t", 0) + bytes(1_000)))

    assert owner.gone == [connection]
    assert owner.requests == []
