"""FindCoordinator (key 10), versions 0-6: which broker looks after a group or a transactional id.

Left out: all of them. Groups and transactions are not served yet, so groups are answered
GROUP_AUTHORIZATION_FAILED and transactions TRANSACTIONAL_ID_AUTHORIZATION_FAILED: errors that clients report
at once, where "not available" would have them ask for ever. It is served at all because librdkafka compresses
with LZ4 only towards brokers that advertise it.
The one rule: an answer never names a broker. Tests: tests/broker/handlers/test_find_coordinator.py
"""

from __future__ import annotations

from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidings.protocol.schema import Message

GROUP = 0
TRANSACTION = 1
SHARE_GROUP = 2
NOWHERE = -1
_SEVERAL_SINCE = 4
_SHARE_SINCE = 6

_REFUSALS = {
    GROUP: (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "consumer groups are not served by this version: assign partitions with explicit offsets",
    ),
    TRANSACTION: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "transactions are not served by this version: use an idempotent producer without a transactional id",
    ),
    SHARE_GROUP: (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "share groups are not served by this version: assign partitions with explicit offsets",
    ),
}
_UNKNOWN_TYPE = (ErrorCode.INVALID_REQUEST, "the key is of no known type")


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, FindCoordinatorRequest), body
    is_known = body.key_type != SHARE_GROUP or request.api_version >= _SHARE_SINCE
    code, reason = _REFUSALS.get(body.key_type, _UNKNOWN_TYPE) if is_known else _UNKNOWN_TYPE
    if request.api_version < _SEVERAL_SINCE:
        return FindCoordinatorResponse(
            error_code=code, error_message=reason, node_id=NOWHERE, host="", port=NOWHERE
        )
    coordinators = [
        Coordinator(key=key, node_id=NOWHERE, host="", port=NOWHERE, error_code=code, error_message=reason)
        for key in body.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=coordinators)
