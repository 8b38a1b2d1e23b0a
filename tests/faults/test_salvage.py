"""Logs that no other broker can mend: read-only until `tidings log salvage`, and taking writes again after
it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.clients import wire
from tests.clients.librdkafka import Librdkafka, Setting, deliver
from tests.clients.witness import Beginning
from tests.faults import asking
from tests.faults.cluster import Cluster, running_cluster, wait_until
from tests.faults.damage import Files, flip, log_with_a_flipped_bit_in_the_middle
from tests.faults.replicas import damage_in
from tests.faults.traffic import client_settings
from tidings.broker.cluster import METADATA_GROUP
from tidings.config.exits import Exit
from tidings.protocol.errors import ErrorCode
from tidings.storage.checkpoint import read_checkpoint
from tidings.storage.files import OsFiles
from tidings.storage.recovery import GROUPS_FOLDER, WAL_FOLDER

SETTINGS = {"checkpoint_interval_ms": "300", "segment_bytes": "16384"}
VALUE_BYTES = 1_000
COMMAND_S_MAX = 60


def write(cluster: Cluster, topic: str, first: int, count: int) -> None:
    """Messages that are numbered, one batch each, all acknowledged."""
    settings: dict[str, Setting] = {
        "acks": "all",
        "enable.idempotence": True,
        "batch.num.messages": 1,
        "linger.ms": 0,
    }
    writer = Producer(client_settings(cluster.bootstrap, settings))
    numbers = range(first, first + count)
    messages = [{"topic": topic, "partition": 0, "value": b"%d" % n + bytes(VALUE_BYTES)} for n in numbers]
    deliver(writer, messages)


def read(cluster: Cluster, topic: str, count: int) -> list[int]:
    found = Librdkafka(cluster.bootstrap).read(topic, Beginning(), count)
    assert [stored.offset for stored in found] == list(range(count))
    return [int(bytes(stored.message.value or b"").rstrip(b"\0")) for stored in found]


def log_command(
    cluster: Cluster, broker_id: int, verb: str, *arguments: str
) -> tuple[int, dict[str, Any]]:  # Any: what JSON holds
    """`tidings log ... --json` on a broker's folder: the exit code, and what it says."""
    folder = str(cluster.brokers[broker_id].data)
    command = [sys.executable, "-m", "tidings", "log", verb, "--data", folder, "--json", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def write_segments(cluster: Cluster, topic: str, count: int) -> Files:
    """Have so much written that there are several segments, all of it in the checkpoint and nowhere else."""
    write(cluster, topic, 0, count)
    data = cluster.brokers[1].data
    written = log_files(data)
    assert cluster.terminate(1) == 0
    cluster.start()
    wait_until(lambda: not written & log_files(data), "a write-ahead log that is cut")
    assert cluster.terminate(1) == 0
    files = Files.of(data, f"{topic}-0")
    assert files.checkpoint.start.offset == count
    return files


def log_files(data: Path) -> set[str]:
    return {path.name for path in (data / WAL_FOLDER).iterdir() if path.name[0].isdigit()}


def test_a_damaged_partition_of_one_replica_is_read_only_until_it_is_salvaged(tmp_path: Path) -> None:
    with running_cluster(tmp_path, brokers=1, settings=SETTINGS) as cluster:
        cluster.create_topic("events", partitions=1)
        files = write_segments(cluster, "events", 60)
        damaged = files.checkpoint.segments[1]
        flip(files.log(damaged), damaged.log_bytes // 2)
        kept = damaged.base_offset + damaged.row_count // 2
        address = cluster.brokers[1].kafka

        cluster.start()
        assert read(cluster, "events", damaged.base_offset) == list(range(damaged.base_offset))
        wait_until(lambda: is_damage_found(cluster, damaged.base_offset), "damage found by a reader")
        refused = asking.produce_once(address, "events", b"no")
        cluster.terminate(1)
        code, _ = log_command(cluster, 1, "verify")
        _, said = log_command(cluster, 1, "salvage", "--yes")
        cluster.start()
        write(cluster, "events", 1_000, 5)

        assert refused.error == ErrorCode.KAFKA_STORAGE_ERROR
        assert code == Exit.FAILED
        assert [group["log"] for group in said["groups"]] == ["events-0"]
        end_offset = said["groups"][0]["end"]["offset"]
        assert abs(end_offset - kept) <= 1
        assert said["groups"][0]["lost_records"] == 60 - end_offset
        assert read(cluster, "events", end_offset + 5) == [*range(end_offset), *range(1_000, 1_005)]
        assert cluster.terminate(1) == 0
        assert damage_in(files.data) == []


def is_damage_found(cluster: Cluster, base_offset: int) -> bool:
    """A reader in the middle of what is damaged is told so; nothing wrong is handed out."""
    with wire.Connection(cluster.brokers[1].kafka) as connection:
        for offset in range(base_offset, base_offset + 20):
            if wire.fetch(connection, "events", offset).error == ErrorCode.KAFKA_STORAGE_ERROR:
                return bool(cluster.brokers[1].events("replica_damaged"))
    return False


def test_a_damaged_write_ahead_log_of_the_only_broker_is_salvaged_with_the_metadata(tmp_path: Path) -> None:
    with running_cluster(tmp_path, brokers=1, settings=SETTINGS) as cluster:
        cluster.create_topic("events", partitions=1)
        cluster.wait_for_checkpoint(1, METADATA_GROUP)
        write(cluster, "events", 0, 30)
        data = cluster.brokers[1].data
        wait_until(lambda: has_checkpoint(data, "events-0"), "a checkpoint")
        cluster.kill(1)
        log_with_a_flipped_bit_in_the_middle(Files.of(data, "events-0"))

        _, said = log_command(cluster, 1, "salvage", "--yes")
        cluster.start()
        end = asking.list_end(cluster.brokers[1].kafka, "events").offset
        write(cluster, "events", 1_000, 5)
        cluster.create_topic("more", partitions=1)

        groups = {group["log"]: group for group in said["groups"]}
        assert groups.keys() == {"metadata", "events-0"}
        assert groups["events-0"]["end"]["offset"] == end
        assert groups["events-0"]["lost_records"] == 30 - end
        assert read(cluster, "events", end + 5) == [*range(end), *range(1_000, 1_005)]


def has_checkpoint(data: Path, title: str) -> bool:
    try:
        return Files.of(data, title).checkpoint.start.offset > 0
    except AssertionError:
        return False


def test_a_survivor_of_three_goes_on_alone_and_the_lost_ones_are_replaced(tmp_path: Path) -> None:
    with running_cluster(tmp_path, settings=SETTINGS) as cluster:
        cluster.create_topic("events", partitions=1)
        write(cluster, "events", 0, 40)
        for number in (2, 3, 1):
            cluster.terminate(number)
        cluster.wipe(2)
        cluster.wipe(3)

        _, said = log_command(cluster, 1, "salvage", "--lost", "2", "--lost", "3", "--yes")
        cluster.start(1)
        cluster.wait_for_leaders("events", asked=1, without=(2, 3))
        write(cluster, "events", 40, 10)
        alone = read(cluster, "events", 50)
        cluster.start(2, more=("--replace", "2"))
        cluster.start(3, more=("--replace", "3"))
        wait_until(lambda: voter_counts(cluster.brokers[1].data) == {3}, "the new brokers voting")
        cluster.kill(1)
        cluster.wait_for_leaders("events", asked=2, without=(1,))
        write(cluster, "events", 50, 10)

        assert {group["group"] for group in said["groups"]} >= {METADATA_GROUP, 1}
        assert alone == list(range(50))
        assert read(cluster, "events", 60) == list(range(60))


def voter_counts(data: Path) -> set[int]:
    """In how many brokers' hands the logs of a folder are, as their checkpoints say."""
    checkpoints = [read_checkpoint(OsFiles(), str(folder)) for folder in (data / GROUPS_FOLDER).iterdir()]
    return {len(one.start.membership.voters) for one in checkpoints if one is not None}
