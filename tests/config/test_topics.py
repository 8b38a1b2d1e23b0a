"""Tests of config/topics.py: Kafka's names and defaults, and what is refused rather than ignored."""

from __future__ import annotations

import pytest

from tidings.config.options import Config
from tidings.config.topics import (
    OPTIONS_BY_BROKER_NAME,
    TOPIC_OPTIONS,
    VALUE_BYTES_MAX,
    OptionType,
    Source,
    TopicOptionError,
    check_topic_option,
    effective,
    settings_of,
)

# The settings of a topic in Apache Kafka 4.3 and their defaults, as its documentation lists them.
APACHE_KAFKA_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def test_names_and_defaults_are_those_of_kafka() -> None:
    assert {option.name: option.default for option in TOPIC_OPTIONS.values()} == APACHE_KAFKA_DEFAULTS


@pytest.mark.parametrize("name", sorted(TOPIC_OPTIONS))
def test_every_default_is_a_value_that_is_taken(name: str) -> None:
    assert check_topic_option(name, TOPIC_OPTIONS[name].default) == TOPIC_OPTIONS[name].default


@pytest.mark.parametrize("name", sorted(TOPIC_OPTIONS))
def test_every_setting_says_why_it_is_as_it_is(name: str) -> None:
    assert TOPIC_OPTIONS[name].reason


def test_a_brokers_own_defaults_are_the_same_unless_they_are_changed() -> None:
    for option in TOPIC_OPTIONS.values():
        if option.config_field:
            assert str(getattr(Config(), option.config_field)) == option.default, option.name


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("retention.ms", " 5 ", "5"),
        ("retention.ms", "-1", "-1"),
        ("cleanup.policy", "compact,delete", "compact,delete"),
        ("cleanup.policy", "compact", "compact"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "0.75", "0.75"),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("flush.messages", "1", "1"),
    ],
)
def test_good_values(name: str, value: str, kept: str) -> None:
    assert check_topic_option(name, value) == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.time", "1"),
        ("", "1"),
        ("retention.ms", None),
        ("retention.ms", ""),
        ("retention.ms", "1.5"),
        ("retention.ms", "1h"),
        ("retention.ms", "-2"),
        ("retention.ms", str(2**63)),
        ("max.message.bytes", str(2**31)),
        ("segment.bytes", "100"),
        ("min.insync.replicas", "0"),
        ("cleanup.policy", "compact,explode"),
        ("compression.type", "zstd"),
        ("message.timestamp.type", "createtime"),
        ("preallocate", "yes"),
        ("remote.storage.enable", "true"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_bad_values(name: str, value: str | None) -> None:
    with pytest.raises(TopicOptionError):
        check_topic_option(name, value)


def test_a_refusal_says_why() -> None:
    with pytest.raises(TopicOptionError, match="choose the compression at the producer"):
        check_topic_option("compression.type", "gzip")


@pytest.mark.parametrize("value", ["x" * (VALUE_BYTES_MAX + 1), "ä" * (VALUE_BYTES_MAX // 2 + 1)])
def test_free_text_is_kept_up_to_a_limit(value: str) -> None:
    name = "leader.replication.throttled.replicas"

    with pytest.raises(TopicOptionError, match="longer than 8192 bytes"):
        check_topic_option(name, value)
    assert check_topic_option(name, "x" * VALUE_BYTES_MAX) == "x" * VALUE_BYTES_MAX


def test_the_text_of_a_refusal_does_not_grow_with_what_is_refused() -> None:
    for name, value in (("n" * 100_000, "1"), ("retention.ms", "1" * 100_000)):
        with pytest.raises(TopicOptionError) as raised:
            check_topic_option(name, value)
        assert len(str(raised.value)) < 200


def test_the_nearest_value_is_in_force() -> None:
    option = TOPIC_OPTIONS["retention.ms"]
    config = Config(retention_ms=3)

    values = effective(option, config, {"log.retention.ms": "2"}, {"retention.ms": "1"})

    assert [(value.value, value.source) for value in values] == [
        ("1", Source.TOPIC),
        ("2", Source.CLUSTER),
        ("3", Source.BROKER),
        (option.default, Source.DEFAULT),
    ]


def test_settings_that_are_acted_upon_follow_topic_cluster_and_broker() -> None:
    settings = settings_of(
        Config(segment_bytes=20_000),
        {"message.max.bytes": "2000", "log.retention.ms": "5"},
        {"retention.ms": "7", "message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"},
    )

    assert (settings.segment_bytes, settings.batch_bytes_max, settings.retention_ms) == (20_000, 2_000, 7)
    assert settings.is_log_append_time
    assert not settings.deletes


def test_names_for_all_brokers_are_settings_that_are_acted_upon() -> None:
    assert all(option.has_effect for option in OPTIONS_BY_BROKER_NAME.values())
    assert all(option.kind in OptionType for option in OPTIONS_BY_BROKER_NAME.values())
