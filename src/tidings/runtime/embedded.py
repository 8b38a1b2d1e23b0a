"""Embedded: one broker in a process that is not its own, beside others on the same event loop.

Its one rule: what a broker's process would do by ending is done here by hand: when it fails or is killed,
nothing of it is left but its folder. It must not know who embeds it. Tests: tests/runtime/test_embedded.py
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TextIO

from tidings.config.options import Config
from tidings.runtime.data import DataFolder
from tidings.runtime.process import exit_of
from tidings.runtime.server import BrokerServer, BrokerStopped
from tidings.storage.errors import StorageError
from tidings.telemetry.events import open_log


class EmbeddedBroker:
    """A broker that can be started, killed and started again. Used on the loop's thread only."""

    def __init__(self, config: Config, *, secret: bytes, events: TextIO) -> None:
        self.config = config
        self.failure: BrokerStopped | None = None  # why it ended by itself, if it did
        self._secret = secret
        self._log = open_log(config, events).bind(broker=config.broker_id)
        self._server: BrokerServer | None = None

    async def start(self) -> None:
        """Returns when it serves. Raises BrokerStopped, and then nothing of it runs."""
        assert self._server is None, self.config.broker_id
        self.failure = None
        try:
            data = await self._take_folder()
            server = self._server = BrokerServer(self.config, data, self._secret, self._log)
            server.stopped.add_done_callback(self._ended)
            await server.start()
        except (StorageError, OSError) as error:
            await self.kill()
            raise BrokerStopped(exit_of(error), str(error)) from error
        except BaseException:  # a start that was given up, or a mistake: nothing stays; raised again
            await self.kill()
            raise

    async def kill(self) -> None:
        """End it as a killed process ends: nothing more is answered, sent or begun to be written."""
        server, self._server = self._server, None
        if server is not None:
            await server.kill()

    def pause(self) -> None:
        if self._server is not None:
            self._server.pause()

    def resume(self) -> None:
        if self._server is not None:
            self._server.resume()

    def failed(self, context: dict[str, Any]) -> None:  # any: what asyncio tells of an unhandled exception
        """A mistake surfaced on the loop, and it cannot be told whose."""
        if self._server is not None:
            self._server.failed(context)

    async def _take_folder(self) -> DataFolder:
        """Whoever gives up meanwhile does not leave it locked."""
        taking = asyncio.get_running_loop().run_in_executor(None, DataFolder.take, self.config)
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(StorageError, OSError):
                (await taking).release()
            raise

    def _ended(self, stopped: asyncio.Future[BrokerStopped]) -> None:
        """It ended by itself, with its connections closed. What else it holds goes with `kill`."""
        if not stopped.cancelled():
            self.failure = stopped.result()
