"""InitProducerId (key 22), versions 0-5: an identity for an idempotent producer.

Every request gets a new id with epoch 0, as in Kafka: without a transactional id there is nobody to go on as
(KIP-360). When no ids can be had the answer is COORDINATOR_LOAD_IN_PROGRESS, upon which clients try again.
Left out: transactional ids (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, so that initTransactions fails instead of
hanging).
The one rule: no id is given twice (producer_ids.py). Tests: tests/broker/handlers/test_init_producer_id.py
"""

from __future__ import annotations

from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidings.protocol.schema import Message

NO_PRODUCER = -1


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, InitProducerIdRequest), body
    if body.transactional_id is not None:
        return _refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if body.transactional_id
            else ErrorCode.INVALID_REQUEST
        )
    producer_id = site.producer_ids.take()
    if producer_id is not None:
        return _answer(producer_id)
    site.producer_ids.take_later(lambda later_id: request.answer(_answer(later_id)), now_ms)
    return None


def _answer(producer_id: int | None) -> InitProducerIdResponse:
    if producer_id is None:
        return _refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER, producer_epoch=-1)
