"""Planning: which brokers `tidings up` runs, where they listen, and by which commands.

Rule: a plan's command works by hand too, from anywhere: nothing that was set is left to a file or to the
environment. Must not know: how processes are kept. Tests: tests/cli/test_planning.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from tidings.cli.failure import Failure
from tidings.cli.output import warn
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.load import Loaded
from tidings.config.options import Config, about
from tidings.runtime import cluster_folder
from tidings.runtime.children import is_alive
from tidings.runtime.cluster_folder import ClusterRecord, holder_of
from tidings.runtime.ports import is_free
from tidings.runtime.supervisor import BrokerPlan

# Options that every broker is given by a flag of its own; the others travel as --set.
OPTIONS_WITH_FLAGS = frozenset(
    {"broker_id", "data_folder", "kafka_host", "kafka_port", "peer_host", "peer_port", "join", "secret_file"}
)


def plan_cluster(loaded: Loaded, folder: Path, program: tuple[str, ...]) -> list[BrokerPlan]:
    """What to run in the cluster's folder; what must be known of the cluster is written down first."""
    record = _record(loaded, folder)
    plans = _plans(loaded, folder, record, program)
    _require_ports(plans, record, loaded.config)
    return plans


def _record(loaded: Loaded, folder: Path) -> ClusterRecord:
    """How many brokers at which ports."""
    config = loaded.config
    kept = cluster_folder.read_record(folder)
    is_asked_for = "brokers" in loaded.place_by_option
    brokers = cluster_folder.check_brokers(folder, kept, config.brokers, is_asked_for=is_asked_for)
    if brokers % 2 == 0:
        lost = brokers // 2 - 1
        warn(f"{brokers} brokers survive the loss of {lost}, as {brokers - 1} do: take an odd number")
    record = cluster_folder.choose_ports(
        kept,
        brokers=brokers,
        host=config.kafka_host,
        first_kafka_port=config.kafka_port,
        chance=random.Random(),
    )
    if record != kept:
        cluster_folder.write_record(folder, record)
    return record


def _plans(loaded: Loaded, folder: Path, record: ClusterRecord, program: tuple[str, ...]) -> list[BrokerPlan]:
    config = loaded.config
    secret = str(cluster_folder.ensure_secret(folder))
    peers = [str(Address(config.peer_host, port)) for port in record.peer_ports]
    settings = tuple(_settings_of_brokers(loaded))
    plans: list[BrokerPlan] = []
    for broker_id, (kafka_port, peer) in enumerate(zip(record.kafka_ports, peers, strict=True), start=1):
        kafka = str(Address(config.kafka_host, kafka_port))
        data = folder / f"broker-{broker_id}"
        who = ("--id", str(broker_id), "--data", str(data), "--kafka", kafka, "--peer", peer)
        argv = (*program, *who, "--join", ",".join(peers), "--secret-file", secret, *settings)
        plans.append(BrokerPlan(broker_id=broker_id, kafka=kafka, peer=peer, data=data, argv=argv))
    return plans


def _settings_of_brokers(loaded: Loaded) -> Iterator[str]:
    for each in fields(Config):
        is_set = each.name in loaded.place_by_option
        if is_set and each.name not in OPTIONS_WITH_FLAGS and about(each).group != "up":
            yield "--set"
            yield f"{each.name}={getattr(loaded.config, each.name)}"


def _require_ports(plans: list[BrokerPlan], record: ClusterRecord, config: Config) -> None:
    """A taken port is told before anything runs. Who holds a broker's folder may hold its ports as well."""
    for plan, kafka_port, peer_port in zip(plans, record.kafka_ports, record.peer_ports, strict=True):
        if is_alive(holder_of(plan.data)):
            continue
        for host, port in ((config.kafka_host, kafka_port), (config.peer_host, peer_port)):
            if not is_free(host, port):
                raise Failure(
                    f"port {port} is in use, and broker {plan.broker_id} needs it",
                    hint="stop what uses it, or choose others with --kafka-port PORT (0: free ones)",
                    code=Exit.PORT_IN_USE,
                )
