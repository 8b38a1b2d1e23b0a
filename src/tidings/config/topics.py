"""Topics: the settings a topic may have, by Kafka's names: type, default, bounds, and what each does.

Rule: a name that is not in the table is refused, and so is a value that asks for something that would not be
done. Settings that only tune Kafka's own machinery are taken as they are and do nothing; their row says so.
Must not know: who sets them, or where they are kept. Tests: tests/config/test_topics.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from tidings.config.options import Config

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
# Every broker holds every value in memory and in each checkpoint of the metadata, and old versions of answers
# count a text's bytes in 16 bits.
VALUE_BYTES_MAX = 8_192
_SHOWN_NAME_CHARACTERS = 100


class TopicOptionError(ValueError):
    """A setting that does not exist, or a value it cannot have; the text is for whoever set it."""


class OptionType(IntEnum):
    """How a value is read; the numbers are those that DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOption:
    """One setting. `choices` are the values taken, where not every one of the type is; `refused` says why not
    the rest.

    `broker_name` is the name of the same setting for all topics of a cluster, `config_field` the option of a
    broker that gives the default. `has_effect` is False where the value is kept and shown, and changes
    nothing.
    """

    name: str
    kind: OptionType
    default: str
    reason: str
    unit: str = ""
    low: float = 0
    high: float = INT64_MAX
    choices: tuple[str, ...] = ()
    refused: str = ""
    broker_name: str = ""
    config_field: str = ""
    has_effect: bool = True


def _whole(
    name: str,
    default: int,
    unit: str,
    reason: str,
    *,
    kind: OptionType = OptionType.LONG,
    low: int = 0,
    broker_name: str = "",
    config_field: str = "",
) -> TopicOption:
    return TopicOption(
        name=name,
        kind=kind,
        default=str(default),
        reason=reason,
        unit=unit,
        low=low,
        high=INT32_MAX if kind is OptionType.INT else INT64_MAX,
        broker_name=broker_name,
        config_field=config_field,
    )


def _without_effect(name: str, kind: OptionType, default: str, reason: str) -> TopicOption:
    """A setting of Kafka's own machinery: any number is as good as another."""
    return TopicOption(
        name=name,
        kind=kind,
        default=default,
        reason=reason,
        low=-INT64_MAX,
        choices=("true", "false") if kind is OptionType.BOOLEAN else (),
        has_effect=False,
    )


def _never(name: str, reason: str) -> TopicOption:
    """A switch that can only be off."""
    return TopicOption(
        name=name,
        kind=OptionType.BOOLEAN,
        default="false",
        reason=reason,
        choices=("false",),
        refused=reason,
        has_effect=False,
    )


_ALWAYS_SYNCED = "every write is synced anyway"
_AS_PRODUCED = "batches stay as they were produced"
_NO_TIERS = "there is no remote storage"
_UNCOMPACTED = "once logs are compacted"
_UNTHROTTLED = "replication is not throttled"

_ROWS = (
    TopicOption(
        name="cleanup.policy",
        kind=OptionType.LIST,
        default="delete",
        reason="delete drops old segments; compact is taken and keeps every record",
        choices=("delete", "compact"),
        refused="it is a list of delete and compact",
        broker_name="log.cleanup.policy",
    ),
    _without_effect("compression.gzip.level", OptionType.INT, "-1", _AS_PRODUCED),
    _without_effect("compression.lz4.level", OptionType.INT, "9", _AS_PRODUCED),
    TopicOption(
        name="compression.type",
        kind=OptionType.STRING,
        default="producer",
        reason=_AS_PRODUCED,
        choices=("producer",),
        refused="a batch is never compressed anew: choose the compression at the producer",
        broker_name="compression.type",
    ),
    _without_effect("compression.zstd.level", OptionType.INT, "3", _AS_PRODUCED),
    _without_effect("delete.retention.ms", OptionType.LONG, "86400000", _UNCOMPACTED),
    _without_effect("file.delete.delay.ms", OptionType.LONG, "60000", "segments go when nobody reads them"),
    _without_effect("flush.messages", OptionType.LONG, str(INT64_MAX), _ALWAYS_SYNCED),
    _without_effect("flush.ms", OptionType.LONG, str(INT64_MAX), _ALWAYS_SYNCED),
    _without_effect("follower.replication.throttled.replicas", OptionType.LIST, "", _UNTHROTTLED),
    _without_effect("index.interval.bytes", OptionType.INT, "4096", "every batch has a row of its own"),
    _without_effect("leader.replication.throttled.replicas", OptionType.LIST, "", _UNTHROTTLED),
    _without_effect("local.retention.bytes", OptionType.LONG, "-2", _NO_TIERS),
    _without_effect("local.retention.ms", OptionType.LONG, "-2", _NO_TIERS),
    _without_effect("max.compaction.lag.ms", OptionType.LONG, str(INT64_MAX), _UNCOMPACTED),
    _whole(
        "max.message.bytes",
        1_048_588,
        "bytes",
        "of a batch as produced: what every replica and reader must be able to take",
        kind=OptionType.INT,
        broker_name="message.max.bytes",
        config_field="batch_bytes_max",
    ),
    _whole(
        "message.timestamp.after.max.ms",
        3_600_000,
        "ms",
        "a clock this far ahead is wrong, and its records would never be old enough to go",
        broker_name="log.message.timestamp.after.max.ms",
    ),
    _whole(
        "message.timestamp.before.max.ms",
        INT64_MAX,
        "ms",
        "old records may be loaded late",
        broker_name="log.message.timestamp.before.max.ms",
    ),
    TopicOption(
        name="message.timestamp.type",
        kind=OptionType.STRING,
        default=CREATE_TIME,
        reason="the producer's time, or that of the broker which took the batch",
        choices=(CREATE_TIME, LOG_APPEND_TIME),
        refused=f"it is {CREATE_TIME} or {LOG_APPEND_TIME}",
        broker_name="log.message.timestamp.type",
    ),
    _without_effect("min.cleanable.dirty.ratio", OptionType.DOUBLE, "0.5", _UNCOMPACTED),
    _without_effect("min.compaction.lag.ms", OptionType.LONG, "0", _UNCOMPACTED),
    _whole(
        "min.insync.replicas",
        1,
        "count",
        "a majority always writes before an answer; more than that is refused",
        kind=OptionType.INT,
        low=1,
        broker_name="min.insync.replicas",
    ),
    _without_effect("preallocate", OptionType.BOOLEAN, "false", "segments grow as they are written"),
    _without_effect("remote.log.copy.disable", OptionType.BOOLEAN, "false", _NO_TIERS),
    _without_effect("remote.log.delete.on.disable", OptionType.BOOLEAN, "false", _NO_TIERS),
    _never("remote.storage.enable", _NO_TIERS),
    _whole(
        "retention.bytes",
        -1,
        "bytes",
        "per partition, whole segments; -1: no bound",
        low=-1,
        broker_name="log.retention.bytes",
        config_field="retention_bytes",
    ),
    _whole(
        "retention.ms",
        604_800_000,
        "ms",
        "by a segment's newest record; -1: for ever",
        low=-1,
        broker_name="log.retention.ms",
        config_field="retention_ms",
    ),
    _whole(
        "segment.bytes",
        1_073_741_824,
        "bytes",
        "retention drops whole segments",
        kind=OptionType.INT,
        low=16_384,
        broker_name="log.segment.bytes",
        config_field="segment_bytes",
    ),
    _without_effect("segment.index.bytes", OptionType.INT, "10485760", "the index grows as it is written"),
    _without_effect("segment.jitter.ms", OptionType.LONG, "0", "segments roll when they are written to"),
    _whole(
        "segment.ms",
        604_800_000,
        "ms",
        "quiet topics roll too, so that their records can grow old",
        low=1,
        broker_name="log.roll.ms",
        config_field="segment_ms",
    ),
    _never("unclean.leader.election.enable", "a replica without every acknowledged record never leads"),
)

TOPIC_OPTIONS: Mapping[str, TopicOption] = MappingProxyType({row.name: row for row in _ROWS})
OPTIONS_BY_BROKER_NAME: Mapping[str, TopicOption] = MappingProxyType(
    {row.broker_name: row for row in _ROWS if row.broker_name}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The settings that are acted upon, read once per change and then by every request."""

    batch_bytes_max: int
    is_log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    deletes: bool


def check_topic_option(name: str, value: str | None) -> str:
    """The value as it is kept, or TopicOptionError saying what is wrong."""
    option = TOPIC_OPTIONS.get(name)
    if option is None:
        raise TopicOptionError(f"Unknown topic config name: {name[:_SHOWN_NAME_CHARACTERS]}")
    if value is None:
        raise TopicOptionError(f"{name} has no value")
    check_length(name, value)
    text = value.strip()
    if option.kind in (OptionType.INT, OptionType.LONG, OptionType.DOUBLE):
        _check_number(option, text)
    elif option.kind is OptionType.BOOLEAN:
        text = text.lower()
    given = [part.strip() for part in text.split(",")] if option.kind is OptionType.LIST else [text]
    if option.choices and not set(given) <= set(option.choices):
        reason = option.refused or f"it is one of {', '.join(option.choices)}"
        raise TopicOptionError(f"Invalid value {value} for configuration {name}: {reason}")
    return text


def check_length(name: str, value: str) -> None:
    """TopicOptionError for a value that is too long to be kept, or looked into."""
    if len(value) > VALUE_BYTES_MAX or len(value.encode()) > VALUE_BYTES_MAX:
        raise TopicOptionError(f"The value of {name} is longer than {VALUE_BYTES_MAX} bytes")


class Source(IntEnum):
    """Where a setting's value comes from; the numbers are those that DescribeConfigs sends."""

    TOPIC = 1
    CLUSTER = 3
    BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """A value that is in force, and whose it is."""

    value: str
    source: Source


def effective(
    option: TopicOption, config: Config, cluster: Mapping[str, str], topic: Mapping[str, str]
) -> list[Effective]:
    """All values a setting has, the one in force first: the topic's own, the cluster's (by broker names), the
    option of the broker, the built-in default."""
    values = []
    if option.name in topic:
        values.append(Effective(value=topic[option.name], source=Source.TOPIC))
    if option.broker_name in cluster:
        values.append(Effective(value=cluster[option.broker_name], source=Source.CLUSTER))
    if option.config_field:
        of_broker = str(getattr(config, option.config_field))
        if of_broker != option.default:
            values.append(Effective(value=of_broker, source=Source.BROKER))
    values.append(Effective(value=option.default, source=Source.DEFAULT))
    return values


def settings_of(config: Config, cluster: Mapping[str, str], topic: Mapping[str, str]) -> TopicSettings:
    """What a topic lives by."""

    def value(name: str) -> str:
        return effective(TOPIC_OPTIONS[name], config, cluster, topic)[0].value

    return TopicSettings(
        batch_bytes_max=int(value("max.message.bytes")),
        is_log_append_time=value("message.timestamp.type") == LOG_APPEND_TIME,
        timestamp_before_max_ms=int(value("message.timestamp.before.max.ms")),
        timestamp_after_max_ms=int(value("message.timestamp.after.max.ms")),
        retention_ms=int(value("retention.ms")),
        retention_bytes=int(value("retention.bytes")),
        segment_bytes=int(value("segment.bytes")),
        segment_ms=int(value("segment.ms")),
        deletes="delete" in value("cleanup.policy"),
    )


def _check_number(option: TopicOption, text: str) -> None:
    try:
        number = float(text) if option.kind is OptionType.DOUBLE else int(text)
    except ValueError:
        raise TopicOptionError(
            f"Invalid value {text} for configuration {option.name}: not a number"
        ) from None
    if not option.low <= number <= option.high:
        bounds = f"it is from {option.low} to {option.high}"
        raise TopicOptionError(f"Invalid value {text} for configuration {option.name}: {bounds}")
