"""Commands are run in this process: their exit code, what they print, and the fake cluster they talk to."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.fakes.cluster_doors import FakeCluster
from tidings.cli.main import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What came of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def tidings(
    cluster: FakeCluster, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs `tidings` with the given arguments and bytes on stdin."""
    monkeypatch.delenv("TIDINGS_KAFKA", raising=False)

    def command(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(list(arguments), cluster.doors())
        out, err = capsysbinary.readouterr()
        return Ended(code=code, out=out.decode(errors="surrogateescape"), err=err.decode())

    return command
