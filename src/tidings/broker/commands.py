"""Commands: the changes of the cluster's metadata, and their bytes in the metadata group's log.

    u8 format = 1 | UTF-8 JSON: {"do": the command's class name, its fields}; byte strings as hexadecimal text

The one rule: bytes once written are read for ever: a field is only ever added, with a default, and a command
that is not known (written by a newer version) is an error, never skipped. So a new kind or field raises the
format that brokers speak to each other, and a leader appends only what it can read. Metadata changes are
rare, so a format that a person can read serves better than a small one.
It must not know what a command does (cluster.py). Tests: tests/broker/test_commands.py
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

FORMAT = 1
ALL_BROKERS = -1  # SetBrokerConfigs: the settings of all brokers that have none of their own

Assignments = tuple[tuple[int, ...], ...]


class CommandError(Exception):
    """Bytes that are no command of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCluster:
    """The first command of a cluster: its name for ever."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    """A broker and where it is reached; again after each start, since addresses may change.

    `replaces` lets another member (a new disk) take over the broker id with all that was placed on it.
    """

    broker_id: int
    member: int
    directory: bytes
    host: str
    port: int
    peer_host: str
    peer_port: int
    rack: str | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBroker:
    """Forget a broker that holds no replica."""

    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """A topic by name and id. Without `assignments` its replicas are placed when the command is applied, on
    brokers of `candidates`: those that were alive when it was proposed. `partitions_max` is the proposer's
    limit of the cluster's partitions: it travels with the command, so that all brokers decide alike; None:
    written before there was one."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int
    candidates: tuple[int, ...] = ()
    assignments: Assignments = ()
    configs: dict[str, str] = field(default_factory=dict)
    partitions_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    """A topic and all its partitions."""

    topic_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitions:
    """More partitions: `partition_count` in all. `assignments` are those of the new ones, `partitions_max` is
    as in CreateTopic."""

    topic_id: bytes
    partition_count: int
    candidates: tuple[int, ...] = ()
    assignments: Assignments = ()
    partitions_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopicConfigs:
    """Settings to set and to remove; `replaces`: those that are not named are removed too."""

    topic_id: bytes
    values: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBrokerConfigs:
    """The same for one broker, or for ALL_BROKERS."""

    broker_id: int
    values: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AllotProducerIds:
    """A block of producer ids that nobody else will ever hand out; the outcome's value is the first."""

    broker_id: int
    id_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReplicas:
    """Where one partition is to be, preferred leader first."""

    group: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipNumbers:
    """Commands were lost with a majority, and with them which numbers they gave out: go on well behind."""

    group_count: int
    producer_id_count: int


Command = (
    FormCluster
    | RegisterBroker
    | RemoveBroker
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | SetTopicConfigs
    | SetBrokerConfigs
    | AllotProducerIds
    | ChangeReplicas
    | SkipNumbers
)

_KINDS: dict[str, type[Command]] = {
    kind.__name__: kind
    for kind in (
        FormCluster,
        RegisterBroker,
        RemoveBroker,
        CreateTopic,
        DeleteTopic,
        CreatePartitions,
        SetTopicConfigs,
        SetBrokerConfigs,
        AllotProducerIds,
        ChangeReplicas,
        SkipNumbers,
    )
}
_HEX_FIELDS = frozenset({"directory", "topic_id"})
_TUPLE_FIELDS = frozenset({"candidates", "removed", "replicas"})


def encode_command(command: Command) -> bytes:
    values = asdict(command)
    for name in _HEX_FIELDS & values.keys():
        values[name] = values[name].hex()
    text = json.dumps({"do": type(command).__name__, **values}, separators=(",", ":"), ensure_ascii=False)
    return bytes([FORMAT]) + text.encode()


def decode_command(payload: bytes) -> Command:
    if not payload or payload[0] != FORMAT:
        raise CommandError(f"format {payload[:1].hex() or 'missing'} of a command, known is {FORMAT}")
    try:
        values = json.loads(payload[1:])
        kind = _KINDS[values.pop("do")]
        for name in _HEX_FIELDS & values.keys():
            values[name] = bytes.fromhex(values[name])
        for name in _TUPLE_FIELDS & values.keys():
            values[name] = tuple(values[name])
        if "assignments" in values:
            values["assignments"] = tuple(tuple(replicas) for replicas in values["assignments"])
        return kind(**values)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise CommandError(f"a metadata command that cannot be read: {error}") from error
