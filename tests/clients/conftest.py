"""Stock clients against real brokers: one cluster for all tests of a worker, fresh topics for each test.

The one rule: what these tests use is what any user of a Kafka client has. They start `tidings up` by
themselves; to run them against a cluster that is up already, Apache Kafka included, name it:

    TIDINGS_TEST_KAFKA=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094 .venv/bin/pytest tests/clients

Tests of what only Tidings answers (refusals, log events) are skipped where a cluster has more to offer.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients import wire
from tests.clients.cluster import Cluster, running_cluster
from tests.clients.librdkafka import Librdkafka
from tests.clients.topics import Topics


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def stock(cluster: Cluster) -> Librdkafka:
    """The reference client: what it writes others must read, and the other way round."""
    return Librdkafka(cluster.bootstrap)


@pytest.fixture(scope="session")
def topics(cluster: Cluster, stock: Librdkafka) -> Topics:
    return Topics(cluster, stock)


@pytest.fixture(scope="session")
def without_groups(cluster: Cluster) -> None:
    """For tests of how groups and transactions are refused."""
    if wire.JOIN_GROUP in wire.api_keys(cluster.addresses[0]):
        pytest.skip("this cluster serves consumer groups")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Writes into the test report what docs/compatibility.md may say because of each test."""
    for item in items:
        for marker in item.iter_markers("shows"):
            assert isinstance(item, pytest.Function)
            client = getattr(item.cls, "CLIENT", None) or item.module.CLIENT
            item.user_properties.append(("shows", f"{client}: {marker.args[0]}"))
