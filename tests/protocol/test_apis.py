"""The table of served APIs."""

from __future__ import annotations

import pytest

from tidings.protocol.apis import ADVERTISED_API_VERSIONS, API_VERSIONS, ApiKey, is_flexible, is_served


def test_what_is_served_is_advertised_except_that_produce_starts_at_zero() -> None:
    assert API_VERSIONS[ApiKey.PRODUCE] == (3, 13)
    assert ADVERTISED_API_VERSIONS == {**API_VERSIONS, ApiKey.PRODUCE: (0, 13)}


def test_every_named_api_is_served() -> None:
    assert set(API_VERSIONS) == set(ApiKey)


@pytest.mark.parametrize(
    ("key", "version", "served"),
    [(0, 2, False), (0, 3, True), (0, 13, True), (0, 14, False), (4, 0, False), (18, -1, False)],
)
def test_only_versions_in_range_are_served(key: int, version: int, served: bool) -> None:
    assert is_served(key, version) is served


def test_an_api_is_flexible_from_its_first_flexible_version_on() -> None:
    assert not is_flexible(ApiKey.PRODUCE, 8)
    assert is_flexible(ApiKey.PRODUCE, 9)
    assert is_flexible(ApiKey.DESCRIBE_CLUSTER, 0)
    assert not is_flexible(4, 0)
