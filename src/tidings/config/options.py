"""Options: every option and limit of a broker and of `tidings up`, with unit, default, bounds and reason.

Rule: the one place where a limit is born; frozen, and checked when it is made, so nobody checks again.
Must not know: where values come from (load.py), or who reads them. Tests: tests/config/test_options.py
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

from tidings.config.address import Address

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
DAY_MS = 24 * 60 * MINUTE_MS
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
PORT_MAX = 65_535
# Messages between brokers share a frame up to this size; a larger one travels alone, and all that frames it
# takes less.
SHARED_FRAME_BYTES = 4 * MIB

T = TypeVar("T")


class OptionError(ValueError):
    """An option has a value that it cannot have. `option` is its name, for whoever knows where it was set."""

    def __init__(self, option: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{option}: {problem}")
        self.option = option
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of an option besides its value."""

    group: str
    unit: str
    reason: str
    low: int | None
    high: int | None


def option(
    default: T, group: str, reason: str, *, unit: str = "", low: int | None = None, high: int | None = None
) -> T:
    about = About(group=group, unit=unit, reason=reason, low=low, high=high)
    return field(default=default, metadata={"about": about})


def count(default: int, group: str, reason: str, *, low: int = 1, high: int = INT32_MAX) -> int:
    return option(default, group, reason, unit="count", low=low, high=high)


def octets(default: int, group: str, reason: str, *, low: int = KIB, high: int = INT32_MAX) -> int:
    return option(default, group, reason, unit="bytes", low=low, high=high)


def milliseconds(default: int, group: str, reason: str, *, low: int = 1, high: int = INT32_MAX) -> int:
    return option(default, group, reason, unit="ms", low=low, high=high)


def port(default: int, group: str, reason: str) -> int:
    return option(default, group, reason, unit="port", low=0, high=PORT_MAX)


def path(group: str, reason: str) -> Path | None:
    return option(None, group, reason)


def texts(group: str, reason: str) -> tuple[str, ...]:
    return option((), group, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All options. A field's metadata is its About; its type is the type of its default (None: a path)."""

    # tidings up
    brokers: int = count(3, "up", "survives the loss of one; 1 loses nothing but stops with it", high=9)
    ephemeral: bool = option(False, "up", "a folder that is removed at the end, fsynced as always")
    restart: bool = option(True, "up", "a broker that died is started again, with growing pauses")
    restart_pause_ms_min: int = milliseconds(
        200, "up", "a process killed by hand is back before anyone looks"
    )
    restart_pause_ms_max: int = milliseconds(10_000, "up", "a broker that cannot live must not burn a core")
    restart_reset_ms: int = milliseconds(30_000, "up", "alive for so long, the next death is a new story")
    ready_ms_max: int = milliseconds(60_000, "up", "longer than any recovery; then something is wrong")
    stop_ms_max: int = milliseconds(
        10_000, "up", "to hand leadership over and flush; then SIGKILL, which is safe"
    )

    # who this broker is, and where
    broker_id: int = option(1, "broker", "its number in the cluster, Kafka's node id", low=1, high=INT32_MAX)
    data_folder: Path | None = path("broker", "all that is kept; none: the user's data folder, for `up`")  # noqa: RUF009 - the call makes the field
    kafka_host: str = option("127.0.0.1", "broker", "loopback, until the listener can be secured")
    kafka_port: int = port(9092, "broker", "Kafka's own; 0 takes a free one")
    peer_host: str = option("127.0.0.1", "broker", "where the other brokers reach this one")
    peer_port: int = port(19_092, "broker", "Kafka's port + 10000; 0 takes a free one")
    advertise: str = option("", "broker", "HOST:PORT told to clients; empty: the address listened on")
    advertise_peer: str = option(
        "", "broker", "HOST:PORT told to other brokers, as --join names it; empty: the address listened on"
    )
    rack: str = option("", "broker", "place of the broker: replicas are spread over racks")
    join: tuple[str, ...] = texts("broker", "peer HOST:PORT of the brokers that form the cluster")
    secret_file: Path | None = path("broker", "what brokers of one cluster know each other by")  # noqa: RUF009 - the call makes the field
    insecure_network: bool = option(
        False, "broker", "the Kafka port may be reached from other machines, unsecured"
    )
    replace: bool = option(False, "broker", "this broker's disk was lost: take the place of the old identity")

    # agreement between brokers
    election_timeout_ms_min: int = milliseconds(
        1_000, "raft", "silence taken for death; above a slow fsync", low=10
    )
    election_timeout_ms_max: int = milliseconds(
        2_000, "raft", "spread, so that candidates rarely collide", low=10
    )
    beat_interval_ms: int = milliseconds(150, "raft", "six beats may be lost within the shortest timeout")
    tick_interval_ms: int = milliseconds(25, "raft", "while work is under way; idle brokers sleep longer")
    append_bytes_max: int = octets(MIB, "raft", "one frame must not hold up the beats behind it")
    inflight_bytes_max: int = octets(
        8 * MIB, "raft", "per follower and partition: a round trip at full speed"
    )
    uncommitted_bytes_max: int = octets(
        32 * MIB, "raft", "per partition: memory held while no majority answers"
    )
    transfer_timeout_ms: int = milliseconds(1_000, "raft", "a leader that hands over serves again after it")
    start_piece_bytes: int = octets(MIB, "raft", "refilling a replica leaves room for others on the link")

    # the link between brokers
    peer_connect_timeout_ms: int = milliseconds(1_000, "peers", "on a LAN an answer comes at once or never")
    peer_handshake_timeout_ms: int = milliseconds(
        5_000, "peers", "a stranger on the port holds a slot no longer"
    )
    peer_reconnect_ms_min: int = milliseconds(
        20, "peers", "a broker killed and restarted is met again at once"
    )
    peer_reconnect_ms_max: int = milliseconds(1_000, "peers", "a dead one costs a SYN per second")
    peer_frame_bytes_max: int = octets(32 * MIB, "peers", "an append and a start piece fit; more is an error")
    peer_buffer_bytes_max: int = octets(16 * MIB, "peers", "unsent bytes per link, then no further appends")

    # the door for Kafka clients
    request_bytes_max: int = octets(16 * MIB, "network", "a batch per partition of a large producer request")
    fetch_bytes_max: int = octets(16 * MIB, "network", "one answer must not hold up a connection's others")
    connections_max: int = count(10_000, "network", "one process and its files carry so many")
    connections_per_address_max: int = count(
        1_000, "network", "one machine cannot take all; loopback excepted"
    )
    requests_in_flight_max: int = count(
        5, "network", "per connection, as idempotence allows; then reading stops"
    )
    slow_reader_ms_max: int = milliseconds(
        30_000, "network", "no byte taken for so long: closed, its memory freed"
    )
    stalled_client_ms_max: int = milliseconds(
        1_000, "network", "the same, and for a request half sent, where others wait for the memory it holds"
    )
    connection_idle_ms_max: int = milliseconds(600_000, "network", "Kafka's: idle connections are closed")
    memory_bytes_max: int = octets(
        64 * MIB, "network", "requests in flight, and as much for answers; then reading stops", low=MIB
    )

    # the disk
    wal_file_bytes: int = octets(
        64 * MIB, "storage", "preallocated, so that a flush syncs no file size", low=64 * KIB
    )
    wal_bytes_max: int = octets(
        256 * MIB, "storage", "bounds recovery; older files are checkpointed and reused"
    )
    recent_bytes_max: int = octets(
        16 * MIB, "storage", "readers at the end are served from memory, per broker"
    )
    checkpoint_interval_ms: int = milliseconds(60_000, "storage", "bounds what is read again after a crash")

    # topics that name nothing else
    default_partitions: int = count(
        1, "topics", "Kafka's num.partitions: order across the topic", high=10_000
    )
    default_replication_factor: int = count(
        0, "topics", "0: 3, or as many as there are brokers", low=0, high=9
    )
    auto_create_topics: bool = option(True, "topics", "Kafka's default; only where the client asks for it")
    segment_bytes: int = octets(GIB, "topics", "Kafka's; retention drops whole segments", low=16 * KIB)
    segment_ms: int = milliseconds(7 * DAY_MS, "topics", "Kafka's; quiet topics roll too", high=INT64_MAX)
    retention_ms: int = milliseconds(7 * DAY_MS, "topics", "Kafka's; -1: for ever", low=-1, high=INT64_MAX)
    retention_bytes: int = octets(-1, "topics", "Kafka's: no bound, per partition", low=-1, high=INT64_MAX)
    batch_bytes_max: int = octets(1_048_588, "topics", "Kafka's message.max.bytes")
    retention_check_ms: int = milliseconds(60_000, "topics", "a full disk waits no longer for what may go")
    partitions_max: int = count(20_000, "topics", "in the cluster: each is known to every broker, in memory")

    # the cluster
    metadata_voters_max: int = count(5, "cluster", "more voters make each change slower, not safer", high=9)
    controller_timeout_ms: int = milliseconds(
        30_000, "cluster", "a change not applied by then is answered so"
    )
    replica_lag_time_max_ms: int = milliseconds(30_000, "cluster", "Kafka's: behind for so long, not in sync")
    producer_id_expiration_ms: int = milliseconds(
        DAY_MS, "cluster", "Kafka's: sequences of silent producers go"
    )
    leader_balance_interval_ms: int = milliseconds(5_000, "cluster", "leaders drift home soon, one by one")

    # what is told
    log_format: str = option("auto", "log", "json, text, or auto: text on a terminal")
    log_level: str = option("info", "log", "debug, info, warning or error: the lowest that is written")
    log_events_per_second_max: int = count(10, "log", "per event name: no client can fill the disk with it")

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_bounds(each, getattr(self, each.name))
        _check_together(self)


def about(each: Field[object]) -> About:
    known: About = each.metadata["about"]
    return known


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_bounds(each: Field[object], value: object) -> None:
    known = about(each)
    if not isinstance(value, int) or known.low is None or known.high is None:
        return
    if not known.low <= value <= known.high:
        raise OptionError(each.name, f"{value} is not between {known.low} and {known.high} ({known.unit})")


def _check_together(config: Config) -> None:
    _at_most(config, "election_timeout_ms_min", "election_timeout_ms_max")
    _at_most(config, "restart_pause_ms_min", "restart_pause_ms_max")
    _at_most(config, "peer_reconnect_ms_min", "peer_reconnect_ms_max")
    _at_most(config, "append_bytes_max", "inflight_bytes_max")
    _at_most(config, "batch_bytes_max", "request_bytes_max")
    _at_most(config, "batch_bytes_max", "uncommitted_bytes_max")
    _at_most(config, "request_bytes_max", "memory_bytes_max")
    _at_most(config, "stalled_client_ms_max", "slow_reader_ms_max")
    for name in ("request_bytes_max", "append_bytes_max", "start_piece_bytes"):
        _fits_a_frame(config, name)
    if 2 * config.beat_interval_ms > config.election_timeout_ms_min:
        raise OptionError(
            "beat_interval_ms",
            f"{config.beat_interval_ms} is more than half of election_timeout_ms_min "
            f"({config.election_timeout_ms_min}): one lost beat would start an election",
        )
    if 2 * config.wal_file_bytes > config.wal_bytes_max:
        raise OptionError(
            "wal_bytes_max",
            f"{config.wal_bytes_max} holds no two files of wal_file_bytes ({config.wal_file_bytes})",
        )
    if not is_loopback(config.kafka_host) and not config.insecure_network:
        raise OptionError(
            "kafka_host",
            f"{config.kafka_host} can be reached from other machines, and the listener cannot be secured yet",
            hint="add --insecure-network if everyone who can reach it may read and write everything",
        )
    for name, addresses in (
        ("join", config.join),
        ("advertise", (config.advertise,)),
        ("advertise_peer", (config.advertise_peer,)),
    ):
        for text in filter(None, addresses):
            try:
                Address.parse(text)
            except ValueError as error:
                raise OptionError(name, str(error)) from error
    if config.log_format not in ("auto", "json", "text"):
        raise OptionError("log_format", f"'{config.log_format}' is none of auto, json, text")
    if config.log_level not in ("debug", "info", "warning", "error"):
        raise OptionError("log_level", f"'{config.log_level}' is none of debug, info, warning, error")


def _fits_a_frame(config: Config, name: str) -> None:
    """What may have to go to a peer in one piece: refused there, it would be sent again for ever."""
    needed_bytes = getattr(config, name) + SHARED_FRAME_BYTES
    if needed_bytes > config.peer_frame_bytes_max:
        raise OptionError(
            "peer_frame_bytes_max",
            f"{config.peer_frame_bytes_max} holds no {name} ({getattr(config, name)}) and what goes with it: "
            f"{needed_bytes} are needed",
        )


def _at_most(config: Config, smaller: str, larger: str) -> None:
    if getattr(config, smaller) > getattr(config, larger):
        raise OptionError(
            smaller, f"{getattr(config, smaller)} is more than {larger} ({getattr(config, larger)})"
        )
