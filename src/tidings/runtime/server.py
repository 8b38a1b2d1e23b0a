"""Server: one broker in this process: its sockets, its threads, its clock, around a node.

Its one rule: inputs go to the node, then one turn hands out the work; while a flush is being written the next
one gathers. A failed write or sync ends the broker at once, with nothing answered that is not safe. It must
not know what requests or messages mean. Tests: tests/runtime/test_server.py
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from random import SystemRandom
from typing import Any, TypeVar, TypeVarTuple

from tidings.broker.requests import Request
from tidings.config.address import Address
from tidings.config.exits import Exit
from tidings.config.options import Config
from tidings.node.formation import Formation, Founding, Waiting
from tidings.node.handshake import FOUNDERS_BYTES_MAX, HELLO_BYTES_MAX, Hello
from tidings.node.messages import PeerMessageError
from tidings.node.node import Node
from tidings.node.registration import Registration, RegistrationRefused
from tidings.protocol.schema import Message
from tidings.runtime.clients import Clients
from tidings.runtime.clock import SteadyClock
from tidings.runtime.data import DataFolder, OpenedData
from tidings.runtime.network import PeerNetwork
from tidings.runtime.persistence import Persistence
from tidings.runtime.storage import StorageThreads
from tidings.telemetry.events import EventLog, Level

_TICK_MS_MIN = 20  # between two ticks: the alarms of a thousand groups are taken together
_CLOCK_CORRECTION_S = 1.0
# Leadership is given away in milliseconds; a peer that cannot take it is not waited for.
_HAND_OVER_S_MAX = 2.0

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class BrokerStopped(Exception):
    """The broker has to end; `code` says why to whoever started it."""

    def __init__(self, code: Exit, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class BrokerServer:
    """One broker. `start` returns when it serves; `stopped` is set when it must end by itself."""

    def __init__(self, config: Config, data: DataFolder, secret: bytes, log: EventLog) -> None:
        self.config = config
        self.log = log
        self.stopped: asyncio.Future[BrokerStopped] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._clock = SteadyClock()
        self._data = data
        self._clients = Clients(
            config=config, log=log, now_ms=self._clock.now_ms, handle=self._request, wake=self.wake
        )
        self._network = PeerNetwork(self, config=config, secret=secret)
        self._kafka = Address(config.kafka_host, config.kafka_port)
        self._peer = Address(config.peer_host, config.peer_port)
        self._formation: Formation | None = None
        self._formed: asyncio.Future[Founding] | None = None
        self._waiting_reason = ""
        self._in_thread: asyncio.Future[Any] | None = None  # any: what the folder is asked for
        self._node: Node | None = None
        self._storage: StorageThreads | None = None
        self._persistence: Persistence | None = None
        self._tick_timer: asyncio.TimerHandle | None = None
        self._tick_due_ms = 0
        self._clock_timer: asyncio.TimerHandle | None = None
        self._is_turn_due = False
        self._is_paused = False
        self._is_ended = False  # nothing goes on; what is held is released by `kill`
        self._release: asyncio.Task[None] | None = None

    # -- life

    async def start(self) -> None:
        """Find or form the cluster, recover, register, and serve. Raises BrokerStopped where that cannot
        be."""
        await self._listen()
        founding = self._data.founding or await self._find_cluster()
        opened = await self._beside_loop(self._data.open, self.config)
        self._report_recovery(opened)
        self._begin(founding, opened)
        await self._register(founding)
        await self._clients.serve()
        self.log.event("broker_serving", kafka=str(self.kafka_address), peer=str(self.peer_address))

    @property
    def kafka_address(self) -> Address:
        return self._kafka

    @property
    def peer_address(self) -> Address:
        return self._peer

    async def stop(self) -> None:
        """Hand leadership over, finish what is being written, and close everything."""
        if self._node is not None and not self._is_ended:
            await self._hand_over(self._node)
            await self._clients.close()
        await self.kill()

    async def kill(self) -> None:
        """Close everything at once, as if the process had ended: nothing more is answered, and nothing is
        written behind what the disk threads are at."""
        if self._release is None:
            self._end()
            self._release = self._loop.create_task(self._release_all())
        await asyncio.shield(self._release)

    def pause(self) -> None:
        """Read and send nothing, and let nothing come of what the disk threads finish, as a stopped process;
        the clock goes on."""
        self._is_paused = True
        self._clients.pause()
        self._network.pause()
        if self._persistence is not None:
            self._persistence.pause()

    def resume(self) -> None:
        self._is_paused = False
        if self._persistence is not None:
            self._persistence.resume()
        self._network.resume()
        self._clients.resume()
        self.wake()

    def _end(self) -> None:
        """Let nothing go on: no answer, no message, no write behind the one under way."""
        self._is_ended = True
        for timer in (self._tick_timer, self._clock_timer):
            if timer is not None:
                timer.cancel()
        if self._persistence is not None:
            self._persistence.close()
        self._clients.abort()
        self._network.abort()

    async def _release_all(self) -> None:
        await self._network.close()
        if self._in_thread is not None:
            await asyncio.wait({self._in_thread})
        if self._storage is not None:
            await self._loop.run_in_executor(None, self._storage.close)
        elif self._in_thread is not None and self._in_thread.exception() is None:
            result = self._in_thread.result()
            if isinstance(result, OpenedData):
                result.close()
        self._data.release()

    async def _listen(self) -> None:
        try:
            self._kafka = await self._clients.listen()
            self._peer = await self._network.listen()
        except OSError as error:
            raise BrokerStopped(Exit.PORT_IN_USE, f"cannot listen: {error}") from error
        if len(self.own_hello().encode()) > HELLO_BYTES_MAX - FOUNDERS_BYTES_MAX:
            raise BrokerStopped(Exit.CONFIG, "join, rack and addresses together are too long to tell a peer")

    async def _find_cluster(self) -> Founding:
        """Wait until a cluster can be formed, or is found."""
        self._formation = Formation(self.own_hello())
        self._formed = self._loop.create_future()
        self._network.dial(map(Address.parse, self.config.join or (str(self._peer),)))
        self._decide()
        founding = await self._unless_stopped(self._formed)
        self._formation = None
        await self._beside_loop(self._data.join, founding, self.config.join)
        self.log.event("cluster_joined", cluster=founding.cluster_id)
        return founding

    def _decide(self) -> None:
        if self._formation is None or self._formed is None or self._formed.done():
            return
        decision = self._formation.decide()
        if not isinstance(decision, Waiting):
            self._formed.set_result(decision)
        elif decision.reason != self._waiting_reason:
            self._waiting_reason = decision.reason
            self.log.event("waiting_for_cluster", reason=decision.reason)

    def _begin(self, founding: Founding, opened: OpenedData) -> None:
        now_ms = self.now_ms()
        identity = self._data.identity
        self._storage = StorageThreads(
            self._loop,
            name=f"broker-{identity.broker_id}",
            folder=self._data.folder,
            files=opened.files,
            wal=opened.wal,
            stores=opened.stores,
            metadata=opened.metadata,
        )
        self._node = Node(
            config=self.config,
            member=identity.member,
            founding=founding,
            recovered=opened.groups,
            random=SystemRandom(),
            now_ms=now_ms,
        )
        self._node.checkpoints.recovered(
            opened.oldest_files,
            min(opened.oldest_files.values(), default=opened.wal.current_file),
            opened.wal.current_file,
        )
        self._persistence = Persistence(self, self._node, self._storage)
        self._network.begin()
        self._network.dial(self._peer_addresses())
        self._tick()
        self._correct_clock()

    async def _register(self, founding: Founding) -> None:
        assert self._node is not None
        registered: asyncio.Future[RegistrationRefused | None] = self._loop.create_future()

        def done(refusal: RegistrationRefused | None) -> None:
            if not registered.done():
                registered.set_result(refusal)
            elif refusal is not None:
                self.fail(Exit.IDENTITY, str(refusal))

        Registration(self._node, self.config, self.own_hello(), done).begin(self.now_ms())
        self.wake()
        refusal = await self._unless_stopped(registered)
        if refusal is not None:
            raise BrokerStopped(Exit.IDENTITY, str(refusal))

    async def _beside_loop(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """A call of the folder's. Who gives up the start does not end it; `kill` waits for it."""
        self._in_thread = self._loop.run_in_executor(None, function, *arguments)
        return await asyncio.shield(self._in_thread)

    async def _unless_stopped(self, future: asyncio.Future[T]) -> T:
        waiting: set[asyncio.Future[Any]] = {future, self.stopped}  # any: two kinds of result
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self.stopped.done():
            raise self.stopped.result()
        return future.result()

    async def _hand_over(self, node: Node) -> None:
        deadline = self._loop.time() + _HAND_OVER_S_MAX
        while self._loop.time() < deadline and not self._is_ended:
            held = node.replicas.hand_over(self.now_ms())
            self.wake()
            if not held:
                return
            await asyncio.sleep(0.02)

    def _report_recovery(self, opened: OpenedData) -> None:
        if opened.torn is not None:
            self.log.event("log_tail_cut", reason=opened.torn)
        if opened.damage is not None:
            self.log.event("log_damaged", reason=opened.damage)
        for group, reason in opened.damaged_groups.items():
            self.log.warning("replica_damaged", group=group, reason=reason)

    # -- turns

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def wake(self) -> None:
        """Have a turn soon: once, however many inputs come before it."""
        if not self._is_turn_due and not self._is_ended:
            self._is_turn_due = True
            self._loop.call_soon(self.turn)

    def turn(self) -> None:
        self._is_turn_due = False
        node, persistence = self._node, self._persistence
        if node is None or persistence is None or self._is_ended or self._is_paused:
            return
        turn = node.turn(self.now_ms(), may_flush=not persistence.is_flushing)
        self._network.send(turn.frames)
        persistence.take(turn)
        for name, facts in turn.events:
            self.log.event(name, level=Level.INFO, **facts)
        self._clients.write_output()
        self._arm_tick(node)

    def _tick(self) -> None:
        if self._tick_timer is not None:
            self._tick_timer.cancel()
            self._tick_timer = None
        if self._is_ended or self._node is None:
            return
        if not self._is_paused:
            self._node.tick(self.now_ms())
            self.turn()
        if self._tick_timer is None:
            self._arm_tick(self._node)

    def _arm_tick(self, node: Node) -> None:
        """Have the next tick when the node needs it: an idle broker sleeps."""
        now_ms = self.now_ms()
        due_ms = max(node.next_tick_ms(now_ms), now_ms + _TICK_MS_MIN)
        if self._tick_timer is not None:
            if due_ms >= self._tick_due_ms:
                return
            self._tick_timer.cancel()
        self._tick_due_ms = due_ms
        self._tick_timer = self._loop.call_later((due_ms - now_ms) / 1000, self._tick)

    def _correct_clock(self) -> None:
        if self._is_ended:
            return
        self._clock_timer = self._loop.call_later(_CLOCK_CORRECTION_S, self._correct_clock)
        if not self._is_paused:
            self._clock.correct()
            self._network.dial(self._peer_addresses())

    def _peer_addresses(self) -> list[Address]:
        assert self._node is not None
        rows = self._node.broker.cluster.brokers.values()
        registered = [Address(row.peer_host, row.peer_port) for row in rows]
        return [*map(Address.parse, self.config.join), *registered]

    # -- trouble

    def fail(self, code: Exit, reason: str) -> None:
        """End at once: connections are dropped, so that nothing further is answered."""
        if not self.stopped.done():
            self.log.error("broker_failed", reason=reason)
            self._end()
            self.stopped.set_result(BrokerStopped(code, reason))

    def failed(self, context: dict[str, Any]) -> None:  # any: what asyncio tells of an unhandled exception
        """A mistake of ours surfaced in a callback: the state is in doubt, so the broker ends."""
        error = context.get("exception")
        if error is not None:
            traceback.print_exception(error)
        self.fail(Exit.FAILED, f"{context.get('message', 'a mistake of ours')}: {error!r}")

    # -- clients

    def _request(self, request: Request) -> Message | None:
        assert self._node is not None
        self.wake()
        return self._node.request(request, self.now_ms())

    # -- peers

    def own_hello(self) -> Hello:
        identity = self._data.identity
        founding = self._data.founding
        advertised = self.config.advertise or str(self._kafka)
        return Hello(
            cluster_id=identity.cluster_id,
            broker_id=identity.broker_id,
            directory=identity.directory_uuid,
            seeds=tuple(sorted(self.config.join)) or (str(self._peer),),
            peer=str(self._peer),
            kafka=advertised,
            rack=self.config.rack,
            founders=tuple(founding.members.items()) if founding is not None else (),
        )

    def peer_seen(self, hello: Hello) -> None:
        if self._formation is not None:
            self._formation.seen(hello)
            self._decide()

    def peer_up(self, hello: Hello) -> None:
        if self._node is not None:
            self.log.event("peer_up", peer=hello.broker_id)
            self._node.peer_up(hello.member, hello.broker_id, self.now_ms())
            self.wake()

    def peer_down(self, hello: Hello, *, refused: bool) -> None:
        if self._node is not None and not self._is_ended:
            if not refused:
                self.log.event("peer_down", peer=hello.broker_id)
            self._node.peer_down(hello.member, self.now_ms(), refused=refused)
            self._tick()  # an election need not wait

    def peer_frame(self, hello: Hello, frame: bytes) -> None:
        assert self._node is not None, hello  # the network begins with the node
        self.wake()
        try:
            self._node.receive(hello.member, frame, self.now_ms())
        except PeerMessageError as error:
            self.log.event("peer_malformed", peer=hello.broker_id, reason=str(error))
            self._network.drop(hello)

    def peer_refused(self, address: str, reason: str) -> None:
        self.log.event("peer_refused", address=address, reason=reason)

    def peer_paused(self, hello: Hello, *, paused: bool) -> None:
        if self._node is not None:
            self._node.pause_sending(hello.member, paused=paused)
