"""A machine: one RaftHost, unchanged, between a virtual clock, network and disk.

Its one rule: the order of a turn is the product's: an input, all sends built, messages out, what must be
durable to disk; what waits for that leaves when the fsync is done. It must not know other machines, nor
what is checked. Tests: tests/sim/test_machine.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tidings.raft.entries import Entry, EntryKind, Membership
from tidings.raft.host import RaftHost
from tidings.raft.messages import Message
from tidings.raft.outbox import Flush, ReadConfirmed, ReadEntries, StartWanted
from tidings.sim.clock import MS, Action, Agenda, DriftingClock
from tidings.sim.disk import Disk
from tidings.sim.flush_log import NO_HARD_STATE, RecoveredGroup, blank
from tidings.sim.replica import Replica
from tidings.sim.swarm import Knobs

_FIRST_CLOCK_MS_MAX = 10_000  # clocks of machines have nothing to do with each other
_START_DELAY_US_MAX = 5 * MS  # an owner that takes its time to make a start state


class Surroundings(Protocol):
    """What a machine asks of the world around it."""

    def send(self, sender: int, receiver: int, frame: list[Message]) -> None: ...
    def applied(self, machine: Machine, replica: Replica, entries: list[Entry]) -> None: ...
    def settled(self, machine: Machine, group: int) -> None: ...
    def read_confirmed(self, machine: Machine, read: ReadConfirmed) -> None: ...
    def turn_ended(self, machine: Machine) -> None: ...
    def flush_begun(self, machine: Machine) -> None: ...
    def gone_members(self) -> Iterable[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What machines are made of: the seam where tests plant a known bug."""

    host: Callable[..., RaftHost] = RaftHost
    replica: Callable[..., Replica] = Replica
    disk: Callable[..., Disk] = Disk


class Machine:
    """One member. It runs, is paused, or is down; its disk outlives its crashes."""

    def __init__(
        self,
        *,
        member: int,
        surroundings: Surroundings,
        agenda: Agenda,
        random: Random,
        knobs: Knobs,
        parts: Parts,
    ) -> None:
        self.member = member
        self._random = random
        self.disk = parts.disk(agenda, random, knobs.disk)
        self.clock = DriftingClock(
            agenda,
            start_ms=int(self._random.random() * _FIRST_CLOCK_MS_MAX),
            rate_permille=1_000 + self._random.randint(-knobs.drift_permille, knobs.drift_permille),
        )
        self.host: RaftHost | None = None
        self.replicas: dict[int, Replica] = {}
        self.is_paused = False
        self.is_lost = False  # its disk is gone: the member never comes back
        self._surroundings = surroundings
        self._agenda = agenda
        self._knobs = knobs
        self._parts = parts
        self._missed: deque[tuple[Action, object]] = deque()  # inputs that came during a pause
        self._tick_us = knobs.tick_ms * MS
        self._is_write_planned = False
        self._is_checkpoint_planned = False
        self._life = 0

    @property
    def is_up(self) -> bool:
        return self.host is not None

    @property
    def is_serving(self) -> bool:
        return self.host is not None and not self.is_paused

    # -- power

    def start(self) -> None:
        """Recover what the disk has, and run."""
        assert self.host is None
        self._life += 1
        host = self._parts.host(member=self.member, config=self._knobs.raft, random=self._random)
        self.host = host
        for group, found in self.disk.recover().items():
            self._add(host, group, found)
        host.holds_no_others()
        for member in self._surroundings.gone_members():
            host.forget_member(member)
        self._is_write_planned = self._is_checkpoint_planned = False
        self.later(self._random.random() * self._tick_us, self._tick)
        self.end_turn()

    def crash(self, *, keeps_writes: bool, may_tear: bool) -> None:
        """Everything in memory is gone, and of what was being written the disk keeps what it likes."""
        self.host = None
        self.replicas = {}
        self.is_paused = False
        self._missed.clear()
        self._life += 1
        self.disk.crash(keeps_writes=keeps_writes, may_tear=may_tear)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        """All inputs that came meanwhile are taken at once, at today's time."""
        self.is_paused = False
        life = self._life
        missed, self._missed = self._missed, deque()
        while missed and life == self._life:
            action, argument = missed.popleft()
            self.do(action, argument)

    # -- inputs

    def do(self, action: Action, argument: object = None) -> None:
        """Take one input and do all that follows from it; a paused machine takes it later, one that is down
        never."""
        if self.host is None:
            return
        if self.is_paused:
            self._missed.append((action, argument))
            return
        action(argument)
        self.end_turn()

    def later(self, delay_us: float, action: Action, argument: object = None) -> None:
        """An input of this life: it never comes if the machine crashes before."""
        self._agenda.after(int(delay_us), self._of_this_life, (self._life, action, argument))

    def _of_this_life(self, planned: tuple[int, Action, object]) -> None:
        life, action, argument = planned
        if life == self._life:
            self.do(action, argument)

    def _tick(self, _: object) -> None:
        assert self.host is not None
        self.host.tick(self.clock.now_ms)
        self.later(self._tick_us, self._tick)

    def receive(self, frame: list[Message]) -> None:
        host = self.host
        assert host is not None
        now_ms = self.clock.now_ms
        for message in frame:
            host.step(message, now_ms)

    def add_listener(self, group: int, membership: Membership) -> None:
        """Begin a replica that listens in a group that exists. It must never have had one of this group: an
        empty log would vote for a candidate that lacks what the old one promised."""
        host = self.host
        assert host is not None
        assert not self.had_replica(group), (self.member, group)
        self.disk.add_group(group, blank(membership))
        self._add(host, group, self.disk.recover()[group])

    def had_replica(self, group: int) -> bool:
        """Whether it has a term or a vote of the group: they outlive the replica."""
        return self.disk.log.hard_state_of(group) != NO_HARD_STATE

    def forget_member(self, member: int) -> None:
        """Another member was removed from the cluster."""
        host = self.host
        assert host is not None
        host.forget_member(member)

    def remove_group(self, group: int) -> None:
        host = self.host
        assert host is not None
        host.remove(group)
        del self.replicas[group]
        self.disk.remove_group(group)

    def _add(self, host: RaftHost, group: int, found: RecoveredGroup) -> None:
        added = host.add(
            group=group,
            start=found.start,
            hard=found.hard,
            tail=found.tail,
            first_index=found.first_index,
            first_offset=found.first_offset,
            doubtful=found.is_in_doubt,
            damaged=found.is_damaged,
            now_ms=self.clock.now_ms,
        )
        start = blank(found.start.membership) if found.is_damaged else found.start
        self.replicas[group] = self._parts.replica(
            group=added, start=start, disk=self.disk, knobs=self._knobs.replica
        )

    # -- the end of a turn

    def end_turn(self) -> None:
        """Do all that the host put down: build sends, tell the owners, send, begin to save."""
        host = self.host
        assert host is not None
        host.flush(self.clock.now_ms)
        self._tell_owners(host)
        self._surroundings.turn_ended(self)
        if host.outbox.messages:
            self._send(host)
        if self.disk.is_idle or self._knobs.disk.is_sealed_each_turn:
            self._seal(host)

    def _tell_owners(self, host: RaftHost) -> None:
        """What concerns a group's owner: first that its log was replaced, for all else is about the new
        one."""
        outbox = host.outbox
        if outbox.starts_installed:
            self._install_starts(host)
        if outbox.changed:
            changed, outbox.changed = outbox.changed, {}
            for group in changed:
                self.replicas[group].role_changed()
        if outbox.advanced:
            self._apply(host)
        if outbox.settled:
            self._settle(host)
        if outbox.starts_wanted or outbox.reads or outbox.reads_confirmed:
            self._answer(host)

    def _answer(self, host: RaftHost) -> None:
        outbox = host.outbox
        wanted, outbox.starts_wanted = outbox.starts_wanted, []
        for want in wanted:
            self.later(self._random.random() * _START_DELAY_US_MAX, self._give_start, want)
        reads, outbox.reads = outbox.reads, []
        for read in reads:
            self._read(read)
        confirmed, outbox.reads_confirmed = outbox.reads_confirmed, []
        for answer in confirmed:
            self._surroundings.read_confirmed(self, answer)

    def _send(self, host: RaftHost) -> None:
        messages, host.outbox.messages = host.outbox.messages, []
        frames: dict[int, list[Message]] = {}
        for message in messages:
            frames.setdefault(message.receiver, []).append(message)
        for receiver, frame in frames.items():
            self._surroundings.send(self.member, receiver, frame)

    def _seal(self, host: RaftHost) -> None:
        flush = host.outbox.seal()
        if flush is not None:
            self.disk.write(flush, self._flushed)
            self._surroundings.flush_begun(self)

    def _flushed(self, flush: Flush) -> None:
        self.do(self._persisted, flush)

    def _persisted(self, flush: Flush) -> None:
        assert self.host is not None
        self.host.persisted(flush, self.clock.now_ms)

    def _apply(self, host: RaftHost) -> None:
        advanced, host.outbox.advanced = host.outbox.advanced, {}
        for group in advanced:
            replica = self.replicas[group]
            entries = replica.newly_committed()
            self._surroundings.applied(self, replica, entries)
            replica.apply(entries)
        if not self._is_write_planned:
            self._is_write_planned = True
            self.later(self._knobs.replica.write_interval_ms * MS, self._write)
        if not self._is_checkpoint_planned:
            self._is_checkpoint_planned = True
            self.later(self._knobs.replica.checkpoint_interval_ms * MS, self._save_checkpoints)

    def _write(self, _: object) -> None:
        self._is_write_planned = False
        for replica in self.replicas.values():
            replica.write()

    def _save_checkpoints(self, _: object) -> None:
        self._is_checkpoint_planned = False
        for replica in self.replicas.values():
            replica.write()
            replica.save_checkpoint()

    def _settle(self, host: RaftHost) -> None:
        settled, host.outbox.settled = host.outbox.settled, {}
        for group in settled:
            self._surroundings.settled(self, group)
            self.disk.settle(group)

    def _install_starts(self, host: RaftHost) -> None:
        installs, host.outbox.starts_installed = host.outbox.starts_installed, []
        for installed in installs:
            group = installed.group
            marker = _last_start(host.outbox.entries, group)
            self.replicas[group].install(installed, marker, self._started(group))

    def _started(self, group: int) -> Callable[[], None]:
        def reset_done() -> None:
            self.do(self._start_installed, group)

        return reset_done

    def _start_installed(self, group: int) -> None:
        assert self.host is not None
        self.host.start_installed(group)

    def _give_start(self, want: StartWanted) -> None:
        replica = self.replicas.get(want.group)
        if replica is not None:
            replica.group.give_start(want.member, replica.state_to_send(), self.clock.now_ms)

    def _read(self, read: ReadEntries) -> None:
        def found(entries: list[Entry]) -> None:
            self.do(self._entries_read, (read, entries))

        self.disk.read(read.group, read.first_index, read.bytes_max, found)

    def _entries_read(self, answer: tuple[ReadEntries, list[Entry]]) -> None:
        read, entries = answer
        assert self.host is not None
        group = self.host.groups.get(read.group)
        if group is not None:
            group.entries_read(read.member, entries, self.clock.now_ms)


def _last_start(entries: list[tuple[int, Entry]], group: int) -> Entry:
    """The marker that the group has just put down for the write-ahead log."""
    return next(e for owner, e in reversed(entries) if owner == group and e.kind == EntryKind.START)
