"""pytest finds the fixtures by itself, and pays for them only where a test uses them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.testing.plain_client import write
from tidings.testing import Cluster

SECONDS_MAX = 60.0
HEAVY = {"asyncio", "uvloop", "tidings.runtime", "tidings.testing.cluster", "google_crc32c"}


def test_pytest_is_told_where_the_fixtures_are() -> None:
    (found,) = entry_points(group="pytest11", name="tidings")

    assert found.value == "tidings.testing.plugin"


def test_one_broker_serves_all_tests(tidings_cluster: Cluster, tidings_bootstrap: str) -> None:
    assert tidings_bootstrap == tidings_cluster.bootstrap
    assert write(tidings_bootstrap, "a-topic-of-test-plugin", b"x") == 0


def test_a_test_that_kills_brokers_makes_its_own(tidings_cluster_factory: Callable[..., Cluster]) -> None:
    one = tidings_cluster_factory()
    other = tidings_cluster_factory(brokers=1, auto_create_topics=False)

    one.kill(1)

    assert set(one.bootstrap.split(",")).isdisjoint(other.bootstrap.split(","))


def test_a_suite_of_other_people_s_uses_the_fixtures_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        "clusters = []\n"
        "def test_one(tidings_bootstrap, tidings_cluster_factory):\n"
        "    clusters.append(tidings_cluster_factory())\n"
        "    assert tidings_bootstrap != clusters[0].bootstrap\n"
        "def test_two(tidings_cluster):\n"
        "    assert len(tidings_cluster.brokers) == 1\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", str(tmp_path), "--rootdir", str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["tidings.testing.plugin", "tidings.testing"])
def test_loading_it_imports_no_broker(module: str) -> None:
    code = (
        f"import sys, pytest; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not HEAVY & set(done.stdout.split())


def test_a_name_that_is_not_there_is_an_ordinary_mistake() -> None:
    import tidings.testing

    with pytest.raises(AttributeError, match="has no attribute 'Clutser'"):
        _ = tidings.testing.Clutser
