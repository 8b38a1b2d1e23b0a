"""A cluster's folder keeps how many brokers it has, and where they listen if nobody says so."""

import json
import os
import random
import socket
from pathlib import Path

import pytest

from tidings.runtime.cluster_folder import (
    ClusterRecord,
    FolderError,
    FormatTooNew,
    check_brokers,
    choose_ports,
    default_folder,
    ensure_secret,
    holder_of,
    read_record,
    write_record,
)
from tidings.runtime.ports import find_free
from tidings.storage.lock import LOCK_NAME, lock_folder

HOST = "127.0.0.1"
RECORD = ClusterRecord(brokers=1, kafka_ports=(9092,), peer_ports=(19092,))
HOME = Path("/people/ann")


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, ".local/share/tidings/cluster"),
        ("linux", {"XDG_DATA_HOME": "/people/ann/x"}, "x/tidings/cluster"),
        ("darwin", {"XDG_DATA_HOME": "/ignored"}, "Library/Application Support/tidings/cluster"),
        ("win32", {"LOCALAPPDATA": "/people/ann/l"}, "l/tidings/cluster"),
        ("win32", {}, "AppData/Local/tidings/cluster"),
    ],
)
def test_the_folder_is_where_the_platform_keeps_data(
    platform: str, environment: dict[str, str], folder: str
) -> None:
    assert default_folder(environment, HOME, platform) == HOME / folder


def test_an_empty_folder_holds_no_cluster(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_record(tmp_path, RECORD)

    assert read_record(tmp_path) == RECORD
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"format": 2}))

    with pytest.raises(FormatTooNew, match="has format 2, and this version knows 1"):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "brokers": "x"}', '{"format": "new"}'])
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)

    with pytest.raises(FolderError, match="does not describe a cluster"):
        read_record(tmp_path)


def test_another_number_of_brokers_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="holds a cluster of 1 broker, not 3") as caught:
        check_brokers(tmp_path, RECORD, 3, is_asked_for=True)

    assert "--brokers 1" in caught.value.hint
    assert "--data DIR" in caught.value.hint


def test_who_names_no_number_gets_the_cluster_that_is_there(tmp_path: Path) -> None:
    assert check_brokers(tmp_path, RECORD, 3, is_asked_for=False) == 1
    assert check_brokers(tmp_path, None, 3, is_asked_for=False) == 3


def test_ports_follow_the_first_one() -> None:
    record = choose_ports(None, brokers=3, host=HOST, first_kafka_port=9092, chance=random.Random())

    assert record.kafka_ports == (9092, 9093, 9094)
    assert record.peer_ports == (19092, 19093, 19094)


def test_peer_ports_that_do_not_exist_are_replaced_by_free_ones() -> None:
    record = choose_ports(None, brokers=1, host=HOST, first_kafka_port=60_000, chance=random.Random())

    assert record.kafka_ports == (60_000,)
    assert record.peer_ports[0] < 60_000


def test_kafka_ports_that_do_not_exist_are_refused() -> None:
    with pytest.raises(FolderError, match="need ports above 65535"):
        choose_ports(None, brokers=3, host=HOST, first_kafka_port=65_534, chance=random.Random())


def test_free_ports_stay_the_same_while_they_are_free() -> None:
    first = choose_ports(None, brokers=1, host=HOST, first_kafka_port=0, chance=random.Random())

    assert choose_ports(first, brokers=1, host=HOST, first_kafka_port=0, chance=random.Random()) == first


def test_a_port_that_was_taken_meanwhile_is_replaced() -> None:
    port, peer = find_free(HOST, 2, random.Random())
    record = ClusterRecord(brokers=1, kafka_ports=(port,), peer_ports=(peer,))
    with socket.create_server((HOST, port)):
        chosen = choose_ports(record, brokers=1, host=HOST, first_kafka_port=0, chance=random.Random())

    assert port not in chosen.kafka_ports


def test_the_holder_of_a_folder_is_who_locked_it(tmp_path: Path) -> None:
    lock = lock_folder(str(tmp_path))

    assert holder_of(tmp_path) == os.getpid()
    lock.release()


@pytest.mark.parametrize("text", ["", "no number", "-3", "\xff"])
def test_a_lock_file_that_names_nobody_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_NAME).write_text(text, encoding="latin-1")

    assert holder_of(tmp_path) == 0
    assert holder_of(tmp_path / "missing") == 0


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    first = ensure_secret(tmp_path).read_bytes()

    assert ensure_secret(tmp_path).read_bytes() == first
