"""Kafka's own Java client and tools against the cluster. Needs `mvn` and `java` (17 or newer) on the PATH."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import apache_kafka
from tests.clients.cluster import Cluster
from tests.clients.contract import (
    AdministratorContract,
    ReaderContract,
    RefusalContract,
    SeekerContract,
    WriterContract,
)
from tests.clients.driver import Driven, Program
from tests.clients.librdkafka import Librdkafka
from tests.clients.topics import Topics
from tests.clients.witness import Beginning

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "java"
WITNESS: Final = Path(__file__).parent / "java" / "Witness.java"
TOOL_S_MAX: Final = 120.0
RESOLVE_S_MAX: Final = 600.0
POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>clients-classpath</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>
      <version>{apache_kafka.VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{apache_kafka.VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


@pytest.fixture(scope="module")
def classpath() -> str:
    """The client's and the tools' jars; Maven resolves them once."""
    listing = CACHE / f"classpath-{apache_kafka.VERSION}.txt"
    jars = listing.read_text().strip().split(":") if listing.exists() else [""]
    if not all(Path(jar).is_file() for jar in jars):
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "pom.xml").write_text(POM)
        argv = ["mvn", "-B", "-q", "-ntp", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
        subprocess.run(argv, cwd=CACHE, check=True, timeout=RESOLVE_S_MAX)
    return listing.read_text().strip()


@pytest.fixture(scope="module")
def program(classpath: str, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    log = tmp_path_factory.mktemp("java") / "witness.log"
    running = Program(["java", "-Xmx256m", "-cp", classpath, str(WITNESS), cluster.bootstrap], log=log)
    try:
        running.wait_until_up()
        yield running
    finally:
        running.end()


class TestJava(WriterContract, ReaderContract, SeekerContract, AdministratorContract, RefusalContract):
    CLIENT = "Java"

    @pytest.fixture
    def client(self, program: Program) -> Driven:
        return Driven(program)

    @pytest.fixture
    def tool(self, classpath: str) -> Tool:
        return Tool(classpath)

    @pytest.mark.shows("tool: ProducerPerformance")
    def test_producer_performance_runs_to_its_end(
        self, tool: Tool, cluster: Cluster, stock: Librdkafka, topics: Topics
    ) -> None:
        topic = topics.create()

        printed = tool.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
            *(
                "--producer-props",
                f"bootstrap.servers={cluster.bootstrap}",
                "acks=all",
                "compression.type=lz4",
            ),
        )

        assert re.search(r"^20000 records sent", printed, re.MULTILINE), printed
        assert len(stock.read(topic, Beginning(), 20_000)) == 20_000

    @pytest.mark.shows("tool: console producer and consumer")
    def test_what_the_console_producer_writes_the_console_consumer_reads(
        self, tool: Tool, cluster: Cluster, topics: Topics
    ) -> None:
        topic = topics.create()
        where = ["--bootstrap-server", cluster.bootstrap, "--topic", topic]

        tool.run("org.apache.kafka.tools.ConsoleProducer", *where, words="one\ntwo\nthree\n")
        printed = tool.run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *where,
            *("--partition", "0", "--offset", "earliest", "--max-messages", "3"),
        )

        assert printed.splitlines() == ["one", "two", "three"]

    @pytest.mark.shows("tool: kafka-topics")
    def test_kafka_topics_describes_a_topic(self, tool: Tool, cluster: Cluster, topics: Topics) -> None:
        topic = topics.create(partitions=2)

        printed = tool.run(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", cluster.bootstrap, "--describe", "--topic", topic),
        )

        assert len(re.findall(rf"Topic: {topic}\s+Partition: \d+\s+Leader: \d+", printed)) == 2


class Tool:
    """Kafka's command-line tools, by their main classes."""

    def __init__(self, classpath: str) -> None:
        self._classpath = classpath

    def run(self, main_class: str, *arguments: str, words: str = "") -> str:
        """What the tool printed; it must end well."""
        argv = ["java", "-Xmx256m", "-cp", self._classpath, main_class, *arguments]
        done = subprocess.run(
            argv, input=words, capture_output=True, text=True, timeout=TOOL_S_MAX, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
