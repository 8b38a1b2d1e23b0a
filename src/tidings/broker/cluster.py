"""Cluster: the replicated state of the metadata group: brokers, topics, placements, settings, id blocks.

The one rule: deterministic. The state follows from the commands in their order alone, so that every broker
that applied the same ones answers the same; no clock, no chance, nothing of what is alive just now.
It must not know how commands are agreed upon, nor what the settings mean. Tests: tests/broker/test_cluster.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidings.broker import commands
from tidings.broker.commands import Command, decode_command
from tidings.broker.outcome import Outcome
from tidings.broker.placement import Candidate, Load, place
from tidings.protocol.errors import ErrorCode

METADATA_GROUP = 0
# Proposals that are recognised when they stand in the log again. A copy is appended after a change of leader,
# within the time that somebody waits for the first: that many commands are not agreed upon meanwhile.
RECENT_PROPOSALS_MAX = 2_000
_KEPT_MESSAGE_CHARACTERS = 200
FIRST_PRODUCER_ID = 1  # 0 is a valid id to Kafka, and a common mistake in a client


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker: who it is (`member`, drawn from its `directory`) and where clients and other brokers reach
    it."""

    broker_id: int
    member: int
    directory: bytes
    host: str
    port: int
    peer_host: str
    peer_port: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A partition: the group that replicates it and the brokers that hold it, preferred leader first.
    `founders` are the members with which the group's log begins, the same for ever: later changes stand in
    that log."""

    group: int
    topic_id: bytes
    index: int
    replicas: tuple[int, ...]
    founders: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic. `configs` holds only what was set, as texts by Kafka's names."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionRow, ...]
    configs: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """A command that changes nothing, and why."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.outcome = Outcome(code=code, message=message)


class ClusterState:
    """Everything by every key that is asked for. Rows are values: a change puts a new row in place of the
    old."""

    def __init__(self) -> None:
        self.version = 0  # the index of the last command that was applied
        self.cluster_id = ""
        self.brokers: dict[int, BrokerRow] = {}
        self.topics: dict[str, TopicRow] = {}
        self.topics_by_id: dict[bytes, TopicRow] = {}
        self.partitions: dict[int, PartitionRow] = {}  # by group
        self.broker_configs: dict[int, dict[str, str]] = {}  # by broker id; commands.ALL_BROKERS for all
        self.next_group = METADATA_GROUP + 1
        self.next_producer_id = FIRST_PRODUCER_ID
        self.gone_members: set[int] = set()  # disks that were replaced, or whose broker was removed
        self.skipped_groups: list[range] = []  # numbers that commands gave out which are lost
        self.recent_proposals: dict[bytes, Outcome] = {}  # and what came of them, the oldest first
        self._changes: dict[type[Command], Callable[..., Outcome]] = {
            commands.FormCluster: self._form_cluster,
            commands.RegisterBroker: self._register_broker,
            commands.RemoveBroker: self._remove_broker,
            commands.CreateTopic: self._create_topic,
            commands.DeleteTopic: self._delete_topic,
            commands.CreatePartitions: self._create_partitions,
            commands.SetTopicConfigs: self._set_topic_configs,
            commands.SetBrokerConfigs: self._set_broker_configs,
            commands.AllotProducerIds: self._allot_producer_ids,
            commands.ChangeReplicas: self._change_replicas,
            commands.SkipNumbers: self._skip_numbers,
        }

    def apply(self, payload: bytes, index: int, *, proposal: bytes) -> Outcome:
        """Apply the command that stands at `index` of the log, unless it is another copy of the same
        `proposal` (empty or all zeros: nobody's): it would undo what was changed since. CommandError: written
        by a newer version."""
        command = decode_command(payload)
        self.version = index
        known = self.recent_proposals.get(proposal)
        if known is not None:
            return known
        try:
            outcome = self._changes[type(command)](command)
        except Refused as refused:
            outcome = refused.outcome
        if any(proposal):
            self._remember(proposal, outcome)
        return outcome

    def broker_of_member(self, member: int) -> BrokerRow | None:
        return next((broker for broker in self.brokers.values() if broker.member == member), None)

    def groups_of(self, broker_id: int) -> list[PartitionRow]:
        return [row for row in self.partitions.values() if broker_id in row.replicas]

    def was_removed(self, group: int) -> bool:
        """Whether there was such a group, and a command has removed it: what is merely not known may be the
        only copy of something."""
        was_allotted = METADATA_GROUP < group < self.next_group and group not in self.partitions
        return was_allotted and not any(group in skipped for skipped in self.skipped_groups)

    def topic_of_group(self, group: int) -> TopicRow | None:
        row = self.partitions.get(group)
        return self.topics_by_id[row.topic_id] if row is not None else None

    def cluster_configs(self) -> Mapping[str, str]:
        return self.broker_configs.get(commands.ALL_BROKERS, {})

    def put_topic(self, topic: TopicRow) -> None:
        """Put a row in place, whether the topic is new or not; for changes and for who reads a saved
        state."""
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        for partition in topic.partitions:
            self.partitions[partition.group] = partition

    # Brokers

    def _form_cluster(self, command: commands.FormCluster) -> Outcome:
        if self.cluster_id and self.cluster_id != command.cluster_id:
            raise Refused(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {self.cluster_id}")
        self.cluster_id = command.cluster_id
        return Outcome()

    def _register_broker(self, command: commands.RegisterBroker) -> Outcome:
        known = self.brokers.get(command.broker_id)
        is_replaced = known is not None and known.member != command.member
        if is_replaced and not command.replaces:
            text = f"broker {command.broker_id} is known with another disk: replace it, or take another id"
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
        if command.member in self.gone_members:
            text = "this disk was replaced, or its broker removed: it may come back with an empty one only"
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
        other = self.broker_of_member(command.member)
        if other is not None and other.broker_id != command.broker_id:
            text = f"this disk belongs to broker {other.broker_id}, not {command.broker_id}"
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
        self.brokers[command.broker_id] = BrokerRow(
            broker_id=command.broker_id,
            member=command.member,
            directory=command.directory,
            host=command.host,
            port=command.port,
            peer_host=command.peer_host,
            peer_port=command.peer_port,
            rack=command.rack,
        )
        if known is None or not is_replaced:
            return Outcome()
        self.gone_members.add(known.member)
        return Outcome(groups=tuple(row.group for row in self.groups_of(command.broker_id)))

    def _remove_broker(self, command: commands.RemoveBroker) -> Outcome:
        if command.broker_id not in self.brokers:
            raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {command.broker_id}")
        held = len(self.groups_of(command.broker_id))
        if held:
            text = f"broker {command.broker_id} still holds replicas of {held} partitions"
            raise Refused(ErrorCode.INVALID_REQUEST, text)
        self.gone_members.add(self.brokers.pop(command.broker_id).member)
        self.broker_configs.pop(command.broker_id, None)
        return Outcome()

    # Topics

    def _create_topic(self, command: commands.CreateTopic) -> Outcome:
        known = self.topics.get(command.name)
        if known is not None:
            if known.topic_id == command.topic_id:  # proposed twice, because the first answer was lost
                return Outcome(groups=tuple(row.group for row in known.partitions))
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{command.name}' already exists.")
        self._check_room(len(command.assignments) or command.partition_count, command.partitions_max)
        placements = command.assignments or self._place(
            command.candidates, command.partition_count, command.replication_factor
        )
        self._check_placements(placements)
        topic = TopicRow(
            name=command.name,
            topic_id=command.topic_id,
            partitions=self._new_partitions(command.topic_id, 0, placements),
            configs=dict(command.configs),
        )
        self.put_topic(topic)
        return Outcome(groups=tuple(row.group for row in topic.partitions))

    def _delete_topic(self, command: commands.DeleteTopic) -> Outcome:
        topic = self._topic(command.topic_id)
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        for row in topic.partitions:
            del self.partitions[row.group]
        return Outcome(groups=tuple(row.group for row in topic.partitions))

    def _create_partitions(self, command: commands.CreatePartitions) -> Outcome:
        topic = self._topic(command.topic_id)
        new_count = command.partition_count - len(topic.partitions)
        if new_count <= 0:
            text = f"the topic has {len(topic.partitions)} partitions, {command.partition_count} is no more"
            raise Refused(ErrorCode.INVALID_PARTITIONS, text)
        self._check_room(new_count, command.partitions_max)
        placements = command.assignments or self._place(
            command.candidates, new_count, len(topic.partitions[0].replicas)
        )
        if len(placements) != new_count:
            text = f"{len(placements)} assignments for {new_count} new partitions"
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        self._check_placements(placements)
        added = self._new_partitions(topic.topic_id, len(topic.partitions), placements)
        self.put_topic(replace(topic, partitions=topic.partitions + added))
        return Outcome(groups=tuple(row.group for row in added))

    def _change_replicas(self, command: commands.ChangeReplicas) -> Outcome:
        row = self.partitions.get(command.group)
        if row is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no group {command.group}")
        self._check_placements([command.replicas])
        topic = self.topics_by_id[row.topic_id]
        changed = replace(row, replicas=command.replicas)
        partitions = tuple(changed if other.group == row.group else other for other in topic.partitions)
        self.put_topic(replace(topic, partitions=partitions))
        return Outcome(groups=(row.group,))

    # Settings and ids

    def _set_topic_configs(self, command: commands.SetTopicConfigs) -> Outcome:
        topic = self._topic(command.topic_id)
        configs = _changed(topic.configs, command.values, command.removed, replaces=command.replaces)
        self.put_topic(replace(topic, configs=configs))
        return Outcome(changes_settings=True, topic_id=topic.topic_id)

    def _set_broker_configs(self, command: commands.SetBrokerConfigs) -> Outcome:
        if command.broker_id != commands.ALL_BROKERS and command.broker_id not in self.brokers:
            raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {command.broker_id}")
        known = self.broker_configs.get(command.broker_id, {})
        configs = _changed(known, command.values, command.removed, replaces=command.replaces)
        self.broker_configs[command.broker_id] = configs
        return Outcome(changes_settings=True)

    def _allot_producer_ids(self, command: commands.AllotProducerIds) -> Outcome:
        first = self.next_producer_id
        self.next_producer_id = first + command.id_count
        return Outcome(value=first)

    def _skip_numbers(self, command: commands.SkipNumbers) -> Outcome:
        first = self.next_group
        self.next_group = first + command.group_count
        self.skipped_groups.append(range(first, self.next_group))
        self.next_producer_id += command.producer_id_count
        return Outcome()

    # Parts

    def _remember(self, proposal: bytes, outcome: Outcome) -> None:
        """Without what is to be done about it: that is done once."""
        message = outcome.message and outcome.message[:_KEPT_MESSAGE_CHARACTERS]
        self.recent_proposals[proposal] = Outcome(code=outcome.code, message=message, value=outcome.value)
        if len(self.recent_proposals) > RECENT_PROPOSALS_MAX:
            del self.recent_proposals[next(iter(self.recent_proposals))]

    def _topic(self, topic_id: bytes) -> TopicRow:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id.hex()}")
        return topic

    def _check_room(self, new_count: int, partitions_max: int | None) -> None:
        """Here, because only here the order of changes is known: many that fit one by one may not fit
        together."""
        total = len(self.partitions) + new_count
        if partitions_max is not None and total > partitions_max:
            raise Refused(ErrorCode.POLICY_VIOLATION, too_many_partitions(total, partitions_max))

    def _place(
        self, candidates: Sequence[int], partition_count: int, replication_factor: int
    ) -> Sequence[tuple[int, ...]]:
        brokers = [self.brokers[broker_id] for broker_id in candidates if broker_id in self.brokers]
        if not 0 < replication_factor <= len(brokers):
            text = f"replication factor {replication_factor}, but {len(brokers)} brokers are alive"
            raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        load = Load(row.replicas for row in self.partitions.values())
        places = [Candidate(broker_id=broker.broker_id, rack=broker.rack) for broker in brokers]
        return place(places, load, partition_count, replication_factor)

    def _check_placements(self, placements: Sequence[tuple[int, ...]]) -> None:
        if not placements:
            raise Refused(ErrorCode.INVALID_PARTITIONS, "a topic has at least one partition")
        for replicas in placements:
            if not replicas or len(set(replicas)) != len(replicas):
                text = f"replicas {list(replicas)}: one broker or more, each once"
                raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
            unknown = [broker_id for broker_id in replicas if broker_id not in self.brokers]
            if unknown:
                text = f"there are no brokers {unknown}"
                raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)

    def _new_partitions(
        self, topic_id: bytes, first_index: int, placements: Sequence[tuple[int, ...]]
    ) -> tuple[PartitionRow, ...]:
        first_group = self.next_group
        self.next_group += len(placements)
        return tuple(
            PartitionRow(
                group=first_group + place_index,
                topic_id=topic_id,
                index=first_index + place_index,
                replicas=tuple(replicas),
                founders=tuple(self.brokers[broker_id].member for broker_id in replicas),
            )
            for place_index, replicas in enumerate(placements)
        )


def too_many_partitions(total: int, partitions_max: int) -> str:
    return f"the cluster would have {total} partitions, at most {partitions_max} are allowed"


def _changed(
    known: Mapping[str, str], values: Mapping[str, str], removed: Sequence[str], *, replaces: bool
) -> dict[str, str]:
    kept = {} if replaces else {name: value for name, value in known.items() if name not in removed}
    return {**kept, **values}
