"""Replicas that come back when what they lack is gone: they go on from the log's new start, and may lead."""

from __future__ import annotations

from pathlib import Path

from tests.clients.librdkafka import Librdkafka
from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.damage import Files
from tests.faults.replicas import damage_in, disagreements
from tests.faults.traffic import running_traffic

SETTINGS = {
    "checkpoint_interval_ms": "300",
    "leader_balance_interval_ms": "1000",
    "segment_bytes": "16384",
}


def log_start(cluster: Cluster, broker_id: int) -> int:
    """Where the log begins that a broker can give to others, by its files."""
    return Files.of(cluster.brokers[broker_id].data, "events-0").checkpoint.log_start.offset


def test_a_leader_that_missed_the_deletion_of_all_it_had_goes_on_behind_it(tmp_path: Path) -> None:
    with running_cluster(tmp_path, settings=SETTINGS) as cluster:
        cluster.create_topic("events", partitions=1)
        with running_traffic(cluster.bootstrap, "events", 1) as traffic:
            victim = cluster.leader("events")
            others = [number for number in cluster.brokers if number != victim]
            cluster.kill(victim)
            end_offset = traffic.ledger.end_acknowledged(0)
            wait_until(
                lambda: traffic.ledger.end_acknowledged(0) > end_offset + 1_000,
                "segments that the victim lacks",
            )
            starts_at = Librdkafka(cluster.bootstrap).delete_records("events", end_offset + 900)
            for other in others:
                wait_until(
                    lambda other=other: log_start(cluster, other) > end_offset,  # type: ignore[misc]  # a lambda's default has no type
                    "the others having dropped what the victim lacks",
                )

            cluster.start(victim)

            wait_until(lambda: victim in cluster.leaders("events", asked=victim), "the victim leading again")
            cluster.kill(others[0])
            traffic.wait_for_progress()
            cluster.start(others[0])
            traffic.wait_for_progress()
            traffic.settle(starts_at=starts_at)
        for number in cluster.brokers:
            assert cluster.terminate(number) == 0
        folders = {number: broker.data for number, broker in cluster.brokers.items()}
        assert disagreements(folders) == []
        assert [finding for folder in folders.values() for finding in damage_in(folder)] == []
