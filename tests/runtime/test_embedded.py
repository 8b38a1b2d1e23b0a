"""A broker on somebody else's loop: it starts, fails, is killed, and nothing of it is left but its folder."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.runtime.loops import run
from tidings.config.exits import Exit
from tidings.config.options import Config
from tidings.runtime.embedded import EmbeddedBroker
from tidings.runtime.server import BrokerStopped

DISK_THREADS = 3


@asynccontextmanager
async def embedded(
    folder: Path, events: io.StringIO | None = None, *, kafka_port: int = 0
) -> AsyncIterator[EmbeddedBroker]:
    """A broker that is not started, and killed at the end."""
    config = Config(data_folder=folder, kafka_port=kafka_port, peer_port=0)
    broker = EmbeddedBroker(config, secret=b"s" * 32, events=events or io.StringIO())
    try:
        yield broker
    finally:
        await broker.kill()


def test_it_starts_and_starts_again_after_it_was_killed(tmp_path: Path) -> None:
    async def work() -> None:
        events = io.StringIO()
        async with embedded(tmp_path, events) as broker:
            await broker.start()
            await broker.kill()
            await broker.start()

        assert events.getvalue().count("broker_serving") == 2
        assert events.getvalue().count("cluster_joined") == 1

    run(work())


def test_a_kill_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    async def work() -> None:
        async with embedded(tmp_path) as broker:
            await broker.start()  # the loop's own threads and files come with the first
            await broker.kill()
            before = (threading.active_count(), psutil.Process().num_fds())
            await broker.start()
            assert threading.active_count() >= before[0] + DISK_THREADS

            await broker.kill()
            await broker.kill()

            assert (threading.active_count(), psutil.Process().num_fds()) == before

    run(work())


def test_a_kill_in_the_middle_of_the_start_leaves_nothing_either(tmp_path: Path) -> None:
    async def work() -> None:
        async with embedded(tmp_path) as broker:
            await broker.start()
            await broker.kill()
            files = psutil.Process().num_fds()
            starting = asyncio.create_task(broker.start())
            for _ in range(3):
                await asyncio.sleep(0)

            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting

            assert psutil.Process().num_fds() == files
            await broker.start()

    run(work())


def test_what_kept_it_from_starting_is_told_with_the_code_of_a_process(tmp_path: Path) -> None:
    async def work() -> None:
        async with embedded(tmp_path) as first, embedded(tmp_path) as second:
            await first.start()
            with pytest.raises(BrokerStopped, match="is in use by process") as locked:
                await second.start()
        assert locked.value.code is Exit.FOLDER_LOCKED

        with socket.create_server(("127.0.0.1", 0)) as taken:
            async with embedded(tmp_path, kafka_port=taken.getsockname()[1]) as third:
                with pytest.raises(BrokerStopped, match="cannot listen") as in_use:
                    await third.start()
        assert in_use.value.code is Exit.PORT_IN_USE

    run(work())


def test_one_that_fails_by_itself_says_why_and_can_be_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        async with embedded(tmp_path) as broker:
            await broker.start()

            broker.failed({"message": "a callback raised", "exception": ZeroDivisionError("no")})
            await broker.kill()

            assert broker.failure is not None
            assert broker.failure.code is Exit.FAILED
            assert "a callback raised" in broker.failure.reason
            await broker.start()
            assert broker.failure is None

    run(work())
    assert "ZeroDivisionError: no" in capsys.readouterr().err


def test_what_does_not_run_cannot_be_paused_and_does_not_mind(tmp_path: Path) -> None:
    async def work() -> None:
        async with embedded(tmp_path) as broker:
            broker.pause()
            broker.resume()
            broker.failed({})

    run(work())
