"""Tests of broker/cluster.py: what each command makes of the metadata, and which it refuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tidings.broker.cluster import FIRST_PRODUCER_ID, RECENT_PROPOSALS_MAX, ClusterState
from tidings.broker.commands import (
    ALL_BROKERS,
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
    encode_command,
)
from tidings.broker.outcome import Outcome
from tidings.protocol.errors import ErrorCode

TOPIC_ID = b"t" * 16
OTHER_ID = b"o" * 16


def register(broker_id: int, *, member: int | None = None, replaces: bool = False) -> RegisterBroker:
    return RegisterBroker(
        broker_id=broker_id,
        member=member or 100 + broker_id,
        directory=bytes(16),
        host="host",
        port=9092,
        peer_host="host",
        peer_port=19092,
        replaces=replaces,
    )


def create(name: str = "t", topic_id: bytes = TOPIC_ID, *, count: int = 2) -> CreateTopic:
    return CreateTopic(
        name=name, topic_id=topic_id, partition_count=count, replication_factor=2, candidates=(1, 2, 3)
    )


class Cluster:
    """A state and the index of its log."""

    def __init__(self, *commands: Command) -> None:
        self.state = ClusterState()
        self.index = 0
        for command in commands:
            self.apply(command)

    def apply(self, command: Command, *, proposal: bytes = b"") -> Outcome:
        self.index += 1
        return self.state.apply(encode_command(command), self.index, proposal=proposal)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(register(1), register(2), register(3))


def test_the_version_is_the_index_of_the_last_command(cluster: Cluster) -> None:
    cluster.apply(create())

    assert cluster.state.version == 4


def test_a_command_of_a_newer_version_is_an_error_and_changes_nothing(cluster: Cluster) -> None:
    with pytest.raises(CommandError):
        cluster.state.apply(b"\x02", 4, proposal=b"")

    assert cluster.state.version == 3


def test_a_cluster_is_formed_once(cluster: Cluster) -> None:
    assert cluster.apply(FormCluster(cluster_id="a")).code is ErrorCode.NONE
    assert cluster.apply(FormCluster(cluster_id="a")).code is ErrorCode.NONE
    assert cluster.apply(FormCluster(cluster_id="b")).code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.state.cluster_id == "a"


def test_a_broker_may_come_back_with_another_address(cluster: Cluster) -> None:
    outcome = cluster.apply(replace(register(1), host="elsewhere"))

    assert outcome.code is ErrorCode.NONE
    assert cluster.state.brokers[1].host == "elsewhere"


def test_a_broker_id_with_another_disk_is_refused(cluster: Cluster) -> None:
    outcome = cluster.apply(register(1, member=999))

    assert outcome.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.state.brokers[1].member == 101


def test_a_disk_belongs_to_one_broker_id(cluster: Cluster) -> None:
    assert cluster.apply(register(4, member=101)).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_replacement_takes_over_what_was_placed_on_the_broker(cluster: Cluster) -> None:
    cluster.apply(create(count=6))
    held = tuple(row.group for row in cluster.state.groups_of(1))

    outcome = cluster.apply(register(1, member=999, replaces=True))

    assert outcome.groups == held
    assert held
    assert cluster.state.brokers[1].member == 999
    found = cluster.state.broker_of_member(999)
    assert found is not None
    assert found.broker_id == 1


def test_a_disk_that_was_replaced_does_not_come_back(cluster: Cluster) -> None:
    old_member = cluster.state.brokers[1].member
    cluster.apply(register(1, member=999, replaces=True))

    outcomes = [cluster.apply(register(broker_id, member=old_member, replaces=True)) for broker_id in (1, 9)]

    assert [outcome.code for outcome in outcomes] == [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 2
    assert cluster.state.gone_members == {old_member}
    assert cluster.state.brokers[1].member == 999


def test_the_disk_of_a_removed_broker_does_not_come_back(cluster: Cluster) -> None:
    cluster.apply(register(7))
    cluster.apply(RemoveBroker(broker_id=7))

    outcome = cluster.apply(register(7))

    assert outcome.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert 7 not in cluster.state.brokers


def test_a_broker_that_holds_replicas_is_not_removed(cluster: Cluster) -> None:
    cluster.apply(create())
    held_by = cluster.state.topics["t"].partitions[0].replicas[0]

    assert cluster.apply(RemoveBroker(broker_id=held_by)).code is ErrorCode.INVALID_REQUEST
    assert held_by in cluster.state.brokers


def test_a_broker_without_replicas_is_removed(cluster: Cluster) -> None:
    assert cluster.apply(RemoveBroker(broker_id=3)).code is ErrorCode.NONE
    assert cluster.apply(RemoveBroker(broker_id=3)).code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_new_topic_is_found_by_every_key(cluster: Cluster) -> None:
    outcome = cluster.apply(create())

    topic = cluster.state.topics["t"]
    assert cluster.state.topics_by_id[TOPIC_ID] is topic
    assert [row.group for row in topic.partitions] == list(outcome.groups) == [1, 2]
    assert [row.index for row in topic.partitions] == [0, 1]
    assert cluster.state.topic_of_group(2) is topic
    assert cluster.state.topic_of_group(3) is None


def test_replicas_are_placed_evenly_over_the_candidates_that_exist(cluster: Cluster) -> None:
    cluster.apply(
        CreateTopic(
            name="t", topic_id=TOPIC_ID, partition_count=4, replication_factor=2, candidates=(1, 3, 77)
        )
    )

    replicas = [row.replicas for row in cluster.state.topics["t"].partitions]
    assert Counter(first for first, _ in replicas) == {1: 2, 3: 2}


def test_chosen_assignments_are_kept(cluster: Cluster) -> None:
    cluster.apply(
        CreateTopic(
            name="t",
            topic_id=TOPIC_ID,
            partition_count=2,
            replication_factor=2,
            assignments=((3, 1), (2, 3)),
        )
    )

    assert [row.replicas for row in cluster.state.topics["t"].partitions] == [(3, 1), (2, 3)]


def test_a_name_is_taken_once(cluster: Cluster) -> None:
    cluster.apply(create())

    outcome = cluster.apply(create("t", OTHER_ID))

    assert outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.state.topics["t"].topic_id == TOPIC_ID


def test_a_creation_that_was_proposed_twice_happens_once(cluster: Cluster) -> None:
    first = cluster.apply(create())

    assert cluster.apply(create()) == first
    assert cluster.state.next_group == 3


def test_more_replicas_than_brokers_are_refused(cluster: Cluster) -> None:
    command = CreateTopic(
        name="t", topic_id=TOPIC_ID, partition_count=1, replication_factor=2, candidates=(1,)
    )

    outcome = cluster.apply(command)

    assert outcome.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert outcome.message == "replication factor 2, but 1 brokers are alive"


@pytest.mark.parametrize("replicas", [(), (1, 1), (1, 9)])
def test_impossible_assignments_are_refused(cluster: Cluster, replicas: tuple[int, ...]) -> None:
    command = CreateTopic(
        name="t", topic_id=TOPIC_ID, partition_count=1, replication_factor=2, assignments=(replicas,)
    )

    assert cluster.apply(command).code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert not cluster.state.topics


def test_a_topic_without_partitions_is_refused(cluster: Cluster) -> None:
    assert cluster.apply(create(count=0)).code is ErrorCode.INVALID_PARTITIONS


def test_a_deleted_topic_is_gone_by_every_key(cluster: Cluster) -> None:
    groups = cluster.apply(create()).groups

    outcome = cluster.apply(DeleteTopic(topic_id=TOPIC_ID))

    assert outcome.groups == groups
    assert not cluster.state.topics
    assert not cluster.state.topics_by_id
    assert not cluster.state.partitions
    assert cluster.apply(DeleteTopic(topic_id=TOPIC_ID)).code is ErrorCode.UNKNOWN_TOPIC_ID


def test_groups_are_never_used_again(cluster: Cluster) -> None:
    cluster.apply(create())
    cluster.apply(DeleteTopic(topic_id=TOPIC_ID))

    assert cluster.apply(create("t", OTHER_ID)).groups == (3, 4)


def test_skipped_numbers_are_given_out_by_nobody_and_taken_for_removed_by_nobody(cluster: Cluster) -> None:
    cluster.apply(create("gone", OTHER_ID, count=2))
    cluster.apply(DeleteTopic(topic_id=OTHER_ID))

    cluster.apply(SkipNumbers(group_count=10, producer_id_count=20))
    cluster.apply(create(count=1))

    assert list(cluster.state.partitions) == [13]
    assert [group for group in range(15) if cluster.state.was_removed(group)] == [1, 2]
    assert cluster.apply(AllotProducerIds(broker_id=1, id_count=5)).value == FIRST_PRODUCER_ID + 20


def test_partitions_are_added_behind_the_others(cluster: Cluster) -> None:
    cluster.apply(create())
    command = CreatePartitions(topic_id=TOPIC_ID, partition_count=5, candidates=(1, 2, 3))

    outcome = cluster.apply(command)

    topic = cluster.state.topics["t"]
    assert outcome.groups == (3, 4, 5)
    assert [row.index for row in topic.partitions] == [0, 1, 2, 3, 4]
    assert all(len(row.replicas) == 2 for row in topic.partitions)
    assert cluster.state.topics_by_id[TOPIC_ID] is topic


def test_the_partitions_of_a_cluster_are_limited_where_the_order_is_known(
    cluster: Cluster,
) -> None:
    commands = [
        replace(create(name, name.encode() * 16, count=2), partitions_max=5) for name in ("a", "b", "c")
    ]

    codes = [cluster.apply(command).code for command in commands]

    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    assert len(cluster.state.partitions) == 4


def test_the_limit_holds_for_topics_that_grow(cluster: Cluster) -> None:
    cluster.apply(create(count=2))
    command = CreatePartitions(topic_id=TOPIC_ID, partition_count=3, candidates=(1, 2, 3), partitions_max=2)

    assert cluster.apply(command).code is ErrorCode.POLICY_VIOLATION
    assert cluster.apply(replace(command, partitions_max=3)).code is ErrorCode.NONE


@pytest.mark.parametrize("count", [0, 1, 2])
def test_partitions_are_never_taken_away(cluster: Cluster, count: int) -> None:
    cluster.apply(create())
    command = CreatePartitions(topic_id=TOPIC_ID, partition_count=count, candidates=(1, 2, 3))

    assert cluster.apply(command).code is ErrorCode.INVALID_PARTITIONS


def test_assignments_of_new_partitions_are_as_many_as_these(cluster: Cluster) -> None:
    cluster.apply(create())
    command = CreatePartitions(topic_id=TOPIC_ID, partition_count=4, assignments=((1, 2),))

    assert cluster.apply(command).code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_partitions_of_a_topic_that_is_gone_are_refused(cluster: Cluster) -> None:
    command = CreatePartitions(topic_id=TOPIC_ID, partition_count=4)

    assert cluster.apply(command).code is ErrorCode.UNKNOWN_TOPIC_ID


def test_replicas_change_in_every_view(cluster: Cluster) -> None:
    cluster.apply(create())

    outcome = cluster.apply(ChangeReplicas(group=2, replicas=(3, 2, 1)))

    assert outcome.groups == (2,)
    assert cluster.state.partitions[2].replicas == (3, 2, 1)
    assert cluster.state.topics["t"].partitions[1].replicas == (3, 2, 1)


@pytest.mark.parametrize(
    "command", [ChangeReplicas(group=9, replicas=(1,)), ChangeReplicas(group=1, replicas=())]
)
def test_impossible_changes_of_replicas_are_refused(cluster: Cluster, command: ChangeReplicas) -> None:
    cluster.apply(create())

    assert cluster.apply(command).code is not ErrorCode.NONE


def test_settings_are_set_and_removed_one_by_one(cluster: Cluster) -> None:
    cluster.apply(create())
    cluster.apply(SetTopicConfigs(topic_id=TOPIC_ID, values={"a": "1", "b": "2"}))

    outcome = cluster.apply(SetTopicConfigs(topic_id=TOPIC_ID, values={"c": "3"}, removed=("a",)))

    assert outcome.changes_settings
    assert cluster.state.topics["t"].configs == {"b": "2", "c": "3"}


def test_settings_can_be_replaced_as_a_whole(cluster: Cluster) -> None:
    cluster.apply(create())
    cluster.apply(SetTopicConfigs(topic_id=TOPIC_ID, values={"a": "1"}))

    cluster.apply(SetTopicConfigs(topic_id=TOPIC_ID, values={"b": "2"}, replaces=True))

    assert cluster.state.topics_by_id[TOPIC_ID].configs == {"b": "2"}


def test_settings_of_all_brokers_and_of_one_are_kept_apart(cluster: Cluster) -> None:
    cluster.apply(SetBrokerConfigs(broker_id=ALL_BROKERS, values={"a": "1"}))
    cluster.apply(SetBrokerConfigs(broker_id=2, values={"a": "2"}))

    assert cluster.state.cluster_configs() == {"a": "1"}
    assert cluster.state.broker_configs[2] == {"a": "2"}
    unknown = cluster.apply(SetBrokerConfigs(broker_id=9, values={"a": "2"}))
    assert unknown.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_blocks_of_producer_ids_do_not_overlap(cluster: Cluster) -> None:
    first = cluster.apply(AllotProducerIds(broker_id=1, id_count=1_000)).value
    second = cluster.apply(AllotProducerIds(broker_id=2, id_count=1_000)).value

    assert (first, second) == (FIRST_PRODUCER_ID, FIRST_PRODUCER_ID + 1_000)


def test_another_copy_of_a_proposal_does_not_undo_what_was_changed_since(cluster: Cluster) -> None:
    cluster.apply(create())
    first = SetTopicConfigs(topic_id=TOPIC_ID, values={"retention.ms": "1"})
    second = SetTopicConfigs(topic_id=TOPIC_ID, values={"retention.ms": "2"})

    cluster.apply(first, proposal=b"a")
    cluster.apply(second, proposal=b"b")
    copy = cluster.apply(first, proposal=b"a")

    assert cluster.state.topics["t"].configs == {"retention.ms": "2"}
    assert copy == Outcome()


def test_another_copy_of_a_proposal_has_the_outcome_of_the_first(cluster: Cluster) -> None:
    allotted = [
        cluster.apply(AllotProducerIds(broker_id=1, id_count=5), proposal=b"a").value for _ in range(2)
    ]
    refused = [cluster.apply(DeleteTopic(topic_id=TOPIC_ID), proposal=b"b") for _ in range(2)]

    assert allotted == [FIRST_PRODUCER_ID] * 2
    assert refused[0] == refused[1]
    assert cluster.state.version == cluster.index


def test_only_the_newest_proposals_are_remembered_and_nobodys_are_not(cluster: Cluster) -> None:
    form = FormCluster(cluster_id="a")
    for number in range(RECENT_PROPOSALS_MAX + 5):
        cluster.apply(form, proposal=number.to_bytes(2, "little"))
        cluster.apply(form, proposal=bytes(16))

    remembered = [int.from_bytes(proposal, "little") for proposal in cluster.state.recent_proposals]

    assert remembered == list(range(5, RECENT_PROPOSALS_MAX + 5))
