"""Three brokers inside librdkafka (its mock), to which other clients connect over real sockets."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.clients.cluster import Cluster, running_cluster

SECONDS_MAX = 20


class MockCluster:
    """Brokers that produce, fetch and list offsets; a topic is made when it is first written to, with four
    partitions.
    """

    def __init__(self) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": "replaced by the mock",
                "test.mock.num.brokers": 3,
                "log_level": 0,
                "linger.ms": 0,
            }
        )
        brokers = self._producer.list_topics(timeout=SECONDS_MAX).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def write(self, topic: str, value: bytes, *, partition: int = 0, timestamp_ms: int = 0) -> None:
        """One message, stored when this returns."""
        failed: list[str] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error.str())

        self._producer.produce(
            topic, value, partition=partition, timestamp=timestamp_ms, on_delivery=delivered
        )
        assert (self._producer.flush(SECONDS_MAX), failed) == (0, [])


@pytest.fixture(scope="session")
def mock_cluster() -> MockCluster:
    return MockCluster()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers of our own, or the cluster that the environment names."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return str(request.node.name).translate({ord(each): "-" for each in "[]:,'\" "})[:100]


@pytest.fixture
def closing() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Takes functions that close things, and calls them at the end, the last first."""
    closers: list[Callable[[], None]] = []
    yield closers.append
    for close in reversed(closers):
        close()
