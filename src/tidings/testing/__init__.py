"""A real cluster inside your tests: `from tidings.testing import Cluster`.

Its one rule: nothing is imported before it is used, because pytest loads the plugin of this package in every
run. It must not know how brokers work. Tests: tests/testing/test_cluster.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.testing.cluster import BrokerFacts as BrokerFacts
    from tidings.testing.cluster import Cluster as Cluster
    from tidings.testing.cluster import ClusterError as ClusterError

__all__ = ["BrokerFacts", "Cluster", "ClusterError"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tidings.testing import cluster

    return getattr(cluster, name)
