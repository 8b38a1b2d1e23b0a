"""Folders: one that was wiped, replaced, taken by another process, or written by a newer version."""

from __future__ import annotations

import json
from pathlib import Path

import google_crc32c

from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.replicas import disagreements
from tests.faults.traffic import running_traffic
from tidings.broker.cluster import METADATA_GROUP
from tidings.config.exits import Exit

PARTITIONS = 3


def member_of(cluster: Cluster, broker_id: int) -> str:
    """The directory uuid by which a broker's folder is known."""
    line = (cluster.brokers[broker_id].data / "identity").read_text().splitlines()[0]
    return str(json.loads(line)["directory_uuid"])


def test_a_wiped_disk_is_refused_with_the_command_that_replaces_it(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        cluster.kill(2)
        cluster.wipe(2)

        cluster.launch(2)

        assert cluster.wait_for_exit(2) == Exit.IDENTITY
        assert "tidings broker --replace 2" in cluster.last_lines(2)


def test_a_replaced_broker_catches_up_and_votes_and_the_old_disk_is_refused(tmp_path: Path) -> None:
    with running_cluster(tmp_path, settings={"checkpoint_interval_ms": "500"}) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            old = member_of(cluster, 2)
            cluster.wait_for_checkpoint(2, METADATA_GROUP)
            cluster.kill(2)
            folder = cluster.brokers[2].data
            old_folder = folder.rename(tmp_path / "old")
            traffic.wait_for_progress()

            cluster.start(2, more=["--replace", "2"])

            assert member_of(cluster, 2) != old
            # Leaders drift home: the new member leads, so it has everything and votes.
            wait_until(lambda: 2 in cluster.leaders("events", asked=1), "the new member leading")
            cluster.kill(3)  # a majority needs the new member now
            traffic.wait_for_progress()
            cluster.start(3)
            cluster.kill(2)
            new_folder = folder.rename(tmp_path / "new")
            old_folder.rename(folder)
            cluster.launch(2)
            assert cluster.wait_for_exit(2) == Exit.IDENTITY
            assert "tidings broker --replace 2" in cluster.last_lines(2)
            folder.rename(old_folder)
            new_folder.rename(folder)
            cluster.start(2)
            traffic.wait_for_progress()
            traffic.settle()
        for number in cluster.brokers:
            assert cluster.terminate(number) == 0
        assert disagreements({number: broker.data for number, broker in cluster.brokers.items()}) == []


def test_a_folder_in_use_is_refused_with_its_holders_process_id(tmp_path: Path) -> None:
    with running_cluster(tmp_path, brokers=1) as cluster:
        holder = cluster.brokers[1].process
        assert holder is not None
        try:
            cluster.brokers[1].process = None
            cluster.launch(1)

            assert cluster.wait_for_exit(1) == Exit.FOLDER_LOCKED
            assert f"process {holder.pid}" in cluster.last_lines(1)
        finally:
            cluster.brokers[1].process = holder


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with running_cluster(tmp_path, brokers=1) as cluster:
        cluster.terminate(1)
        identity = cluster.brokers[1].data / "identity"
        fields = json.loads(identity.read_text().splitlines()[0])
        line = json.dumps({**fields, "format_version": fields["format_version"] + 1}).encode()
        identity.write_bytes(line + b"\n%08x\n" % google_crc32c.value(line))

        cluster.launch(1)

        assert cluster.wait_for_exit(1) == Exit.FORMAT_TOO_NEW
        assert "format version 2" in cluster.last_lines(1)
