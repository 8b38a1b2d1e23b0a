"""Whole brokers on the test's own loop, with real files and sockets, for tests of what one broker does.

The one rule: every broker that was started is killed at the end. It must not know what a test expects.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tidings.config.options import Config
from tidings.runtime.data import DataFolder
from tidings.runtime.ports import find_free
from tidings.runtime.server import BrokerServer
from tidings.telemetry.events import open_log

HOST = "127.0.0.1"
SECRET = b"s" * 32


@dataclass(slots=True)
class Running:
    """A broker and what it has told."""

    server: BrokerServer
    stream: io.StringIO

    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def told(self, event: str, **facts: object) -> int:
        """How often it has told this event with these facts."""
        return sum(each["event"] == event and facts.items() <= each.items() for each in self.events())


class Servers:
    """Brokers in one folder each. Peer ports are free ones; broker i has the i-th of them."""

    def __init__(self, folder: Path, peer_ports: Sequence[int]) -> None:
        self.folder = folder
        self.made: list[Running] = []
        self._peer_ports = peer_ports

    def address(self, broker_id: int) -> str:
        return f"{HOST}:{self._peer_ports[broker_id - 1]}"

    def make(
        self,
        broker_id: int,
        *,
        seeds: Sequence[int] = (1,),
        folder: str = "",
        port_of: int = 0,
        replace: bool = False,
    ) -> Running:
        """A broker that is not started; by default with its own folder and peer port."""
        config = Config(
            broker_id=broker_id,
            data_folder=self.folder / (folder or f"broker-{broker_id}"),
            kafka_port=0,
            peer_port=self._peer_ports[(port_of or broker_id) - 1],
            join=tuple(map(self.address, seeds)),
            replace=replace,
            peer_reconnect_ms_max=50,
            log_events_per_second_max=1_000_000,
        )
        stream = io.StringIO()
        server = BrokerServer(config, DataFolder.take(config), SECRET, open_log(config, stream))
        self.made.append(Running(server, stream))
        return self.made[-1]

    async def start(self, *broker_ids: int) -> list[Running]:
        """A cluster of these."""
        made = [self.make(broker_id, seeds=broker_ids) for broker_id in broker_ids]
        await asyncio.gather(*(each.server.start() for each in made))
        return made


@asynccontextmanager
async def servers(folder: Path, *, count_max: int) -> AsyncIterator[Servers]:
    made = Servers(folder, find_free(HOST, count_max, Random()))
    try:
        yield made
    finally:
        await asyncio.gather(*(each.server.kill() for each in made.made))
