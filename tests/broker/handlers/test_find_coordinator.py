"""Tests of broker/handlers/find_coordinator.py: a clear refusal in every version."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE_GROUP = range(3)


def ask(version: int, kind: int) -> FindCoordinatorResponse:
    body = FindCoordinatorRequest(key="g", key_type=kind, coordinator_keys=["g", "h"])
    return World().ask(ApiKey.FIND_COORDINATOR, version, body, FindCoordinatorResponse)


@pytest.mark.parametrize(
    ("kind", "code", "word"),
    [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, "consumer groups"),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions"),
    ],
)
def test_one_key_is_refused_with_the_reason(kind: int, code: ErrorCode, word: str) -> None:
    for version in range(4):
        response = ask(version, kind)

        assert (response.error_code, response.node_id, response.port) == (code, -1, -1)
        assert word in (response.error_message or "")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_each_of_several_keys_is_refused(kind: int, code: ErrorCode) -> None:
    for version in range(4, 7):
        coordinators = ask(version, kind).coordinators

        assert [(each.key, each.error_code, each.node_id) for each in coordinators] == [
            ("g", code, -1),
            ("h", code, -1),
        ]


def test_share_groups_exist_from_version_6_on() -> None:
    assert ask(6, SHARE_GROUP).coordinators[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert ask(5, SHARE_GROUP).coordinators[0].error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_type_of_key() -> None:
    assert ask(3, 9).error_code == ErrorCode.INVALID_REQUEST
