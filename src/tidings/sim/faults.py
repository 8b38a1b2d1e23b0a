"""Faults: the nemesis of a world. Every so often one of the seed's faults happens, and is undone later.

Its one rule: nothing that the promises do not cover: any crash, cut, delay; lost data on a minority of a
group's replicas. It must not know what is checked. Tests: tests/sim/test_faults.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidings.sim.clock import MS
from tidings.sim.machine import Machine
from tidings.sim.reassignment import Reassignment
from tidings.sim.swarm import Fault
from tidings.sim.world import World

_ROLLING_GAP_MS = 300
_LONG_STOP_MS_MIN = 1_500
_LONG_STOP_MS_MAX = 5_000
_OUTAGE_MS_MAX = 4_000
_JUMP_MS_MAX = 3_000
_TRAP_MEMBERSHIP_SHARE = 0.7
_VOTERS_MIN = 3  # two voters could lose nothing
_CHANGE_OF_MIND_SHARE = 0.3  # of the operators' orders come while the last one is not carried out

Pairs = list[tuple[int, int]]


class Nemesis:
    """Draws and does faults until it is told to stop."""

    def __init__(self, world: World, reassignment: Reassignment) -> None:
        self._world = world
        self._random = world.random
        self._reassignment = reassignment
        self._is_stopped = False
        deeds: dict[Fault, Callable[[], None]] = {
            Fault.CRASH: self._crash,
            Fault.CRASH_ALL: self._crash_all,
            Fault.ROLLING_RESTART: self._restart_in_turn,
            Fault.LONG_STOP: self._stop_for_long,
            Fault.PAUSE: self._pause,
            Fault.CUT: self._cut,
            Fault.RESET: self._reset,
            Fault.CLOCK_JUMP: self._jump,
            Fault.TRANSFER: self._transfer,
            Fault.REASSIGN: self._reassign,
            Fault.LOSE_DISK: self._lose_disk,
            Fault.LOSE_FLUSH: self._lose_flush,
            Fault.DAMAGE: self._damage,
            Fault.TRANSPORT_FULL: self._fill_transport,
        }
        self._trap_pairs: Pairs = []
        if Fault.TRAP_MEMBERSHIP in world.knobs.faults:
            reassignment.on_proposed = self._trap_membership
        self._deeds = [deeds[fault] for fault in world.knobs.faults if fault in deeds]

    def begin(self) -> None:
        if self._deeds:
            self._plan_next()

    def heal(self) -> None:
        """No more faults; what is broken is mended, what is down starts, what is paused goes on."""
        self._is_stopped = True
        world = self._world
        world.is_healed = True
        world.note("all", "heal")
        world.network.heal()
        for machine in list(world.machines.values()):
            machine.disk.is_healed = True
            if machine.is_paused:
                machine.resume()
            world.start(machine)
            self._empty_transport((machine, machine.member))

    def _plan_next(self) -> None:
        gap_ms = self._random.expovariate(1 / self._world.knobs.fault_gap_ms)
        self._world.agenda.after(int(gap_ms * MS), self._strike)

    def _strike(self, _: object) -> None:
        if not self._is_stopped:
            self._random.choice(self._deeds)()
            self._plan_next()

    def _some(self) -> Machine | None:
        """A machine that serves, often one that leads."""
        world = self._world
        if self._random.random() < 0.5:
            leader = world.leader_of(self._random.choice(world.groups))
            if leader is not None:
                return leader
        serving = world.serving()
        return self._random.choice(serving) if serving else None

    def _later(self, ms_max: int, undo: Callable[[object], None], argument: object) -> None:
        self._world.agenda.after(int(self._random.random() * ms_max * MS), undo, argument)

    # -- power

    def _crash(self) -> None:
        machine = self._some()
        if machine is not None:
            self._world.crash(machine, keeps_writes=self._random.random() < 0.5)
            self._world.agenda.after(self._world.restart_delay_us(), self._world.start, machine)

    def _crash_all(self) -> None:
        keeps_writes = self._random.random() < 0.3
        for machine in list(self._world.machines.values()):
            if machine.is_up:
                self._world.crash(machine, keeps_writes=keeps_writes)
                self._world.agenda.after(self._world.restart_delay_us(), self._world.start, machine)

    def _restart_in_turn(self) -> None:
        for place, machine in enumerate(self._world.serving()):
            self._world.agenda.after(place * _ROLLING_GAP_MS * MS, self._restart, machine)

    def _restart(self, machine: Machine) -> None:
        if machine.is_up and not self._is_stopped:
            self._world.crash(machine, keeps_writes=True)
            self._world.agenda.after(self._world.restart_delay_us(), self._world.start, machine)

    def _stop_for_long(self) -> None:
        machine = self._some()
        if machine is not None:
            self._world.crash(machine, keeps_writes=True)
            stop_ms = _LONG_STOP_MS_MIN + self._random.random() * (_LONG_STOP_MS_MAX - _LONG_STOP_MS_MIN)
            self._world.agenda.after(int(stop_ms * MS), self._world.start, machine)

    def _pause(self) -> None:
        machine = self._some()
        if machine is not None:
            self._world.note(machine.member, "pause")
            machine.pause()
            self._later(_OUTAGE_MS_MAX, self._resume, machine)

    def _resume(self, machine: object) -> None:
        assert isinstance(machine, Machine)
        if machine.is_paused:
            self._world.note(machine.member, "resume")
            machine.resume()

    def _jump(self) -> None:
        machine = self._some()
        if machine is not None:
            ahead_ms = int(self._random.random() * _JUMP_MS_MAX)
            self._world.note(machine.member, f"clock jumps {ahead_ms} ms")
            machine.clock.jump(ahead_ms)

    # -- network

    def _cut(self) -> None:
        members = list(self._world.machines)
        self._random.shuffle(members)
        target = self._some()
        if target is not None:
            members.remove(target.member)
            members.insert(0, target.member)
        pairs = self._random.choice((_isolated, _mute, _deaf, _split, _bridged, _in_a_ring))(members)
        if pairs:
            self._world.note("net", f"cut {pairs}")
            self._world.network.cut(pairs)
            self._later(_OUTAGE_MS_MAX, self._mend, pairs)

    def _mend(self, pairs: object) -> None:
        assert isinstance(pairs, list)
        if self._is_stopped:
            return
        self._world.note("net", f"mend {pairs}")
        if self._random.random() < 0.5:
            for member, other in pairs:
                self._world.network.reset(member, other)
        self._world.network.mend(pairs)

    def _reset(self) -> None:
        machine = self._some()
        others = [member for member in self._world.machines if machine is None or member != machine.member]
        if machine is None or not others:
            return
        other = self._random.choice(others)
        self._world.note("net", f"reset {machine.member} - {other}")
        if self._random.random() < 0.5:
            self._world.tell_reset(machine, other)
        else:
            self._world.network.reset(machine.member, other)

    def _fill_transport(self) -> None:
        machine = self._some()
        if machine is None or machine.host is None:
            return
        member = self._random.choice(list(self._world.machines))
        if member != machine.member:
            self._world.note("net", f"transport {machine.member} -> {member} is full")
            machine.host.send_paused(member, True)
            self._later(_OUTAGE_MS_MAX // 4, self._empty_transport, (machine, member))

    def _empty_transport(self, transport: object) -> None:
        assert isinstance(transport, tuple)
        machine, member = transport
        if machine.host is not None:
            machine.do(_take_more, (machine, member))

    # -- operators

    def _transfer(self) -> None:
        group = self._random.choice(self._world.groups)
        leader = self._world.leader_of(group)
        if leader is None:
            return
        replica = leader.replicas[group].group
        others = [voter for voter in replica.membership.voters if voter != leader.member]
        if others:
            member = self._random.choice(others)
            self._world.note("ops", f"group {group}: {leader.member} shall hand over to {member}")
            leader.do(lambda _: replica.transfer(member, leader.clock.now_ms))

    def _reassign(self) -> None:
        world = self._world
        group = self._random.choice(world.groups)
        if self._reassignment.is_under_way(group) and self._random.random() > _CHANGE_OF_MIND_SHARE:
            return
        voters = world.invariants.committed[group].membership.voters
        there = [member for member, machine in world.machines.items() if _may_hold(machine, group)]
        count = self._random.choice((3, 3, 4, 5, len(voters)))
        kept = [voter for voter in voters if voter in there]
        self._random.shuffle(there)
        goal = tuple(dict.fromkeys((*kept[self._random.choice((0, 1)) :], *there)))[:count]
        if len(goal) >= min(3, len(there)):
            self._reassignment.aim(group, goal)

    def _trap_membership(self, group: int, leader: int) -> None:
        """A leader has just proposed a change: part the machines, and want another change of the next
        leader."""
        if self._is_stopped or self._random.random() > _TRAP_MEMBERSHIP_SHARE:
            return
        world = self._world
        world.network.mend(self._trap_pairs)
        members = list(world.machines)
        self._random.shuffle(members)
        self._trap_pairs = _split(members)
        world.note("net", f"cut {self._trap_pairs}")
        world.network.cut(self._trap_pairs)
        committed = world.invariants.committed[group].membership.voters
        voters = [voter for voter in committed if not world.machines[voter].is_lost]
        others = [member for member, machine in world.machines.items() if _may_hold(machine, group)]
        without_leader = tuple(voter for voter in voters if voter != leader)
        self._random.shuffle(others)
        with_another = (*voters, *others[:1])
        goal = tuple(dict.fromkeys(self._random.choice((without_leader, with_another))))
        if len(goal) >= _VOTERS_MIN:
            self._reassignment.aim(group, goal)

    # -- data that is lost, on a minority

    def _victim(self) -> Machine | None:
        machine = self._some()
        if machine is None or not self._world.may_lose(machine.member):
            return None
        self._world.crash(machine, keeps_writes=False)
        return machine

    def _restart_victim(self, machine: Machine) -> None:
        self._world.lost_promises(machine.member)
        self._world.agenda.after(self._world.restart_delay_us(), self._world.start, machine)

    def _lose_flush(self) -> None:
        machine = self._victim()
        if machine is not None:
            if machine.disk.lose_last_flush():
                self._world.note(machine.member, "lost its last flush")
            self._restart_victim(machine)

    def _damage(self) -> None:
        machine = self._victim()
        if machine is not None:
            for image in machine.disk.images.values():
                image.is_damaged = True
            self._world.note(machine.member, "its logs are damaged")
            self._restart_victim(machine)

    def _lose_disk(self) -> None:
        world = self._world
        if any(self._reassignment.is_under_way(group) for group in world.groups):
            return
        machine = self._victim()
        if machine is not None:
            world.lost_promises(machine.member)
            newcomer = world.replace_disk(machine)
            self._reassignment.replace_lost(machine.member, newcomer.member)


def _may_hold(machine: Machine, group: int) -> bool:
    """Replicas do not return to where they were removed."""
    return not machine.is_lost and (group in machine.disk.images or not machine.had_replica(group))


def _take_more(transport: tuple[Machine, int]) -> None:
    machine, member = transport
    assert machine.host is not None
    machine.host.send_paused(member, False)


def _both_ways(pairs: Pairs) -> Pairs:
    return [*pairs, *((other, member) for member, other in pairs)]


def _isolated(members: Sequence[int]) -> Pairs:
    return _both_ways(_mute(members))


def _mute(members: Sequence[int]) -> Pairs:
    """The first member is not heard."""
    return [(members[0], other) for other in members[1:]]


def _deaf(members: Sequence[int]) -> Pairs:
    return [(other, members[0]) for other in members[1:]]


def _split(members: Sequence[int]) -> Pairs:
    half = len(members) // 2
    return _both_ways([(member, other) for member in members[:half] for other in members[half:]])


def _bridged(members: Sequence[int]) -> Pairs:
    """Two halves that have only the first member in common."""
    half = len(members) // 2 + 1
    return _both_ways([(member, other) for member in members[1:half] for other in members[half:]])


def _in_a_ring(members: Sequence[int]) -> Pairs:
    """Each hears its two neighbours only."""
    count = len(members)
    far = [(i, j) for i in range(count) for j in range(count) if (j - i) % count not in (0, 1, count - 1)]
    return [(members[i], members[j]) for i, j in far]
