"""Tests of runtime/memory.py: the shares of requests that arrive, requests at work, and answers."""

from __future__ import annotations

from tidings.runtime.memory import ClientMemory

MIB = 1024 * 1024


def test_requests_that_are_begun_hold_at_most_half_of_what_requests_may() -> None:
    memory = ClientMemory(64 * MIB)

    assert memory.begin(16 * MIB)
    assert memory.begin(16 * MIB)
    assert not memory.begin(16 * MIB)
    assert memory.has_room_for(1_000)


def test_a_request_that_is_begun_alone_always_fits() -> None:
    memory = ClientMemory(16 * MIB)

    assert memory.begin(16 * MIB)


def test_a_small_request_fits_beside_large_ones_that_wait() -> None:
    memory = ClientMemory(64 * MIB)
    memory.begin(16 * MIB)
    memory.begin(15 * MIB)

    assert not memory.begin(16 * MIB)
    assert memory.begin(MIB)


def test_requests_that_wait_to_be_begun_hold_up_what_arrives_and_not_each_other() -> None:
    memory = ClientMemory(64 * MIB)

    memory.change_waiting(80 * MIB)

    assert not memory.begin(MIB)
    assert memory.has_room_for(1_000)
    assert not memory.take_freed()
    memory.change_waiting(-80 * MIB)
    assert memory.take_freed()
    assert memory.begin(MIB)


def test_large_requests_at_work_leave_room_for_small_ones() -> None:
    memory = ClientMemory(64 * MIB)
    while memory.has_room_for(16 * MIB):
        memory.request_bytes += 16 * MIB

    assert memory.request_bytes == 48 * MIB
    assert memory.has_room_for(64 * 1024)
    assert not memory.has_room_for(64 * 1024 + 1)
    memory.request_bytes = 64 * MIB + 1
    assert not memory.has_room_for(1)


def test_a_large_request_at_work_alone_always_fits() -> None:
    memory = ClientMemory(16 * MIB)
    memory.begin(16 * MIB)

    assert memory.has_room_for(16 * MIB)


def test_answers_that_nobody_takes_leave_room_for_requests() -> None:
    memory = ClientMemory(64 * MIB)

    memory.change_answers(65 * MIB)

    assert not memory.has_room_for_answers
    assert memory.has_room_for(1_000)


def test_an_answer_takes_half_of_what_is_left_and_never_nothing() -> None:
    memory = ClientMemory(64 * MIB)
    rooms = []
    for _ in range(20):
        rooms.append(memory.answer_room_bytes)
        memory.change_answers(rooms[-1])

    assert rooms[:3] == [32 * MIB, 16 * MIB, 8 * MIB]
    assert rooms[-1] == 64 * 1024


def test_who_waits_looks_again_only_when_something_was_freed() -> None:
    memory = ClientMemory(64 * MIB)
    memory.begin(MIB)
    memory.change_answers(MIB)
    assert not memory.take_freed()

    memory.end_begun(MIB)

    assert memory.take_freed()
    assert not memory.take_freed()
