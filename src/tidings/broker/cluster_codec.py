"""Cluster codec: the whole metadata state as bytes, for checkpoints and for members that start from a copy.

    u8 format = 1 | UTF-8 JSON of the tables of ClusterState; byte strings as hexadecimal text

The one rule: what is decoded goes on exactly as the state that was encoded would have: counters are part of
it.
It must not know commands. Tests: tests/broker/test_cluster_codec.py
"""

from __future__ import annotations

import json
from typing import Any

from tidings.broker.cluster import BrokerRow, ClusterState, PartitionRow, TopicRow
from tidings.broker.outcome import Outcome
from tidings.protocol.errors import ErrorCode

FORMAT = 1


class ClusterStateError(Exception):
    """Bytes that are no state of this version."""


def encode_cluster(state: ClusterState) -> bytes:
    brokers = [
        [
            broker.broker_id,
            broker.member,
            broker.directory.hex(),
            broker.host,
            broker.port,
            broker.peer_host,
            broker.peer_port,
            broker.rack,
        ]
        for broker in state.brokers.values()
    ]
    topics = [
        [
            topic.name,
            topic.topic_id.hex(),
            dict(topic.configs),
            [[row.group, list(row.replicas), list(row.founders)] for row in topic.partitions],
        ]
        for topic in state.topics.values()
    ]
    tables = {
        "version": state.version,
        "cluster_id": state.cluster_id,
        "next_group": state.next_group,
        "next_producer_id": state.next_producer_id,
        "skipped_groups": [[skipped.start, skipped.stop] for skipped in state.skipped_groups],
        "gone_members": sorted(state.gone_members),
        "brokers": brokers,
        "topics": topics,
        "broker_configs": list(state.broker_configs.items()),
        "recent_proposals": [
            [proposal.hex(), outcome.code, outcome.message, outcome.value]
            for proposal, outcome in state.recent_proposals.items()
        ],
    }
    return bytes([FORMAT]) + json.dumps(tables, separators=(",", ":"), ensure_ascii=False).encode()


def decode_cluster(payload: bytes) -> ClusterState:
    if not payload or payload[0] != FORMAT:
        raise ClusterStateError(
            f"format {payload[:1].hex() or 'missing'} of a metadata state, known is {FORMAT}"
        )
    try:
        return _from_tables(json.loads(payload[1:]))
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ClusterStateError(f"a metadata state that cannot be read: {error}") from error


def _from_tables(tables: dict[str, Any]) -> ClusterState:  # Any: what JSON holds, given types right below
    state = ClusterState()
    state.version = int(tables["version"])
    state.cluster_id = str(tables["cluster_id"])
    state.next_group = int(tables["next_group"])
    state.next_producer_id = int(tables["next_producer_id"])
    state.skipped_groups = [range(first, end) for first, end in tables.get("skipped_groups", ())]
    state.gone_members = set(tables.get("gone_members", ()))
    for broker_id, member, directory, host, port, peer_host, peer_port, rack in tables["brokers"]:
        state.brokers[broker_id] = BrokerRow(
            broker_id=broker_id,
            member=member,
            directory=bytes.fromhex(directory),
            host=host,
            port=port,
            peer_host=peer_host,
            peer_port=peer_port,
            rack=rack,
        )
    for name, id_text, configs, partitions in tables["topics"]:
        topic_id = bytes.fromhex(id_text)
        rows = tuple(
            PartitionRow(
                group=group,
                topic_id=topic_id,
                index=index,
                replicas=tuple(replicas),
                founders=tuple(founders),
            )
            for index, (group, replicas, founders) in enumerate(partitions)
        )
        state.put_topic(TopicRow(name=name, topic_id=topic_id, partitions=rows, configs=configs))
    for broker_id, configs in tables["broker_configs"]:
        state.broker_configs[broker_id] = configs
    for proposal, code, message, value in tables.get("recent_proposals", ()):
        state.recent_proposals[bytes.fromhex(proposal)] = Outcome(
            code=ErrorCode(code), message=message, value=value
        )
    return state
