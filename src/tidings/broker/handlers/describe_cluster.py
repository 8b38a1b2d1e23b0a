"""DescribeCluster (key 60), versions 0-2: the cluster's id, its controller and its brokers (KIP-700).

Brokers that do not answer are "fenced": listed only where the client asks for them (version 2).
Left out: endpoints of controllers (KIP-919), which are no separate processes here; access lists (all
operations are told).
The one rule: as metadata.py, it asks nobody. Tests: tests/broker/handlers/test_describe_cluster.py
"""

from __future__ import annotations

from tidings.broker.handlers.metadata import CLUSTER_OPERATIONS
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidings.protocol.messages.metadata import AUTHORIZED_OPERATIONS_UNKNOWN
from tidings.protocol.schema import Message

BROKERS = 1
CONTROLLERS = 2


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, DescribeClusterRequest), body
    if body.endpoint_type == CONTROLLERS:
        text = "controllers have no endpoints of their own: ask for the brokers"
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=text, endpoint_type=BROKERS
        )
    if body.endpoint_type != BROKERS:
        text = f"endpoint type {body.endpoint_type} is unknown"
        return DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=text)
    alive = site.liveness.alive()
    return DescribeClusterResponse(
        cluster_id=site.cluster.cluster_id,
        controller_id=site.controller_id(),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker_id,
                host=row.host,
                port=row.port,
                rack=row.rack,
                is_fenced=broker_id not in alive,
            )
            for broker_id, row in sorted(site.cluster.brokers.items())
            if broker_id in alive or body.include_fenced_brokers
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS
            if body.include_cluster_authorized_operations
            else AUTHORIZED_OPERATIONS_UNKNOWN
        ),
    )
