"""Compatibility facts: what docs/compatibility.md says of APIs, settings, and things left out.

Rule: what a table of the product says is read from it; only what no table says is written here. No dates and
nothing about a machine, so the same code gives the same text.
Must not know: which clients passed what (compatibility.py).
Tests: tests/house/test_compatibility.py
"""

from collections.abc import Iterable, Iterator, Sequence

from tidings.broker.dispatch import LEFT_OUT
from tidings.config.topics import TOPIC_OPTIONS
from tidings.protocol.apis import ADVERTISED_API_VERSIONS, API_VERSIONS, ApiKey

# Kafka's names of the APIs that are left out; those that are served are named in the protocol's own table.
LEFT_OUT_NAMES = {
    8: "OffsetCommit",
    9: "OffsetFetch",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    57: "UpdateFeatures",
    61: "DescribeProducers",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListConfigResources",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}

# By client: its default, and what makes it put keys where Java does. The tests named in a client's column as
# "keys go where Java puts them" use the right-hand setting.
PARTITIONERS = (
    ("Java", "murmur2", "the default"),
    ("aiokafka", "murmur2", "the default"),
    ("kafka-python", "murmur2", "the default"),
    ("KafkaJS", "murmur2 (since 2.0)", "the default; before 2.0 `Partitioners.JavaCompatiblePartitioner`"),
    ("confluent-kafka", "CRC-32 (`consistent_random`)", "`partitioner=murmur2_random`"),
    ("kcat", "CRC-32 (`consistent_random`)", "`-X partitioner=murmur2_random`"),
    ("`tidings pub`", "murmur2", "the default"),
)

DIFFERENCES = (
    "**Every answer to `acks=all` follows an fsync on a majority of the replicas.** Apache Kafka answers "
    "from memory by default. `acks=1` follows the leader's fsync.",
    "**A majority of a partition's replicas must live.** `min.insync.replicas` above it is refused, below it "
    "changes nothing. A cluster of two brokers stops writing when one is lost.",
    "**A topic is there when its creation is answered**: every living broker names its leaders, and they "
    "serve. Apache Kafka answers earlier.",
    "**Records are not opened when they are written.** Batches are checked by header, length, count and CRC; "
    "what a batch holds is the producer's word. Apache Kafka opens every batch.",
    "**Compressed batches stay as they were produced.** `compression.type` other than `producer` is refused.",
    "**`cleanup.policy=compact` is taken and keeps every record**, until logs are compacted.",
    "**A request has at most 16 MiB**, in Apache Kafka 100 MB (`request_bytes_max`).",
    "**Producer errors are named where Apache Kafka says UNKNOWN_SERVER_ERROR**: an unknown compression is "
    "UNSUPPORTED_COMPRESSION_TYPE.",
    "**Malformed requests close the connection**, with one event `connection_closed` that says why. Apache "
    "Kafka reads some of them as null. Bytes behind a request are skipped by both: librdkafka sends them.",
    "**Fetch sessions (KIP-227) are declined**, as the protocol allows; every fetch names its partitions.",
    "**A topic setting has at most 8 KiB, and one Metadata request creates at most 100 topics**; whoever "
    "asks again gets the next ones.",
)


def served_apis() -> list[str]:
    """A row per API that is served."""
    rows = []
    for key, (low, high) in sorted(API_VERSIONS.items()):
        note = ""
        if ADVERTISED_API_VERSIONS[key] != (low, high):
            first = ADVERTISED_API_VERSIONS[key][0]
            note = f"advertised from {first}, as Apache Kafka does for old librdkafka's sake"
        rows.append((str(key), served_name(key), f"{low}-{high}", note))
    return table(("key", "API", "versions", ""), rows)


def left_out_apis() -> list[str]:
    """A row per reason, in the order of the first key that it holds for."""
    keys_by_reason: dict[str, list[int]] = {}
    for key, reason in sorted(LEFT_OUT.items()):
        keys_by_reason.setdefault(reason, []).append(key)
    rows = [
        (", ".join(f"{LEFT_OUT_NAMES[key]} ({key})" for key in keys), reason)
        for reason, keys in keys_by_reason.items()
    ]
    return table(("APIs", "why"), rows)


def topic_settings() -> list[str]:
    """What each of Kafka's topic settings means here."""
    rows = []
    for name, option in sorted(TOPIC_OPTIONS.items()):
        meaning = option.reason if option.has_effect else f"no effect: {option.reason}"
        if option.refused:
            meaning = f"only {' or '.join(option.choices)}: {option.refused}"
        rows.append((f"`{name}`", option.default.replace("|", "\\|") or "(none)", meaning))
    return table(("setting", "default", "here"), rows)


def partitioners() -> list[str]:
    return table(("client", "default", "as Java"), PARTITIONERS)


def differences() -> Iterator[str]:
    for difference in DIFFERENCES:
        yield f"- {difference}"


def served_name(key: int) -> str:
    """ListOffsets for LIST_OFFSETS."""
    return ApiKey(key).name.title().replace("_", "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
