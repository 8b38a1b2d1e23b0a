"""Tests of broker/dispatch.py and broker/requests.py: what is served is advertised, and a broker can be
saved."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.dispatch import HANDLERS, LEFT_OUT, why_refused
from tidings.protocol.apis import API_VERSIONS, ApiKey

APACHE_KAFKA_KEYS = {*range(94)} - {4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 93}


def test_every_served_api_has_a_handler_and_no_other() -> None:
    assert set(HANDLERS) == set(API_VERSIONS)


def test_everything_else_that_kafka_serves_is_left_out_with_a_reason() -> None:
    assert set(LEFT_OUT) | set(HANDLERS) == APACHE_KAFKA_KEYS
    assert not set(LEFT_OUT) & set(HANDLERS)


@pytest.mark.parametrize(
    ("api_key", "version", "reason"),
    [
        (ApiKey.FETCH, 3, "FETCH is served in versions 4 to 18, not in 3"),
        (11, 9, "consumer groups come later: assign partitions with explicit offsets"),
        (999, 0, "there is no API with the key 999"),
    ],
)
def test_whatever_is_not_served_has_a_reason(api_key: int, version: int, reason: str) -> None:
    assert why_refused(api_key, version) == reason


def test_a_broker_goes_on_from_saved_metadata() -> None:
    world = World()
    partition = world.create_topic("t", configs={"max.message.bytes": "5000"})[0]
    saved = world.broker.cluster_state()
    partition.settings = World().create_topic("t")[0].settings

    world.broker.restore_cluster(saved)

    assert world.broker.cluster.topics["t"].configs == {"max.message.bytes": "5000"}
    assert partition.settings.batch_bytes_max == 5_000
    assert world.broker.cluster_state() == saved


def test_no_metadata_is_the_state_before_the_first_command() -> None:
    world = World()

    world.broker.restore_cluster(b"")

    assert world.broker.cluster.version == 0
    assert not world.broker.cluster.brokers
