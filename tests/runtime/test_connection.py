"""One client's connection: order, limits, slowness, and every kind of nonsense."""

from __future__ import annotations

import re
import struct

import pytest

from tests.clients import wire
from tests.fakes.transport import FakeTransport
from tests.runtime.client_side import MIB, Owner, answered, connect, produce, question
from tidings.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidings.protocol.messages.produce import ProduceResponse
from tidings.runtime.connection import ClientConnection


@pytest.fixture
def owner() -> Owner:
    return Owner()


# Order


def test_a_request_is_handed_over_with_all_that_is_known_of_its_client(owner: Owner) -> None:
    _, transport = connect(owner)

    transport.receive(question(7))

    (request,) = owner.requests
    assert (request.api_key, request.api_version, request.correlation_id) == (18, 0, 7)
    assert (request.client_id, request.client_host) == ("wire", "127.0.0.1")
    assert (request.listener_host, request.listener_port) == ("127.0.0.1", 9_092)
    assert isinstance(request.body, ApiVersionsRequest)


def test_answers_leave_once_per_turn_in_one_piece(owner: Owner) -> None:
    _, transport = connect(owner)

    transport.receive(question(1) + question(2))
    assert transport.sent == b""
    owner.turn()

    assert answered(transport.sent) == [1, 2]


def test_answers_leave_in_the_order_of_the_requests(owner: Owner) -> None:
    owner.answers_at_once = False
    _, transport = connect(owner)
    transport.receive(question(1) + question(2) + question(3))
    first, second, third = owner.requests

    third.answer(ApiVersionsResponse())
    second.answer(ApiVersionsResponse())
    owner.turn()
    assert transport.sent == b""
    first.answer(ApiVersionsResponse())
    owner.turn()

    assert answered(transport.sent) == [1, 2, 3]


def test_a_request_without_an_answer_takes_no_place(owner: Owner) -> None:
    owner.answers_at_once = False
    _, transport = connect(owner)

    transport.receive(b"".join(produce(number, acks=0) for number in range(1, 20)))
    owner.requests.clear()
    transport.receive(question(20))
    owner.requests[0].answer(ApiVersionsResponse())
    owner.turn()

    assert answered(transport.sent) == [20]


def test_a_late_answer_finds_nobody_where_the_client_is_gone(owner: Owner) -> None:
    owner.answers_at_once = False
    connection, transport = connect(owner)
    transport.receive(question(1))

    connection.abort()
    owner.requests[0].answer(ApiVersionsResponse())
    owner.turn()

    assert transport.sent == b""
    assert owner.gone == [connection]
    assert owner.buffered_bytes == 0


# Limits


def test_no_more_requests_are_begun_than_may_be_in_flight_and_reading_stops(owner: Owner) -> None:
    owner.answers_at_once = False
    _, transport = connect(owner)

    transport.receive(b"".join(question(number) for number in range(1, 9)))
    assert len(owner.requests) == 5
    assert transport.is_reading_paused
    for request in list(owner.requests):
        request.answer(ApiVersionsResponse())
    owner.turn()

    assert len(owner.requests) == 8
    assert not transport.is_reading_paused


def test_nothing_is_begun_and_nothing_read_while_the_broker_stands_still(owner: Owner) -> None:
    connection, transport = connect(owner)
    owner.is_paused = True
    connection.proceed()
    assert transport.is_reading_paused

    owner.is_paused = False
    connection.proceed()
    transport.receive(question(1))

    assert len(owner.requests) == 1


def test_a_client_that_comes_while_the_broker_stands_still_is_not_read(owner: Owner) -> None:
    owner.is_paused = True

    _, transport = connect(owner)

    assert transport.is_reading_paused


def test_who_is_one_too_many_is_dropped_without_a_word(owner: Owner) -> None:
    owner.is_full = True

    _, transport = connect(owner)

    assert transport.was_aborted
    assert transport.sent == b""


# Slow and silent clients


def slow_reader(owner: Owner) -> tuple[ClientConnection, FakeTransport]:
    """A client that has asked for more than it takes."""
    owner.answer = ProduceResponse(throttle_time_ms=0)
    connection, transport = connect(owner)
    transport.is_stuck = True
    connection._output.append(bytes(2 * MIB))
    connection.write_output()
    return connection, transport


def test_a_slow_reader_is_given_nothing_more_to_do(owner: Owner) -> None:
    _, transport = slow_reader(owner)

    assert transport.is_reading_paused
    assert owner.buffered_bytes == 2 * MIB


def test_a_slow_reader_that_takes_its_answers_goes_on(owner: Owner) -> None:
    _, transport = slow_reader(owner)

    transport.take()

    assert not transport.is_reading_paused
    assert owner.buffered_bytes == 0


def test_a_slow_reader_is_closed_when_it_took_no_byte_for_too_long(owner: Owner) -> None:
    connection, transport = slow_reader(owner)

    owner.time_ms += owner.config.slow_reader_ms_max
    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)
    assert owner.complaints == []
    owner.time_ms += 1
    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    assert owner.complaints == [f"took no byte of {2 * MIB} for 30001 ms"]
    assert transport.was_aborted
    assert owner.buffered_bytes == 0


def test_a_slow_reader_that_takes_a_little_is_given_time(owner: Owner) -> None:
    connection, transport = slow_reader(owner)

    for _ in range(5):
        owner.time_ms += owner.config.slow_reader_ms_max
        transport.take(1)
        connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    assert owner.complaints == []


def test_who_stops_in_the_middle_of_a_request_is_closed(owner: Owner) -> None:
    connection, transport = connect(owner)
    transport.receive(produce(1, value=b"v" * 1_000)[:-1])

    owner.time_ms += owner.config.slow_reader_ms_max + 1
    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    (complaint,) = owner.complaints
    assert complaint.startswith("sent no byte of the 1 that its request lacks")
    assert owner.buffered_bytes == 0


def test_an_idle_client_is_closed_without_an_event(owner: Owner) -> None:
    connection, _ = connect(owner)

    owner.time_ms += owner.config.connection_idle_ms_max + 1
    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    assert owner.gone == [connection]
    assert owner.complaints == []


def test_a_client_that_waits_for_its_answer_is_not_idle(owner: Owner) -> None:
    owner.answers_at_once = False
    connection, transport = connect(owner)
    transport.receive(question(1))

    owner.time_ms += owner.config.connection_idle_ms_max + 1
    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    assert owner.gone == []


def test_what_was_answered_still_leaves_when_a_connection_is_closed(owner: Owner) -> None:
    connection, transport = connect(owner)
    transport.receive(question(1))

    connection.close("enough")

    assert answered(transport.sent) == [1]
    assert owner.gone == [connection]


def test_who_does_not_take_the_last_answers_is_dropped_at_the_next_look(owner: Owner) -> None:
    connection, transport = connect(owner)
    transport.is_stuck = True
    transport.receive(question(1))
    connection.close("enough")
    assert owner.gone == []

    connection.check_progress(owner.time_ms, owner.config.slow_reader_ms_max)

    assert owner.gone == [connection]


# Nonsense


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(owner: Owner) -> None:
    _, transport = connect(owner)

    transport.receive(wire.frame(wire.API_VERSIONS, 99, b"", correlation=5))
    owner.turn()

    assert answered(transport.sent) == [5]
    assert isinstance(owner.requests[0].body, ApiVersionsRequest)
    assert owner.requests[0].api_version == 99


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "bad frame length"),
        (b"\x16\x03\x01\x02\x00\x01", "bad frame length"),
        (struct.pack(">i", 2**31 - 1), "bad frame length"),
        (struct.pack(">i", -1), "bad frame length"),
        (struct.pack(">i", 0), "bad frame length"),
        (struct.pack(">i", 3) + b"abc", "malformed request header"),
        (wire.frame(999, 0, b""), "999"),
        (wire.frame(wire.PRODUCE, 99, b""), "99"),
        (wire.frame(wire.METADATA, 4, struct.pack(">i", 2**31 - 1)), "array longer than its frame"),
        (wire.frame(wire.PRODUCE, 7, b"\0"), "malformed message"),
    ],
)
def test_what_is_no_request_closes_the_connection_once(owner: Owner, received: bytes, reason: str) -> None:
    connection, transport = connect(owner)

    transport.receive(received)
    connection.data_received(received)

    (complaint,) = owner.complaints
    assert re.search(reason, complaint), complaint
    assert owner.gone == [connection]
    assert owner.requests == []
    assert owner.buffered_bytes == 0


def test_requests_before_the_nonsense_are_answered(owner: Owner) -> None:
    _, transport = connect(owner)

    transport.receive(question(1) + wire.frame(999, 0, b"") + question(2))

    assert answered(transport.sent) == [1]
    assert len(owner.complaints) == 1


def test_a_request_comes_in_single_bytes(owner: Owner) -> None:
    _, transport = connect(owner)

    for byte in question(1):
        transport.receive(bytes([byte]))

    assert len(owner.requests) == 1


# Mistakes of ours


def test_a_mistake_that_a_request_brings_out_costs_its_client_the_connection(owner: Owner) -> None:
    owner.mistake = ZeroDivisionError("a mistake")
    connection, transport = connect(owner)

    transport.receive(question(1) + question(2))

    assert owner.failures == [(18, owner.mistake)]
    assert owner.gone == [connection]
    assert owner.complaints == []
    assert owner.buffered_bytes == 0


def test_an_answer_that_cannot_be_encoded_costs_its_client_the_connection(owner: Owner) -> None:
    owner.answers_at_once = False
    connection, transport = connect(owner)
    transport.receive(question(1))

    owner.requests[0].answer(ApiVersionsResponse(error_code=2**40))

    assert [api_key for api_key, _ in owner.failures] == [18]
    assert owner.gone == [connection]


def test_what_cannot_be_ends_the_broker(owner: Owner) -> None:
    owner.mistake = AssertionError("impossible")
    _, transport = connect(owner)

    with pytest.raises(AssertionError, match="impossible"):
        transport.receive(question(1))
