"""The wheel: pure Python, complete, and enough by itself to start a broker that takes a message."""

import json
import select
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import ZipFile

import confluent_kafka
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS_MAX = 50
READY_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the locked backend without an isolated environment, so nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=BUILD_SECONDS_MAX)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def empty_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel.

    A path file lets it see the locked packages, and not our source folder: path files do not nest.
    """
    environment = tmp_path_factory.mktemp("empty") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (packages / "locked.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n"
    )
    uv = Path(sys.executable).parent / "uv"
    install = [str(uv) if uv.exists() else "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    programs = environment / "bin"
    subprocess.run([*install, "--python", str(programs / "python"), str(wheel)], check=True)
    return programs


def test_the_wheel_fits_every_python_and_every_machine(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(metadata).decode().splitlines()

    assert wheel.name.endswith("-py3-none-any.whl")
    assert "Root-Is-Purelib: true" in lines
    assert "Tag: py3-none-any" in lines


def test_the_wheel_holds_the_package_its_types_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()

    assert "tidings/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"tidings"}
    assert [name for name in names if Path(name).suffix in (".so", ".pyd", ".pyc")] == []


def test_the_wheel_asks_for_what_pyproject_names(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(metadata).decode().splitlines()

    required = {line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist")}
    assert len(required) == 7, required
    assert not any("pytest" in line for line in required)


def test_an_installed_wheel_runs_from_its_own_files(empty_environment: Path) -> None:
    where = "import tidings; print(tidings.__file__)"

    found = subprocess.check_output([str(empty_environment / "python"), "-c", where], cwd="/", text=True)

    assert Path(found.strip()).is_relative_to(empty_environment.parent)


def test_an_installed_wheel_starts_a_broker_that_takes_a_message(
    empty_environment: Path, tmp_path: Path
) -> None:
    with cluster(empty_environment / "tidings", tmp_path) as bootstrap:
        delivered = publish(bootstrap, topic="greetings", value=b"hello")

    assert delivered == ("greetings", 0)


@contextmanager
def cluster(program: Path, folder: Path) -> Iterator[str]:
    """`tidings up` with one broker until the block ends; then it is asked to stop and does so cleanly."""
    arguments = ["up", "--ephemeral", "--brokers", "1", "--kafka-port", "0", "--json"]
    log = folder / "stderr.txt"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [str(program), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = first_line(process.stdout, READY_SECONDS_MAX)
            ready = json.loads(line) if line else {}
            assert ready.get("event") == "ready", (line, log.read_text())
            yield ready["kafka"]
            process.terminate()
            assert process.wait(STOP_SECONDS_MAX) == 0, log.read_text()
        finally:
            process.kill()


def first_line(stream: IO[bytes], seconds_max: float) -> bytes:
    """The first line that a program prints; what has come of it when the time is up or the program ended."""
    line = b""
    deadline = time.monotonic() + seconds_max
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        piece = stream.read1() if readable else b""  # type: ignore[attr-defined]  # a pipe is a BufferedReader
        if not piece:
            break
        line += piece
    return line


def publish(bootstrap: str, topic: str, value: bytes) -> tuple[str, int]:
    """Topic and offset under which one message was taken, by a producer that asks for a majority's word."""
    taken: list[tuple[str, int]] = []
    failed: list[str] = []

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            failed.append(error.str())
        else:
            taken.append((str(message.topic()), message.offset() or 0))

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 15_000}
    )
    producer.produce(topic, value, on_delivery=delivered)
    left = producer.flush(READY_SECONDS_MAX)
    assert (left, failed) == (0, [])
    [only] = taken
    return only
