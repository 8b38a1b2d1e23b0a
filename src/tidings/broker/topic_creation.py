"""Topic creation: what a topic must be like to be created, whoever asks for it.

The one rule: everything that can be said before proposing is checked here, with the reason in words; what
depends on the order of changes (whether the name is taken by now) is decided where the command is applied
(cluster.py).
It must not know requests' answers. Tests: tests/broker/test_topic_creation.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidings.broker.cluster import too_many_partitions
from tidings.broker.commands import Assignments, CreateTopic
from tidings.broker.site import Site
from tidings.config.topics import TopicOptionError, check_topic_option
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

USE_DEFAULT = -1  # of a partition count or replication factor (KIP-464)
NAME_CHARACTERS_MAX = 249  # Kafka's: a name and a partition number once had to fit a file name
RESERVED_NAMES = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
REPLICATION_FACTOR_WANTED = 3  # where none is configured: survives the loss of one broker
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicRefused(Exception):
    """A topic that cannot be as asked for; code and text go to the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class PartitionRoom:
    """How many partitions the cluster may still get, with those that one request has asked for already."""

    def __init__(self, site: Site) -> None:
        self.partitions_max = site.config.partitions_max
        self._total = len(site.cluster.partitions)

    def take(self, new_count: int) -> None:
        """Count them in, or TopicRefused."""
        total = self._total + new_count
        if total > self.partitions_max:
            text = too_many_partitions(total, self.partitions_max)
            raise TopicRefused(ErrorCode.POLICY_VIOLATION, text)
        self._total = total


def plan_topic(site: Site, topic: CreatableTopic, room: PartitionRoom) -> CreateTopic:
    """The command that creates a topic as asked for, or TopicRefused. A request's topics share `room`."""
    check_name(topic.name)
    if topic.name in site.cluster.topics:
        raise TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    assignments = _assignments_of(site, topic)
    if assignments:
        partition_count, replication_factor = len(assignments), len(assignments[0])
    else:
        partition_count = _partition_count(site, topic.num_partitions)
        replication_factor = _replication_factor(site, topic.replication_factor)
    configs = check_configs(topic.configs)
    check_min_insync(configs, replication_factor)
    room.take(partition_count)
    return CreateTopic(
        name=topic.name,
        topic_id=new_topic_id(site),
        partition_count=partition_count,
        replication_factor=replication_factor,
        candidates=candidates(site),
        assignments=assignments,
        configs=configs,
        partitions_max=room.partitions_max,
    )


def check_name(name: str) -> None:
    problem = ""
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = "'.' and '..' are not allowed"
    elif len(name) > NAME_CHARACTERS_MAX:
        problem = f"the length of '{name[:16]}...' is longer than {NAME_CHARACTERS_MAX} characters"
    elif not _NAME.fullmatch(name):
        problem = f"'{name}' has characters other than ASCII letters, digits, '.', '_' and '-'"
    elif name in RESERVED_NAMES:
        problem = f"'{name}' is reserved for the brokers themselves"
    if problem:
        raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def check_configs(configs: Sequence[CreatableTopicConfig]) -> dict[str, str]:
    """The settings as they are kept."""
    checked: dict[str, str] = {}
    for config in configs:
        if config.name in checked:
            raise TopicRefused(ErrorCode.INVALID_REQUEST, f"{config.name} is set twice")
        try:
            checked[config.name] = check_topic_option(config.name, config.value)
        except TopicOptionError as error:
            raise TopicRefused(ErrorCode.INVALID_CONFIG, str(error)) from error
    return checked


def check_min_insync(configs: Mapping[str, str], replication_factor: int) -> None:
    """An acknowledged batch is always on a majority, and never waits for more."""
    majority = replication_factor // 2 + 1
    wanted = int(configs.get("min.insync.replicas", "1"))
    if wanted > majority:
        text = (
            f"min.insync.replicas {wanted} is more than {majority}, the majority of {replication_factor} "
            "replicas: an acknowledged batch is on a majority's disks, and is not made to wait for more"
        )
        raise TopicRefused(ErrorCode.INVALID_CONFIG, text)


def candidates(site: Site) -> tuple[int, ...]:
    """Brokers that can be given replicas now."""
    return tuple(broker.broker_id for broker in site.alive_brokers())


def warning_of(replication_factor: int) -> str | None:
    """What is worth saying though nothing is wrong."""
    if replication_factor % 2:
        return None
    lost = (replication_factor - 1) // 2
    return (
        f"{replication_factor} replicas survive the loss of {lost}, no more than {replication_factor - 1} "
        "would: an odd replication factor is the better choice"
    )


def new_topic_id(site: Site) -> bytes:
    """A random UUID (RFC 9562, version 4); never Kafka's reserved ones, whose version bits are zero."""
    drawn = bytearray(site.random.randbytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    return bytes(drawn)


def _partition_count(site: Site, asked: int) -> int:
    if asked == USE_DEFAULT:
        return site.config.default_partitions
    if asked <= 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS, text)
    return asked


def _replication_factor(site: Site, asked: int) -> int:
    alive_count = len(site.alive_brokers())
    if asked == USE_DEFAULT:
        configured = site.config.default_replication_factor
        return configured or max(1, min(REPLICATION_FACTOR_WANTED, alive_count))
    if asked <= 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if asked > alive_count:
        text = f"Unable to replicate the partition {asked} time(s): only {alive_count} broker(s) are alive."
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return asked


def _assignments_of(site: Site, topic: CreatableTopic) -> Assignments:
    """Replicas that the client chose itself; () where it leaves that to the cluster."""
    if not topic.assignments:
        return ()
    if topic.num_partitions != USE_DEFAULT or topic.replication_factor != USE_DEFAULT:
        text = "with assignments of its own a topic has -1 for partition count and replication factor"
        raise TopicRefused(ErrorCode.INVALID_REQUEST, text)
    by_index = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(by_index) != len(topic.assignments) or set(by_index) != set(range(len(by_index))):
        text = "partitions must be a consecutive 0-based integer sequence"
        raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    assignments = tuple(tuple(by_index[index]) for index in range(len(by_index)))
    check_assignments(site, assignments, len(assignments[0]))
    return assignments


def check_assignments(site: Site, assignments: Assignments, replication_factor: int) -> None:
    known = site.cluster.brokers
    for replicas in assignments:
        problem = ""
        if not replicas:
            problem = "a partition needs a replica"
        elif len(set(replicas)) != len(replicas):
            problem = f"{list(replicas)} names a broker twice"
        elif len(replicas) != replication_factor:
            problem = f"{list(replicas)} is not of {replication_factor} replicas, as the others are"
        elif not known.keys() >= set(replicas):
            problem = f"{list(replicas)} names a broker that does not exist"
        if problem:
            raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
