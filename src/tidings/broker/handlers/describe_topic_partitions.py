"""DescribeTopicPartitions (key 75), version 0: topics and partitions, page by page (KIP-966).

No topics asked for means all. A page ends after the asked number of partitions, or after PARTITIONS_MAX; its
cursor says where the next one starts.
Left out: eligible leader replicas, which Kafka needs because its in-sync replicas may shrink: the lists are
empty, never null, on which Java clients crash.
The one rule: nothing is created here. Tests: tests/broker/handlers/test_describe_topic_partitions.py
"""

from __future__ import annotations

from collections.abc import Collection

from tidings.broker.cluster import PartitionRow
from tidings.broker.handlers.metadata import TOPIC_OPERATIONS, describe_partition, why_unknown
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tidings.protocol.schema import Message

PARTITIONS_MAX = 2_000  # of a page; Kafka's max.request.partition.size.limit


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, DescribeTopicPartitionsRequest), body
    response = DescribeTopicPartitionsResponse()
    room = max(1, min(body.response_partition_limit, PARTITIONS_MAX))
    alive = site.liveness.alive()
    for name in _names(site, body):
        row = site.cluster.topics.get(name)
        if row is None:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(error_code=why_unknown(name), name=name)
            )
            continue
        first = (
            body.cursor.partition_index if body.cursor is not None and body.cursor.topic_name == name else 0
        )
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=max(0, first))
            break
        page = row.partitions[max(0, first) :][:room]
        room -= len(page)
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=row.name,
                topic_id=row.topic_id,
                partitions=[_describe(site, partition, alive) for partition in page],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if page and page[-1].index + 1 < len(row.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=page[-1].index + 1)
            break
    return response


def _names(site: Site, body: DescribeTopicPartitionsRequest) -> list[str]:
    """What is asked for and not before the cursor, in order."""
    names = sorted({topic.name for topic in body.topics}) if body.topics else sorted(site.cluster.topics)
    if body.cursor is None:
        return names
    return [name for name in names if name >= body.cursor.topic_name]


def _describe(
    site: Site, row: PartitionRow, alive: Collection[int]
) -> DescribeTopicPartitionsResponsePartition:
    described = describe_partition(site, row, alive)
    return DescribeTopicPartitionsResponsePartition(
        error_code=described.error_code,
        partition_index=described.partition_index,
        leader_id=described.leader_id,
        leader_epoch=described.leader_epoch,
        replica_nodes=described.replica_nodes,
        isr_nodes=described.isr_nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=described.offline_replicas,
    )
