"""Workload: producers that retry until they are answered, readers that must not read the past, and retention.

Its one rule: a producer never gives a batch another number, and never sends a new batch under an old one;
what was acknowledged is written down for good. Requests and answers may be lost, and reach machines that
are cut off from others. It must not know which faults happen. Tests: tests/sim/test_workload.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidings.raft.outbox import ReadConfirmed
from tidings.sim.clock import MS
from tidings.sim.invariants import Violation
from tidings.sim.machine import Machine
from tidings.sim.replica import Answer, BatchId
from tidings.sim.world import World

_TRIP_US_MAX = 1_500
_LOST_SHARE = 0.02
_RECORDS_MAX = 4
_FINAL_INTERVAL_MS = 40
_READ_INTERVAL_MS = 150


LeaderAction = Callable[[tuple[Machine, int]], None]


class _Batch:
    """A batch that is not acknowledged yet."""

    __slots__ = ("id", "padding_bytes", "record_count", "sent_us")

    def __init__(self, batch: BatchId, padding_bytes: int, record_count: int) -> None:
        self.id = batch
        self.padding_bytes = padding_bytes
        self.record_count = record_count
        self.sent_us: int | None = None  # None: to be sent (again) at the next occasion


@dataclass(frozen=True, slots=True)
class _Request:
    producer: Producer
    batch: _Batch
    machine: Machine


class Producer:
    """Sends numbered batches to one group, some at a time."""

    def __init__(self, number: int, group: int, target: int) -> None:
        self.number = number
        self.group = group
        self.target = target  # the member that it believes to lead
        self.unacked: dict[int, _Batch] = {}
        self.next_sequence = 0


class Workload:
    """All clients of a world."""

    def __init__(self, world: World) -> None:
        self.acked: dict[int, dict[BatchId, int]] = {group: {} for group in world.groups}  # batch -> index
        self._world = world
        self._random = world.random
        self._knobs = world.knobs.workload
        self._is_ending = False
        self._producers: list[Producer] = []
        self._highest_seen: dict[int, int] = {
            group: 0 for group in world.groups
        }  # index a client knows committed
        self._reads: dict[int, int] = {}  # context -> what was known committed when it was asked
        self._next_read = 1
        world.on_read_confirmed = self._read_confirmed

    def begin(self) -> None:
        for group in self._world.groups:
            for _ in range(self._knobs.producers_per_group):
                self._add_producer(group)
            self._every(self._world.knobs.replica.log_start_interval_ms, self._move_log_start, group)
            self._every(_READ_INTERVAL_MS if self._knobs.reads else 0, self._read, group)

    def end(self) -> None:
        """No more new batches but one, from a new producer per group; the old ones go on until all is
        acknowledged."""
        self._is_ending = True
        for group in self._world.groups:
            producer = self._add_producer(group)
            self._make_batch(producer)

    @property
    def is_done(self) -> bool:
        return not any(producer.unacked for producer in self._producers)

    @property
    def unanswered(self) -> list[BatchId]:
        return [batch.id for producer in self._producers for batch in producer.unacked.values()]

    # -- producing

    def _add_producer(self, group: int) -> Producer:
        target = self._random.choice(self._world.knobs.voters_by_group[group])
        producer = Producer(len(self._producers) + 1, group, target)
        self._producers.append(producer)
        self._world.agenda.after(int(self._random.random() * self._interval_us), self._produce, producer)
        return producer

    @property
    def _interval_us(self) -> int:
        return (_FINAL_INTERVAL_MS if self._is_ending else self._knobs.interval_ms) * MS

    def _produce(self, producer: Producer) -> None:
        if not self._is_ending and len(producer.unacked) < self._knobs.window:
            self._make_batch(producer)
        now_us = self._world.agenda.now_us
        overdue_us = now_us - self._knobs.timeout_ms * MS
        unacked = producer.unacked.values()
        if any(batch.sent_us is not None and batch.sent_us < overdue_us for batch in unacked):
            producer.target = self._random.choice(list(self._world.machines))
            for batch in unacked:
                batch.sent_us = None
        for batch in unacked:
            if batch.sent_us is None:
                batch.sent_us = now_us
                self._send(producer, batch)
        delay_us = int(self._interval_us * (0.5 + self._random.random()))
        self._world.agenda.after(delay_us, self._produce, producer)

    def _make_batch(self, producer: Producer) -> None:
        sequence = producer.next_sequence
        producer.next_sequence += 1
        padding_bytes = int(self._random.random() * self._knobs.payload_bytes_max)
        record_count = 1 + int(self._random.random() * _RECORDS_MAX)
        producer.unacked[sequence] = _Batch(BatchId(producer.number, sequence), padding_bytes, record_count)

    def _is_lost(self) -> bool:
        calm = self._world.is_healed or self._world.knobs.is_calm
        return not calm and self._random.random() < _LOST_SHARE

    def _send(self, producer: Producer, batch: _Batch) -> None:
        machine = self._world.machines[producer.target]
        if not self._is_lost():
            trip_us = int(self._random.random() * _TRIP_US_MAX)
            request = _Request(producer, batch, machine)
            self._world.agenda.after(trip_us, self._arrive, request)

    def _arrive(self, request: _Request) -> None:
        request.machine.do(self._append, request)

    def _append(self, request: _Request) -> None:
        machine, batch, producer = request.machine, request.batch, request.producer
        replica = machine.replicas.get(producer.group)
        if replica is None:
            self._answer(request, Answer.NOT_LEADER)
            return
        replica.append(
            batch.id,
            batch.padding_bytes,
            batch.record_count,
            machine.clock.now_ms,
            lambda answer: self._answer(request, answer),
        )

    def _answer(self, request: _Request, answer: Answer) -> None:
        """The machine answers: what it acknowledges must be committed at this moment."""
        group = request.producer.group
        if answer is Answer.ACKED:
            index = self._world.invariants.committed[group].index_by_batch.get(request.batch.id)
            if index is None:
                raise Violation(
                    f"member {request.machine.member} acknowledged {request.batch.id}: not committed"
                )
            self.acked[group].setdefault(request.batch.id, index)
            self._highest_seen[group] = max(self._highest_seen[group], index)
        if not self._is_lost():
            trip_us = int(self._random.random() * _TRIP_US_MAX)
            self._world.agenda.after(trip_us, self._answered, (request, answer))

    def _answered(self, answered: tuple[_Request, Answer]) -> None:
        request, answer = answered
        producer = request.producer
        if answer is Answer.ACKED:
            producer.unacked.pop(request.batch.id.sequence, None)
            return
        if answer is Answer.NOT_LEADER:
            producer.target = self._leader_hint(request.machine, producer.group)
        for batch in producer.unacked.values():
            batch.sent_us = None

    def _leader_hint(self, machine: Machine, group: int) -> int:
        """The newest leader that the machine has heard of, or anybody."""
        known = machine.host.leader_table.get(group, (0, 0))[0] if machine.host is not None else 0
        if known in self._world.machines and known != machine.member:
            return known
        return self._random.choice(list(self._world.machines))

    # -- reading and retention, at whoever believes to lead

    def _every(self, interval_ms: int, action: LeaderAction, group: int) -> None:
        if interval_ms:
            self._world.agenda.after(interval_ms * MS, self._again, (interval_ms, action, group))

    def _again(self, planned: tuple[int, LeaderAction, int]) -> None:
        interval_ms, action, group = planned
        if self._is_ending:
            return
        self._every(interval_ms, action, group)
        leaders = [machine for machine in self._world.machines.values() if _leads(machine, group)]
        if leaders:
            leader = self._random.choice(leaders)
            leader.do(action, (leader, group))

    def _move_log_start(self, asked: tuple[Machine, int]) -> None:
        machine, group = asked
        machine.replicas[group].move_log_start(machine.clock.now_ms)

    def _read(self, asked: tuple[Machine, int]) -> None:
        machine, group = asked
        context = self._next_read
        self._next_read += 1
        self._reads[context] = self._highest_seen[group]
        machine.replicas[group].group.read_index(context, machine.clock.now_ms)

    def _read_confirmed(self, machine: Machine, read: ReadConfirmed) -> None:
        """A read sees at least what any client knew to be committed when it was asked."""
        floor = self._reads.pop(read.context)
        if read.index is None:
            return
        if read.index < floor:
            raise Violation(
                f"member {machine.member} group {read.group}: read up to entry {read.index}, "
                f"entry {floor} was acknowledged before"
            )
        self._highest_seen[read.group] = max(self._highest_seen[read.group], read.index)


def _leads(machine: Machine, group: int) -> bool:
    replica = machine.replicas.get(group)
    return replica is not None and replica.group.is_leader
