"""Topics: fresh ones for a test, and the waits for what a cluster does after it has answered.

The one rule: no two tests share a topic, so they can run in any order beside each other. Must not know: what
they hold. Apache Kafka shows a change on its brokers some time after its answer; hence the waits.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from bench import processes
from tests.clients import wire
from tests.clients.cluster import Cluster
from tests.clients.librdkafka import Librdkafka
from tests.clients.witness import ANSWER_S_MAX


class Topics:
    """Makes topics through the reference client."""

    def __init__(self, cluster: Cluster, stock: Librdkafka) -> None:
        self._cluster = cluster
        self._stock = stock
        self.replicas = min(3, len(cluster.addresses))

    def name(self) -> str:
        return f"t-{uuid.uuid4().hex[:10]}"

    def create(self, *, partitions: int = 1, **settings: str) -> str:
        """A topic that every broker knows, with leaders. Underscores in names of settings stand for dots."""
        topic = self.name()
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        self._stock.create_topic(topic, partitions=partitions, replicas=self.replicas, settings=dotted)
        self.wait_for_partitions(topic, partitions)
        return topic

    def wait_for_partitions(self, topic: str, count: int) -> None:
        """Until every broker names a leader for each of `count` partitions."""
        self._wait(
            lambda: all(
                len(leaders) == count and -1 not in leaders for leaders in self._leaders_by_address(topic)
            ),
            f"{count} partitions of {topic} on every broker",
        )

    def wait_until_gone(self, topic: str) -> None:
        self._wait(lambda: not any(self._leaders_by_address(topic)), f"every broker forgetting {topic}")

    def wait_for_setting(self, topic: str, name: str, value: str) -> None:
        self._wait(lambda: self._stock.settings(topic)[name] == value, f"{name}={value} on {topic}")

    def _leaders_by_address(self, topic: str) -> list[list[int]]:
        return [wire.leaders(address, topic) for address in self._cluster.addresses]

    def _wait(self, met: Callable[[], bool], what: str) -> None:
        processes.wait_until(met, seconds_max=ANSWER_S_MAX, what=what)
