"""Tests of broker/commands.py: commands as bytes and back, and bytes that are none."""

from __future__ import annotations

import pytest

from tidings.broker.commands import (
    AllotProducerIds,
    ChangeReplicas,
    Command,
    CommandError,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    FormCluster,
    RegisterBroker,
    RemoveBroker,
    SetBrokerConfigs,
    SetTopicConfigs,
    SkipNumbers,
    decode_command,
    encode_command,
)

TOPIC_ID = bytes(range(16))
COMMANDS: list[Command] = [
    FormCluster(cluster_id="id"),
    RegisterBroker(
        broker_id=1,
        member=2**64 - 1,
        directory=TOPIC_ID,
        host="bröker",
        port=9092,
        peer_host="::1",
        peer_port=19092,
        rack="r",
        replaces=True,
    ),
    RemoveBroker(broker_id=3),
    CreateTopic(
        name="t",
        topic_id=TOPIC_ID,
        partition_count=2,
        replication_factor=1,
        candidates=(1, 2),
        assignments=((1,), (2,)),
        configs={"retention.ms": "5"},
    ),
    DeleteTopic(topic_id=TOPIC_ID),
    CreatePartitions(topic_id=TOPIC_ID, partition_count=4, candidates=(1,), assignments=((1, 2),)),
    SetTopicConfigs(topic_id=TOPIC_ID, values={"a": "b"}, removed=("c",), replaces=True),
    SetBrokerConfigs(broker_id=-1, values={"a": "b"}, removed=("c",)),
    AllotProducerIds(broker_id=1, id_count=1_000),
    ChangeReplicas(group=9, replicas=(3, 1)),
    SkipNumbers(group_count=10, producer_id_count=20),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_survives_its_bytes(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


def test_fields_that_an_older_version_did_not_write_have_their_defaults() -> None:
    old = b'\x01{"do":"ChangeReplicas","group":1,"replicas":[2]}'

    assert decode_command(old) == ChangeReplicas(group=1, replicas=(2,))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02{}",
        b"\x01",
        b"\x01[]",
        b"\x01{}",
        b'\x01{"do":"Explode"}',
        b'\x01{"do":"RemoveBroker"}',
        b'\x01{"do":"RemoveBroker","broker_id":1,"why":2}',
        b'\x01{"do":"DeleteTopic","topic_id":"zz"}',
        b'\x01{"do":"ChangeReplicas","group":1,"replicas":2}',
        b"\x01\xff",
    ],
)
def test_bytes_that_are_no_command_are_refused(payload: bytes) -> None:
    with pytest.raises(CommandError):
        decode_command(payload)
