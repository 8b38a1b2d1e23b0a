"""KafkaJS, the JavaScript client, against the cluster. Needs `node` and `npm` on the PATH.

It produces and administers. Its only reader is a member of a consumer group, which must be refused at once.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clients.cluster import Cluster
from tests.clients.contract import AdministratorContract, RefusalContract, WriterContract
from tests.clients.driver import Driven, Program

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SOURCES: Final = Path(__file__).parent / "javascript"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "javascript"
INSTALL_S_MAX: Final = 240.0


@pytest.fixture(scope="module")
def folder() -> Path:
    """Our program beside the packages it names; npm installs them once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted, installed = SOURCES / "package.json", CACHE / "package.json"
    if not (CACHE / "node_modules").exists() or installed.read_text() != wanted.read_text():
        shutil.copy(wanted, installed)
        argv = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(argv, cwd=CACHE, check=True, timeout=INSTALL_S_MAX)
    shutil.copy(SOURCES / "witness.js", CACHE)
    return CACHE


@pytest.fixture(scope="module")
def program(folder: Path, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    log = tmp_path_factory.mktemp("javascript") / "witness.log"
    running = Program(["node", str(folder / "witness.js"), cluster.bootstrap], log=log)
    try:
        running.wait_until_up()
        yield running
    finally:
        running.end()


class TestKafkaJS(WriterContract, AdministratorContract, RefusalContract):
    CLIENT = "KafkaJS"
    # It tells no reason that a broker gives for naming no coordinator.
    GROUP_REFUSED = TRANSACTIONS_REFUSED = "failedtofindgroupcoordinator"

    @pytest.fixture
    def client(self, program: Program) -> Driven:
        return Driven(program)
