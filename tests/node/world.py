"""A world of one to five brokers without I/O: virtual time, links that deliver or do not, crashes, restarts.

Everything happens in the order of its time, then of its planning, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.timers import START_MS
from tests.node.machine import Machine
from tidings.config.options import Config
from tidings.node.formation import Founding
from tidings.sim.clock import MS, Agenda

LINK_MS = 1
NOTICE_MS = 1  # until a peer notices that a connection is there, or is gone
STEP_MS = 5
FIRST_MEMBER = 101
CHECKPOINT_MS = 3_000  # so that a test need not let a minute pass


class World:
    """Brokers 1 to `broker_count` have formed a cluster; `options` are those of Config."""

    def __init__(self, *, broker_count: int = 3, **options: Any) -> None:  # any: each option has its own type
        self.machines: dict[int, Machine] = {}
        self.severed: set[frozenset[int]] = set()  # pairs of broker ids that do not hear each other
        self.loses: Callable[[Machine, Machine, bytes], bool] = _nothing  # (sender, receiver, frame)
        self.strays: list[tuple[int, bytes]] = []  # (member, frame) for members that do not run
        self._agenda = Agenda()
        self._agenda.run_until(START_MS * MS)
        self._options = {"checkpoint_interval_ms": CHECKPOINT_MS, **options}
        self._made_count = 0
        founders = {broker_id: FIRST_MEMBER + broker_id - 1 for broker_id in range(1, broker_count + 1)}
        self.founding = Founding(cluster_id="cluster-of-the-tests", members=founders)
        for broker_id in founders:
            self.add(broker_id)
        for broker_id in founders:
            self.start(broker_id)

    # -- time

    @property
    def now_ms(self) -> int:
        return self._agenda.now_us // MS

    def after(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._agenda.after(delay_ms * MS, lambda _: call())

    def run(self, for_ms: int) -> None:
        self._agenda.run_until(self._agenda.now_us + for_ms * MS)

    def run_until(self, is_so: Callable[[], bool], *, within_ms: int = 20_000) -> None:
        """Let time go on until something is so; fails where that takes too long."""
        deadline_ms = self.now_ms + within_ms
        while not is_so():
            assert self.now_ms < deadline_ms, f"not so within {within_ms} ms"
            self.run(STEP_MS)

    # -- machines

    def __getitem__(self, broker_id: int) -> Machine:
        return self.machines[broker_id]

    @property
    def running(self) -> list[Machine]:
        return [machine for machine in self.machines.values() if machine.is_running]

    def add(self, broker_id: int, **options: Any) -> Machine:  # any: each option has its own type
        """A machine with a blank disk; it takes the place of one of the same broker id."""
        member = FIRST_MEMBER + self._made_count
        self._made_count += 1
        config = Config(broker_id=broker_id, **{**self._options, **options})
        machine = Machine(self, config=config, member=member, seed=member)
        self.machines[broker_id] = machine
        return machine

    def start(self, broker_id: int, *, is_torn: bool = False) -> Machine:
        machine = self.machines[broker_id]
        machine.start(is_torn=is_torn)
        for other in self.running:
            if other is not machine and not self._is_severed(machine, other):
                self._connect(machine, other)
        return machine

    def crash(self, broker_id: int, *, keeps_flush: bool = False) -> Machine:
        """The process is killed; its peers notice that nobody answers there any more."""
        machine = self.machines[broker_id]
        machine.crash(keeps_flush=keeps_flush)
        for other in self.running:
            self.after(NOTICE_MS, lambda other=other: other.peer_down(machine, refused=True))  # type: ignore[misc]  # a lambda's default has no type
        return machine

    def restart(self, broker_id: int, *, is_torn: bool = False) -> Machine:
        self.crash(broker_id)
        self.run(2 * NOTICE_MS)
        return self.start(broker_id, is_torn=is_torn)

    def wipe(self, broker_id: int, **options: Any) -> Machine:  # any: each option has its own type
        """The broker's disk is gone: the same broker id with a blank one, not started yet."""
        if self.machines[broker_id].is_running:
            self.crash(broker_id)
        return self.add(broker_id, **options)

    # -- links

    def sever(self, one: int, other: int) -> None:
        """Nothing gets through between two brokers, and their connections end after a while unnoticed."""
        self.severed.add(frozenset((one, other)))

    def isolate(self, broker_id: int) -> None:
        for other in self.machines:
            if other != broker_id:
                self.sever(broker_id, other)

    def heal(self) -> None:
        """All links work; connections that were severed are new ones."""
        severed, self.severed = self.severed, set()
        for pair in sorted(map(sorted, severed)):
            one, other = (self.machines[broker_id] for broker_id in pair)
            if one.is_running and other.is_running:
                self._connect(one, other)

    def send(self, sender: Machine, member: int, frame: bytes) -> None:
        receiver = next((machine for machine in self.running if machine.member == member), None)
        if receiver is None:
            self.strays.append((member, frame))
            return
        if self._is_severed(sender, receiver) or self.loses(sender, receiver, frame):
            return
        self.after(LINK_MS, lambda: receiver.receive(sender.member, frame))

    def _connect(self, one: Machine, other: Machine) -> None:
        self.after(NOTICE_MS, lambda: one.peer_up(other))
        self.after(NOTICE_MS, lambda: other.peer_up(one))

    def _is_severed(self, one: Machine, other: Machine) -> bool:
        return frozenset((one.broker_id, other.broker_id)) in self.severed

    # -- what is so

    def is_serving(self) -> bool:
        """All running brokers are registered and agree on a leader of the metadata."""
        return all(machine.is_registered for machine in self.running)

    def leader_of(self, group: int) -> Machine | None:
        """The running broker that leads the group in the newest term."""
        leading = [
            machine
            for machine in self.running
            if group in machine.node.host.groups and machine.node.host.groups[group].is_leader
        ]
        return max(leading, key=lambda machine: machine.node.host.groups[group].term, default=None)

    def is_led(self, group: int) -> bool:
        """Whether a leader of the group has committed an entry of its term."""
        leader = self.leader_of(group)
        return leader is not None and leader.node.host.groups[group].term_start_committed

    def lead(self, group: int) -> Machine:
        """Wait for a leader that can serve, and return it."""
        self.run_until(lambda: self.is_led(group))
        leader = self.leader_of(group)
        assert leader is not None
        return leader

    def is_even(self, group: int) -> bool:
        """Whether all running replicas of the group have applied the same log, and all of it."""
        leader = self.leader_of(group)
        if leader is None:
            return False
        placed = leader.node.broker.cluster.partitions[group].replicas
        holders = [machine for machine in self.running if machine.broker_id in placed]
        if any(group not in machine.node.replicas.by_group for machine in holders):
            return False
        replicas = [machine.replica(group) for machine in holders]
        ends = {(replica.group.last_index, replica.applied_index, replica.end_offset) for replica in replicas}
        return len(ends) == 1 and all(
            replica.applied_index == replica.group.last_index for replica in replicas
        )


def _nothing(sender: Machine, receiver: Machine, frame: bytes) -> bool:
    return False
