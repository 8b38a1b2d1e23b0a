"""Resources: what settings can be described and changed: those of a topic, of one broker, or of all brokers.

    topic NAME      every setting of config/topics.py; all can be changed
    broker ""       what holds for topics that set nothing, by Kafka's names for brokers; can be changed
    broker ID       the same as in force on that broker, and BROKER_FACTS from its own options: read only

The one rule: a name that is not in these tables is refused, never kept.
It must not know requests. Tests: tests/broker/test_resources.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from tidings.broker.site import Site
from tidings.config.options import Config
from tidings.config.topics import (
    OPTIONS_BY_BROKER_NAME,
    TOPIC_OPTIONS,
    OptionType,
    TopicOption,
    TopicOptionError,
    check_topic_option,
)
from tidings.protocol.errors import ErrorCode

ALL_BROKERS_NAME = ""
_SHOWN_CHARACTERS = 249  # of a name that does not exist: an answer's texts may not be of any length


class ResourceType(IntEnum):
    """Kafka's numbers for what has settings."""

    TOPIC = 2
    BROKER = 4


class ResourceRefused(Exception):
    """A resource that does not exist, or a setting that it cannot have."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class BrokerFact:
    """An option of a broker by the name that Kafka's users know."""

    kind: OptionType
    value: Callable[[Config], object]
    config_field: str


def _fact(kind: OptionType, config_field: str) -> BrokerFact:
    return BrokerFact(kind, lambda config: getattr(config, config_field), config_field)


BROKER_FACTS: Mapping[str, BrokerFact] = MappingProxyType(
    {
        "auto.create.topics.enable": _fact(OptionType.BOOLEAN, "auto_create_topics"),
        "broker.id": _fact(OptionType.INT, "broker_id"),
        "broker.rack": _fact(OptionType.STRING, "rack"),
        "connections.max.idle.ms": _fact(OptionType.LONG, "connection_idle_ms_max"),
        "default.replication.factor": _fact(OptionType.INT, "default_replication_factor"),
        "fetch.max.bytes": _fact(OptionType.INT, "fetch_bytes_max"),
        "log.retention.check.interval.ms": _fact(OptionType.LONG, "retention_check_ms"),
        "max.connections": _fact(OptionType.INT, "connections_max"),
        "max.connections.per.ip": _fact(OptionType.INT, "connections_per_address_max"),
        "node.id": _fact(OptionType.INT, "broker_id"),
        "num.partitions": _fact(OptionType.INT, "default_partitions"),
        "producer.id.expiration.ms": _fact(OptionType.INT, "producer_id_expiration_ms"),
        "replica.lag.time.max.ms": _fact(OptionType.LONG, "replica_lag_time_max_ms"),
        "socket.request.max.bytes": _fact(OptionType.INT, "request_bytes_max"),
    }
)


def options_of(resource_type: int) -> Mapping[str, TopicOption]:
    """The settings that can be changed, by the names of that kind of resource."""
    return TOPIC_OPTIONS if resource_type == ResourceType.TOPIC else OPTIONS_BY_BROKER_NAME


def known_configs(site: Site, resource_type: int, name: str) -> Mapping[str, str]:
    """What is set on a resource that can be changed, or ResourceRefused."""
    if resource_type == ResourceType.TOPIC:
        topic = site.cluster.topics.get(name)
        if topic is None:
            text = f"there is no topic {name[:_SHOWN_CHARACTERS]}"
            raise ResourceRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return topic.configs
    if resource_type != ResourceType.BROKER:
        text = f"resource type {resource_type} has no settings here: topics (2) and brokers (4) have"
        raise ResourceRefused(ErrorCode.INVALID_REQUEST, text)
    if name != ALL_BROKERS_NAME:
        text = (
            "the options of one broker are set where it is started; settings of all have an empty broker name"
        )
        raise ResourceRefused(ErrorCode.INVALID_REQUEST, text)
    return site.cluster.cluster_configs()


def check_setting_name(resource_type: int, name: str) -> None:
    if name not in options_of(resource_type):
        text = f"there is no setting {name[:_SHOWN_CHARACTERS]} that can be changed here"
        raise ResourceRefused(ErrorCode.INVALID_CONFIG, text)


def check_setting(resource_type: int, name: str, value: str | None) -> str:
    """The value as it is kept, or ResourceRefused."""
    check_setting_name(resource_type, name)
    try:
        return check_topic_option(options_of(resource_type)[name].name, value)
    except TopicOptionError as error:
        raise ResourceRefused(ErrorCode.INVALID_CONFIG, str(error)) from error
