"""Tests of broker/handlers/describe_cluster.py: the cluster as this broker knows it."""

from __future__ import annotations

import pytest

from tests.fakes.world import CLUSTER_ID, World
from tidings.broker.ports import NO_LEADER
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def ask(world: World, body: DescribeClusterRequest, *, version: int = 2) -> DescribeClusterResponse:
    return world.ask(ApiKey.DESCRIBE_CLUSTER, version, body, DescribeClusterResponse)


@pytest.mark.parametrize("version", range(3))
def test_the_living_brokers_are_told(version: int) -> None:
    world = World()
    world.liveness.alive_ids.discard(2)

    response = ask(world, DescribeClusterRequest(), version=version)

    assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, 1)
    assert [(broker.broker_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "host1", 9_091),
        (3, "host3", 9_093),
    ]


def test_while_there_is_no_controller_this_broker_takes_its_place() -> None:
    world = World()
    world.liveness.controller_id = NO_LEADER

    assert ask(world, DescribeClusterRequest()).controller_id == 1


def test_brokers_that_do_not_answer_are_told_on_request_as_fenced() -> None:
    world = World()
    world.liveness.alive_ids.discard(2)

    response = ask(world, DescribeClusterRequest(include_fenced_brokers=True))

    assert [(broker.broker_id, broker.is_fenced) for broker in response.brokers] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_operations_are_told_on_request() -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert ask(World(), asked).cluster_authorized_operations == 8_096
    assert ask(World(), DescribeClusterRequest()).cluster_authorized_operations == -(2**31)


@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_only_brokers_have_endpoints(endpoint: int, code: ErrorCode) -> None:
    assert ask(World(), DescribeClusterRequest(endpoint_type=endpoint)).error_code == code
