"""Disks that are full, or that fail."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.faults import asking
from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.disks import SmallDisk, faulty_disk, small_disk
from tests.faults.replicas import disagreements
from tests.faults.traffic import read_everything, running_traffic
from tidings.config.exits import Exit

PARTITIONS = 3
SETTINGS = {"wal_file_bytes": "1048576", "wal_bytes_max": "4194304", "checkpoint_interval_ms": "500"}


@pytest.mark.parametrize(
    "may_mount", [True, pytest.param(False, marks=pytest.mark.long)], ids=["mounted", "played"]
)
def test_a_full_disk_refuses_writes_and_serves_reads_until_it_has_room(
    tmp_path: Path, may_mount: bool
) -> None:
    with small_disk(tmp_path, size_mib=32, may_mount=may_mount) as disk:
        environments = dict.fromkeys((1, 2, 3), disk.environment)
        with running_cluster(disk.folder, settings=SETTINGS, environments=environments) as cluster:
            cluster.create_topic("events", partitions=PARTITIONS)
            fill_and_free(cluster, disk)


def fill_and_free(cluster: Cluster, disk: SmallDisk) -> None:
    with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
        leader = cluster.leader("events")
        numbers = count()

        def refusal() -> int:
            """What the leader answers to one more message."""
            value = traffic.ledger.sent("late", 0, next(numbers))
            produced = asking.produce_once(cluster.brokers[leader].kafka, "events", value)
            if produced.error == asking.NONE:
                traffic.ledger.acknowledged(value, produced.base_offset)
            return produced.error

        disk.fill()

        wait_until(lambda: refusal() == asking.KAFKA_STORAGE_ERROR, "produce requests being refused")
        cluster.wait_for_event(leader, "disk_full")
        read_everything(cluster.bootstrap, "events", PARTITIONS, traffic.ledger, "reader of a full disk")

        disk.free()

        traffic.wait_for_progress()
        traffic.settle()


def test_a_failed_sync_ends_the_broker_and_loses_nothing(tmp_path: Path) -> None:
    disk = faulty_disk(tmp_path)
    with running_cluster(tmp_path, settings=SETTINGS, environments={2: disk.environment}) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            disk.begin("sync")

            assert cluster.wait_for_exit(2) == Exit.DISK_FAILED
            assert '"broker_stopped"' in cluster.last_lines(2, 1)
            assert "Input/output error" in cluster.last_lines(2, 1)
            traffic.wait_for_progress()
            disk.end("sync")
            cluster.start(2)
            traffic.wait_for_progress()
            traffic.settle()
        for number in cluster.brokers:
            assert cluster.terminate(number) == 0
        assert disagreements({number: broker.data for number, broker in cluster.brokers.items()}) == []
