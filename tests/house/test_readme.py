"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tidings.testing import Cluster

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
RUN_S_MAX = 50


def run(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_program_that_publishes_and_reads_does_both() -> None:
    with Cluster(brokers=1) as cluster:
        printed = run(PYTHON_BLOCKS[0].replace("127.0.0.1:9092", cluster.bootstrap))

    assert printed == "0 b'hello, world'\n"


def test_the_cluster_in_a_test_runs() -> None:
    run(PYTHON_BLOCKS[1])


def test_every_document_that_is_linked_is_there() -> None:
    documents = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]

    missing = [
        f"{document.name} -> {link}"
        for document in documents
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / link).exists()
    ]

    assert missing == []
