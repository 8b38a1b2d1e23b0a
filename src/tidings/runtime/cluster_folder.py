"""Cluster folder: what `tidings up` keeps of a cluster besides the brokers' own folders.

    DIR/LOCK          held by the `tidings up` that runs
    DIR/cluster.json  {"format": 1, "brokers": 3, "kafka_ports": [...], "peer_ports": [...]}
    DIR/secret        by which the brokers know each other
    DIR/broker-1 ...  the brokers' data

Rule: a cluster keeps the number of brokers it was made with, and its ports where it may choose them.
Must not know: how brokers are run. Tests: tests/runtime/test_cluster_folder.py
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tidings.config.options import PORT_MAX
from tidings.runtime.ports import find_free, is_free
from tidings.runtime.secret import make_secret
from tidings.storage.lock import LOCK_NAME

FORMAT = 1
RECORD_NAME = "cluster.json"
SECRET_NAME = "secret"  # a file's name, not a secret
PEER_PORT_DISTANCE = 10_000


class FolderError(Exception):
    """The folder does not hold what is asked for; `hint` is the way out."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


class FormatTooNew(FolderError):
    """A newer version wrote the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """What is written down of the cluster, broker by broker in the order of their ids."""

    brokers: int
    kafka_ports: tuple[int, ...]
    peer_ports: tuple[int, ...]


def default_folder(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """The cluster's place among the user's data, where the platform's users look for such things."""
    if platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "tidings" / "cluster"


def holder_of(folder: Path) -> int:
    """The process id that the last holder of a folder's lock left, 0 for none. It may be long dead."""
    try:
        text = (folder / LOCK_NAME).read_bytes()[:20].decode("ascii", "replace").strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() else 0


def read_record(folder: Path) -> ClusterRecord | None:
    """What the folder says of its cluster; None: there is none yet."""
    path = folder / RECORD_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    hint = "give another folder with --data DIR"
    try:
        record = json.loads(text)
        if record["format"] > FORMAT:
            problem = f"{path} has format {record['format']}, and this version knows {FORMAT}"
            raise FormatTooNew(problem, "start it with the version that wrote it, or a newer one")
        return ClusterRecord(
            brokers=int(record["brokers"]),
            kafka_ports=tuple(map(int, record["kafka_ports"])),
            peer_ports=tuple(map(int, record["peer_ports"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise FolderError(f"{path} does not describe a cluster", hint) from error


def write_record(folder: Path, record: ClusterRecord) -> None:
    """Replaces the record in one step."""
    fresh = folder / f"{RECORD_NAME}.new"
    with fresh.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **asdict(record)}, file)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / RECORD_NAME)


def ensure_secret(folder: Path) -> Path:
    path = folder / SECRET_NAME
    with suppress(FileExistsError):
        make_secret(path)
    return path


def check_brokers(folder: Path, record: ClusterRecord | None, brokers: int, *, is_asked_for: bool) -> int:
    """How many brokers to start: as many as the cluster has."""
    if record is None or record.brokers == brokers:
        return brokers
    if is_asked_for:
        problem = f"{folder} holds a cluster of {_brokers(record.brokers)}, not {brokers}"
        raise FolderError(problem, f"start it with --brokers {record.brokers}, or another with --data DIR")
    return record.brokers


def choose_ports(
    record: ClusterRecord | None, *, brokers: int, host: str, first_kafka_port: int, chance: Random
) -> ClusterRecord:
    """Consecutive ports from the first one; for 0 those of the last time if they are free, or other free
    ones.
    """
    if first_kafka_port:
        kafka_ports = range(first_kafka_port, first_kafka_port + brokers)
        if kafka_ports[-1] > PORT_MAX:
            raise FolderError(
                f"{_brokers(brokers)} from port {first_kafka_port} on need ports above {PORT_MAX}"
            )
        peer_ports: list[int] = [port + PEER_PORT_DISTANCE for port in kafka_ports]
        if peer_ports[-1] > PORT_MAX:
            peer_ports = find_free(host, brokers, chance)
        return ClusterRecord(brokers=brokers, kafka_ports=tuple(kafka_ports), peer_ports=tuple(peer_ports))
    if record and all(is_free(host, port) for port in (*record.kafka_ports, *record.peer_ports)):
        return record
    ports = find_free(host, 2 * brokers, chance)
    return ClusterRecord(
        brokers=brokers, kafka_ports=tuple(ports[:brokers]), peer_ports=tuple(ports[brokers:])
    )


def _brokers(count: int) -> str:
    return f"{count} broker" if count == 1 else f"{count} brokers"
