"""Tests of broker/handlers/init_producer_id.py: a new identity for each idempotent producer."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def ask(world: World, *, transactional_id: str | None = None, version: int = 5) -> InitProducerIdResponse:
    body = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1_000)
    return world.ask(ApiKey.INIT_PRODUCER_ID, version, body, InitProducerIdResponse)


@pytest.mark.parametrize("version", range(6))
def test_a_producer_gets_an_id_and_epoch_zero(version: int) -> None:
    answer = ask(World(), version=version)

    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 1, 0)


def test_every_producer_gets_another_id_from_the_same_block() -> None:
    world = World()

    ids = [ask(world).producer_id for _ in range(3)]

    assert ids == [1, 2, 3]
    assert len(world.controller.proposed) == 1


def test_without_ids_the_producer_is_to_try_again() -> None:
    world = World()
    world.controller.is_reachable = False

    answer = ask(world)

    assert (answer.error_code, answer.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("tx", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ("", ErrorCode.INVALID_REQUEST)],
)
def test_transactional_producers_are_refused(transactional_id: str, code: ErrorCode) -> None:
    answer = ask(World(), transactional_id=transactional_id)

    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
