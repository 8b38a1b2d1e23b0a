"""Fixtures that pytest finds by itself where Tidings is installed.

    tidings_bootstrap        HOST:PORT of one broker that all tests of a run share; use topics of your own
    tidings_cluster          the Cluster behind it
    tidings_cluster_factory  makes further clusters, to be killed and paused; all end with the test

Its one rule: loading it costs nothing; brokers are imported by the first test that asks for one. It must not
know how clusters work. Tests: tests/testing/test_plugin.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidings.testing.cluster import Cluster


@pytest.fixture(scope="session")
def tidings_cluster() -> Iterator[Cluster]:
    """A cluster of one broker for the whole run. Do not kill it: others use it too."""
    from tidings.testing.cluster import Cluster

    with Cluster(brokers=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tidings_bootstrap(tidings_cluster: Cluster) -> str:
    """What Kafka clients take as `bootstrap.servers`."""
    return tidings_cluster.bootstrap


@pytest.fixture
def tidings_cluster_factory() -> Iterator[Callable[..., Cluster]]:
    """Call it as `Cluster` itself: `tidings_cluster_factory(brokers=3)`; what it returns runs already."""
    from tidings.testing.cluster import Cluster

    with ExitStack() as running:

        def start(*arguments: object, **options: object) -> Cluster:
            cluster = Cluster(*arguments, **options)  # type: ignore[arg-type]  # checked by Cluster itself
            return running.enter_context(cluster)

        yield start
