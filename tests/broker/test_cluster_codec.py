"""Tests of broker/cluster_codec.py: a saved state goes on exactly as the one that was saved."""

from __future__ import annotations

import json

import pytest

from tests.broker.test_cluster import OTHER_ID, TOPIC_ID, Cluster, create, register
from tidings.broker.cluster_codec import FORMAT, ClusterStateError, decode_cluster, encode_cluster
from tidings.broker.commands import (
    ALL_BROKERS,
    AllotProducerIds,
    CreatePartitions,
    DeleteTopic,
    FormCluster,
    SetBrokerConfigs,
    SetTopicConfigs,
    SkipNumbers,
)


def make_cluster() -> Cluster:
    return Cluster(
        FormCluster(cluster_id="a cluster"),
        register(1),
        register(2),
        register(3, member=2**64 - 1),
        register(2, member=77, replaces=True),
        create("gone", OTHER_ID),
        create(),
        DeleteTopic(topic_id=OTHER_ID),
        SetTopicConfigs(topic_id=TOPIC_ID, values={"retention.ms": "5"}),
        SetBrokerConfigs(broker_id=ALL_BROKERS, values={"log.retention.ms": "6"}),
        SetBrokerConfigs(broker_id=2, values={"log.retention.ms": "7"}),
        AllotProducerIds(broker_id=1, id_count=1_000),
        SkipNumbers(group_count=10, producer_id_count=20),
    )


def test_a_saved_state_holds_everything() -> None:
    state = make_cluster().state

    saved = decode_cluster(encode_cluster(state))

    assert (saved.version, saved.cluster_id) == (state.version, state.cluster_id)
    assert (saved.brokers, saved.topics) == (state.brokers, state.topics)
    assert (saved.topics_by_id, saved.partitions) == (state.topics_by_id, state.partitions)
    assert saved.broker_configs == state.broker_configs
    assert saved.skipped_groups == state.skipped_groups
    assert saved.gone_members == state.gone_members != set()


def test_a_saved_state_remembers_the_proposals_it_has_seen() -> None:
    cluster = make_cluster()
    cluster.apply(AllotProducerIds(broker_id=1, id_count=5), proposal=b"a" * 16)
    cluster.apply(DeleteTopic(topic_id=OTHER_ID), proposal=b"b" * 16)

    saved = decode_cluster(encode_cluster(cluster.state))

    assert list(saved.recent_proposals.items()) == list(cluster.state.recent_proposals.items())


def test_a_state_that_was_saved_before_proposals_were_remembered_is_read() -> None:
    tables = json.loads(encode_cluster(make_cluster().state)[1:])
    del tables["recent_proposals"]

    saved = decode_cluster(bytes([FORMAT]) + json.dumps(tables).encode())

    assert saved.recent_proposals == {}


def test_a_saved_state_goes_on_as_the_original() -> None:
    original, saved = make_cluster(), make_cluster()
    saved.state = decode_cluster(encode_cluster(saved.state))
    commands = (
        create("gone", OTHER_ID, count=5),
        CreatePartitions(topic_id=TOPIC_ID, partition_count=7, candidates=(1, 2, 3)),
        AllotProducerIds(broker_id=1, id_count=1_000),
    )

    outcomes = [(original.apply(command), saved.apply(command)) for command in commands]

    assert all(one == other for one, other in outcomes)
    assert encode_cluster(original.state) == encode_cluster(saved.state)


@pytest.mark.parametrize("payload", [b"", b"\x02{}", b"\x01", b"\x01{}", b"\x01[]", b'\x01{"version":1}'])
def test_bytes_that_are_no_state_are_refused(payload: bytes) -> None:
    with pytest.raises(ClusterStateError):
        decode_cluster(payload)
