"""A machine of the tests' world: one node, its disk, and the threads that work for it, on virtual time.

It does with a turn what the runtime does: frames go out, a flush is made durable (one at a time), jobs of the
storage thread are done in order, reads are answered, and each outcome is an input that brings the next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Protocol

from tests.fakes.node_disk import FakeDamage, FakeDisk
from tests.fakes.node_log import FakePlace
from tests.fakes.world import Asked
from tidings.config.options import Config
from tidings.node.formation import Founding
from tidings.node.handshake import Hello
from tidings.node.jobs import ReadJob, RemoveGroup, StorageJob
from tidings.node.node import Node
from tidings.node.registration import Registration, RegistrationRefused
from tidings.node.replica import Replica
from tidings.protocol.apis import ApiKey
from tidings.protocol.schema import Message
from tidings.raft.outbox import Flush

FLUSH_MS = 1
JOB_MS = 1
READ_MS = 1
TICK_MS_MIN = 20  # between two ticks
NEVER_MS = 1 << 62


class Surroundings(Protocol):
    """What a machine asks of the world."""

    founding: Founding

    @property
    def now_ms(self) -> int: ...
    def after(self, delay_ms: int, call: Callable[[], None]) -> None: ...
    def send(self, sender: Machine, member: int, frame: bytes) -> None: ...


class Machine:
    """One broker. `node` is None while its process is not running."""

    def __init__(self, world: Surroundings, *, config: Config, member: int, seed: int) -> None:
        self.config = config
        self.member = member
        self.disk = FakeDisk()
        self.holds_flushes = False  # what is to be flushed stays under way
        self.holds_jobs = False  # what the storage thread is to do waits
        self.holds_reads = False
        self.refusal: RegistrationRefused | None = None
        self.is_registered = False
        self.flushes: list[Flush] = []  # all that became durable in this life
        self.events: list[str] = []
        self._world = world
        self._random = Random(seed)
        self._node: Node | None = None
        self.life = 0  # what was under way in an earlier one calls nobody back
        self._flushing: Flush | None = None
        self._jobs: deque[StorageJob] = deque()
        self._reads: deque[tuple[ReadJob, Callable[[Any], None]]] = deque()  # any: the job's result
        self._is_working = False
        self._is_turn_due = False
        self._tick_due_ms = NEVER_MS

    @property
    def broker_id(self) -> int:
        return self.config.broker_id

    @property
    def is_running(self) -> bool:
        return self._node is not None

    @property
    def node(self) -> Node:
        assert self._node is not None, self.broker_id
        return self._node

    def replica(self, group: int) -> Replica:
        return self.node.replicas.by_group[group]

    def hello(self) -> Hello:
        return Hello(
            cluster_id=self._world.founding.cluster_id,
            broker_id=self.broker_id,
            directory=f"{self.member:016x}".ljust(32, "0"),
            seeds=(),
            peer=f"host{self.broker_id}:19092",
            kafka=f"host{self.broker_id}:9092",
        )

    # -- life

    def start(self, *, is_torn: bool = False) -> None:
        """A process begins with what is on the disk, and registers."""
        assert self._node is None, self.broker_id
        now_ms = self._world.now_ms
        recovered = self.disk.start(is_torn=is_torn)
        self._node = node = Node(
            config=self.config,
            member=self.member,
            founding=self._world.founding,
            recovered=recovered,
            random=self._random,
            now_ms=now_ms,
        )
        log = self.disk.log
        node.checkpoints.recovered(self.disk.oldest_files(), log.oldest_file, log.newest_file)
        self.is_registered = False
        self.refusal = None
        self.flushes = []
        self.events = []
        Registration(node, self.config, self.hello(), self._registered).begin(now_ms)
        self.wake()

    def crash(self, *, keeps_flush: bool = False) -> None:
        """The process is killed. `keeps_flush`: what was being written is on the disk, but nobody heard."""
        if keeps_flush and self._flushing is not None:
            self.disk.log.write(self._flushing)
        self.life += 1
        self._node = None
        self._flushing = None
        self._jobs.clear()
        self._reads.clear()
        self._is_working = self._is_turn_due = False
        self._tick_due_ms = NEVER_MS
        self.holds_flushes = self.holds_jobs = self.holds_reads = False

    # -- inputs

    def request(self, api_key: ApiKey, api_version: int, body: Message) -> Asked:
        """Hand a request in; its answer comes when it comes."""
        asked = Asked(api_key, api_version, body)
        answer = self.node.request(asked.request, self._world.now_ms)
        if answer is not None:
            asked.answers.append(answer)
        self.wake()
        return asked

    def receive(self, member: int, frame: bytes) -> None:
        if self._node is not None:
            self._node.receive(member, frame, self._world.now_ms)
            self.wake()

    def peer_up(self, peer: Machine) -> None:
        if self._node is not None:
            self._node.peer_up(peer.member, peer.broker_id, self._world.now_ms)
            self.wake()

    def peer_down(self, peer: Machine, *, refused: bool) -> None:
        if self._node is not None:
            self._node.peer_down(peer.member, self._world.now_ms, refused=refused)
            self.wake()

    def damage(self, group: int) -> None:
        """Synced bytes of the group turn out to be wrong."""
        self.disk.damage_marks.add(group)
        self.node.damaged(group, self._world.now_ms)
        self.wake()

    def release(self) -> None:
        """Whatever was held goes on."""
        if self.holds_flushes:
            self.release_flushes()
        self.release_jobs()
        self.release_reads()

    def release_flushes(self) -> None:
        self.holds_flushes = False
        if self._flushing is not None:
            self._after(FLUSH_MS, partial(self._flushed, self._flushing))

    def release_jobs(self) -> None:
        self.holds_jobs = False
        self._work()

    def release_reads(self) -> None:
        self.holds_reads = False
        while self._reads:
            self._after(READ_MS, partial(self._was_read, *self._reads.popleft()))

    # -- turns

    def wake(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._after(0, self.turn)

    def turn(self) -> None:
        self._is_turn_due = False
        turn = self.node.turn(self._world.now_ms, may_flush=self._flushing is None)
        for member, buffers in turn.frames:
            self._world.send(self, member, b"".join(buffers))
        self.disk.damage_marks.update(group for group, _ in turn.damaged)
        if turn.flush is not None:
            self._flushing = turn.flush
            if not self.holds_flushes:
                self._after(FLUSH_MS, partial(self._flushed, turn.flush))
        for group in turn.settled:
            self.disk.settle(group)
        for job in turn.storage_jobs:
            if isinstance(job, RemoveGroup):
                self.disk.log.forget(job.group, is_writing=self._flushing is not None)
            self._jobs.append(job)
        self._work()
        self._reads.extend(turn.reads)
        if not self.holds_reads:
            self.release_reads()
        if turn.cut_below_file is not None:
            self.disk.log.cut(turn.cut_below_file)
            assert not self.disk.problems(), self.disk.problems()
        self.events += [name for name, _ in turn.events]
        self._arm_tick()

    def _arm_tick(self) -> None:
        """Have the next tick when the node needs it."""
        now_ms = self._world.now_ms
        due_ms = max(self.node.next_tick_ms(now_ms), now_ms + TICK_MS_MIN)
        if due_ms < self._tick_due_ms:
            self._tick_due_ms = due_ms
            self._after(due_ms - now_ms, partial(self._tick, due_ms))

    def _tick(self, due_ms: int) -> None:
        if due_ms == self._tick_due_ms:
            self._tick_due_ms = NEVER_MS
            self.node.tick(self._world.now_ms)
            self.turn()

    def _flushed(self, flush: Flush) -> None:
        if flush is not self._flushing or self.holds_flushes:
            return
        self._flushing = None
        place: FakePlace = self.disk.log.write(flush)
        self.flushes.append(flush)
        self.node.flushed(flush, place, self._world.now_ms)
        self.wake()

    def _work(self) -> None:
        """The storage thread takes the next job."""
        if self._jobs and not self._is_working and not self.holds_jobs:
            self._is_working = True
            self._after(JOB_MS, self._do)

    def _do(self) -> None:
        self._is_working = False
        job = self._jobs.popleft()
        try:
            result = self.disk.do(job)
        except FakeDamage:
            self.damage(job.group)
        else:
            self.node.stored(job, result, self._world.now_ms)
            self.wake()
        self._work()

    def _was_read(self, job: ReadJob, then: Callable[[Any], None]) -> None:  # any: the job's result
        try:
            result = self.disk.read(job)
        except FakeDamage as damage:
            self.damage(damage.args[0])
            result = None
        then(result)
        self.wake()

    def _registered(self, refusal: RegistrationRefused | None) -> None:
        self.refusal = refusal
        self.is_registered = refusal is None

    def _after(self, delay_ms: int, call: Callable[[], None]) -> None:
        life = self.life

        def run() -> None:
            if life == self.life:
                call()

        self._world.after(delay_ms, run)


def entries_of(flushes: Sequence[Flush], group: int) -> list[int]:
    """The indexes that the flushes hold of a group, in order."""
    return [entry.index for flush in flushes for owner, entry in flush.entries if owner == group]
