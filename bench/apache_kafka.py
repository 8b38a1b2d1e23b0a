"""Apache Kafka as a measured system: three combined KRaft nodes on loopback, jars from Maven Central.

The one rule: settings are Kafka's own, except what three nodes on one machine need and what a column of the
table says. Must not know: measurements. Tests: tests/bench/test_apache_kafka.py (a start is marked long).
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from bench import clients, processes
from bench.systems import BROKERS, Broker

VERSION: Final = "4.3.1"
START_S_MAX: Final = 60.0
RESOLVE_S_MAX: Final = 600.0
CLUSTER_ID: Final = "dGlkaW5ncy1iZW5jaC0wMQ"
"""Any 16 bytes in URL-safe base64; all clusters may share it, for they never meet."""
JAVA_FLAGS: Final = ("-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>kafka-classpath</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""


def classpath(cache: Path) -> str:
    """Kafka's jars as a Java class path; resolved by Maven once per cache."""
    folder = cache / f"kafka-{VERSION}"
    listing = folder / "classpath.txt"
    if listing.exists() and all(Path(jar).exists() for jar in listing.read_text().strip().split(":")):
        return listing.read_text().strip()
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise processes.StartError("Apache Kafka needs `mvn` and `java` (17 or newer) on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(POM.format(version=VERSION))
    argv = ["mvn", "-B", "-q", "-ntp", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=RESOLVE_S_MAX, check=False
    )
    if done.returncode != 0:
        raise processes.StartError(f"Maven could not resolve Kafka {VERSION}: {done.stdout[-2000:]}")
    return listing.read_text().strip()


def properties(
    *, node_id: int, kafka_ports: list[int], controller_ports: list[int], data: Path, fsync: bool
) -> str:
    """One node's server.properties. `fsync` makes it flush every message before it counts as written."""
    voters = ",".join(f"{index + 1}@127.0.0.1:{port}" for index, port in enumerate(controller_ports))
    kafka = f"PLAINTEXT://127.0.0.1:{kafka_ports[node_id - 1]}"
    lines = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{kafka},CONTROLLER://127.0.0.1:{controller_ports[node_id - 1]}",
        "advertised.listeners": kafka,
        "log.dirs": str(data),
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": "2",
        "auto.create.topics.enable": "false",
    }
    if fsync:
        lines["log.flush.interval.messages"] = "1"
    return "".join(f"{key}={value}\n" for key, value in lines.items())


class ApacheKafka:
    """Implements bench.systems.System."""

    def __init__(self, *, cache: Path, fsync: bool, environment: Mapping[str, str]) -> None:
        self.name = "kafka-fsync" if fsync else "kafka"
        self._cache = cache
        self._fsync = fsync
        self._environment = environment
        self._classpath = ""
        self._folder: Path | None = None
        self._kafka_ports: list[int] = []
        self._nodes: dict[int, subprocess.Popen[str]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._kafka_ports)

    def prepare(self) -> None:
        """Resolves the jars, writes the settings and formats the three storage folders."""
        self._classpath = classpath(self._cache)
        self._folder = Path(tempfile.mkdtemp(prefix="tidings-bench-kafka-"))
        ports = processes.free_ports(2 * BROKERS)
        self._kafka_ports, controller_ports = ports[:BROKERS], ports[BROKERS:]
        for node_id in self._node_ids():
            self._settings(node_id).write_text(
                properties(
                    node_id=node_id,
                    kafka_ports=self._kafka_ports,
                    controller_ports=controller_ports,
                    data=self._folder / f"node-{node_id}",
                    fsync=self._fsync,
                )
            )
        self._format()

    def start(self) -> None:
        for node_id in self._node_ids():
            self._start_node(node_id)
        self._wait_for_all()

    def stop(self) -> None:
        # All at once: a node whose controllers are gone already waits for them until it is killed.
        stopping = [threading.Thread(target=processes.end, args=(node,)) for node in self._nodes.values()]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        self._nodes.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def brokers(self) -> tuple[Broker, ...]:
        return tuple(
            Broker(id=node_id, pid=node.pid, address=f"127.0.0.1:{self._kafka_ports[node_id - 1]}")
            for node_id, node in sorted(self._nodes.items())
        )

    def restart(self, broker_id: int) -> None:
        # Only a node that was killed is started again, so this wait is short.
        self._nodes[broker_id].wait(processes.STOP_S_MAX)
        self._start_node(broker_id)
        self._wait_for_all()

    def _node_ids(self) -> range:
        return range(1, BROKERS + 1)

    def _settings(self, node_id: int) -> Path:
        assert self._folder is not None, "prepare() comes first"
        return self._folder / f"node-{node_id}.properties"

    def _log(self, node_id: int) -> Path:
        return self._settings(node_id).with_suffix(".log")

    def _format(self) -> None:
        tool = ["java", "-cp", self._classpath, "kafka.tools.StorageTool"]
        formatting = [
            processes.start(
                [*tool, "format", "-t", CLUSTER_ID, "-c", str(self._settings(node_id))],
                log=self._log(node_id),
                environment={},
            )
            for node_id in self._node_ids()
        ]
        try:
            for node_id, process in zip(self._node_ids(), formatting, strict=True):
                if process.wait(START_S_MAX) != 0:
                    raise processes.StartError(
                        f"formatting failed: {processes.last_lines(self._log(node_id))}"
                    )
        finally:
            for process in formatting:
                processes.end(process)

    def _start_node(self, node_id: int) -> None:
        argv = ["java", *JAVA_FLAGS, "-cp", self._classpath, "kafka.Kafka", str(self._settings(node_id))]
        self._nodes[node_id] = processes.start(argv, log=self._log(node_id), environment=self._environment)

    def _wait_for_all(self) -> None:
        for broker in self.brokers():
            processes.wait_until(
                partial(processes.accepts_connections, broker.address),
                seconds_max=START_S_MAX,
                what=f"a listening Kafka node at {broker.address}",
            )
        processes.wait_until(self._all_registered, seconds_max=START_S_MAX, what="three registered brokers")

    def _all_registered(self) -> bool:
        for node_id, node in self._nodes.items():
            if node.poll() is not None:
                raise processes.StartError(f"a node ended: {processes.last_lines(self._log(node_id))}")
        with contextlib.suppress(KafkaException):
            return len(clients.broker_ids(self.bootstrap)) == BROKERS
        return False
