"""Tests of broker/handlers/api_versions.py: what is advertised, to whom."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.requests import Request
from tidings.protocol.apis import ADVERTISED_API_VERSIONS, ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def ask(version: int, name: str = "", software: str = "") -> ApiVersionsResponse:
    body = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return World().ask(ApiKey.API_VERSIONS, version, body, ApiVersionsResponse)


@pytest.mark.parametrize("version", range(5))
def test_every_version_is_told_what_is_served(version: int) -> None:
    response = ask(version, "a-client", "1.2.3")

    told = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    assert response.error_code == ErrorCode.NONE
    assert told == ADVERTISED_API_VERSIONS


def test_produce_is_advertised_from_version_0_for_old_librdkafka() -> None:
    told = {row.api_key: row.min_version for row in ask(3, "a", "1").api_keys}

    assert told[ApiKey.PRODUCE] == 0


@pytest.mark.parametrize(("name", "software"), [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1-")])
def test_a_client_that_does_not_name_itself_as_kip_511_wants_is_refused(name: str, software: str) -> None:
    assert ask(3, name, software).error_code == ErrorCode.INVALID_REQUEST


def test_older_clients_name_nothing() -> None:
    assert ask(2).error_code == ErrorCode.NONE


def test_a_version_that_is_not_served_is_told_which_are() -> None:
    body = ApiVersionsRequest()
    request = Request(
        ApiKey.API_VERSIONS, 99, 1, None, body, "::1", "::1", 9092, lambda _: None, lambda _: None
    )

    response = World().broker.handle(request, 0)

    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {row.api_key for row in response.api_keys} == set(ADVERTISED_API_VERSIONS)
