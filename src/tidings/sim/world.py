"""A world: the machines of one seed, the network between them, and what is known about the whole.

Its one rule: whatever happens is an event on the agenda, and whatever a machine tells is checked on the
way. It must not know when faults come (faults.py) or what producers send (workload.py). Tests:
tests/sim/test_world.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from tidings.raft.entries import Entry, Membership
from tidings.raft.group import Group
from tidings.raft.messages import AppendReply, InstallReply, Message, VoteReply
from tidings.raft.outbox import ReadConfirmed
from tidings.sim.clock import MS, Agenda
from tidings.sim.describe import describe_message, describe_replica
from tidings.sim.disk import Disk
from tidings.sim.flush_log import blank
from tidings.sim.invariants import Invariants
from tidings.sim.machine import Machine, Parts
from tidings.sim.network import Network
from tidings.sim.replica import Replica
from tidings.sim.swarm import MEMBER_FIRST, Fault, Knobs
from tidings.sim.trace import Trace

_LOG_MATCHING_EVERY_EVENTS = 1_000
_NOTICE_US_MAX = 5 * MS  # until the others notice a connection that was reset


class World:
    """All machines. Fills the machines' Surroundings."""

    def __init__(self, *, agenda: Agenda, random: Random, knobs: Knobs, parts: Parts, trace: Trace) -> None:
        self.agenda = agenda
        self.random = random
        self.knobs = knobs
        self.trace = trace
        self.machines: dict[int, Machine] = {}
        self.disks: dict[int, Disk] = {}
        self.network = Network(agenda, random, knobs.network, self._deliver)
        self.lossy: dict[int, dict[int, None]] = {}  # group -> members that may lack what they promised
        self.invariants = Invariants(self.disks, lambda group, member: member in self.lossy[group])
        self._gone: dict[int, None] = {}
        self.groups = tuple(knobs.voters_by_group)
        self.is_healed = False
        self.on_read_confirmed: Callable[[Machine, ReadConfirmed], None] = _ignore
        self._parts = parts
        self._next_member = MEMBER_FIRST
        self._traps = frozenset(knobs.faults)

    # -- machines

    def build(self) -> None:
        """Make all machines and the groups on them, and start them."""
        for _ in range(self.knobs.machine_count):
            self.add_machine()
        for group, voters in self.knobs.voters_by_group.items():
            membership = Membership(voters=voters)
            self.lossy[group] = {}
            self.invariants.group_created(group, membership)
            for member in voters:
                self.disks[member].add_group(group, blank(membership))
        for machine in self.machines.values():
            machine.start()

    def add_machine(self) -> Machine:
        member = self._next_member
        self._next_member += 1
        machine = Machine(
            member=member,
            surroundings=self,
            agenda=self.agenda,
            random=self.random,
            knobs=self.knobs,
            parts=self._parts,
        )
        self.machines[member] = machine
        self.disks[member] = machine.disk
        return machine

    def replace_disk(self, machine: Machine) -> Machine:
        """The machine's disk is gone for good: it comes back with an empty one, as another member."""
        self.note(machine.member, "disk lost")
        machine.is_lost = True
        del self.disks[machine.member]
        newcomer = self.add_machine()
        self.start(newcomer)
        return newcomer

    def remove_replica(self, machine: Machine, group: int) -> None:
        """The group is no longer the machine's business, by a committed change of membership."""
        self.note(machine.member, f"group {group} removed")
        machine.remove_group(group)
        assert machine.host is not None
        self.invariants.replica_removed(machine.member, group, machine.host.outbox.entries)

    def gone_members(self) -> Iterable[int]:
        """Members that lost their disks and were replaced in all their groups: removed from the cluster."""
        return self._gone

    def remove_member(self, member: int) -> None:
        if member not in self._gone:
            self.note(member, "removed from the cluster")
            self._gone[member] = None
            for machine in self.machines.values():
                machine.do(machine.forget_member, member)

    def serving(self) -> list[Machine]:
        return [machine for machine in self.machines.values() if machine.is_serving]

    def leader_of(self, group: int) -> Machine | None:
        """The machine that leads the group in the newest term, among those that serve."""
        best: Machine | None = None
        best_term = -1
        for machine in self.machines.values():
            replica = machine.replicas.get(group)
            if not machine.is_serving or replica is None or not replica.group.is_leader:
                continue
            if replica.group.term > best_term:
                best, best_term = machine, replica.group.term
        return best

    def replicas_of(self, group: int) -> list[Group]:
        return [m.replicas[group].group for m in self.machines.values() if group in m.replicas]

    def voters_known(self, group: int) -> tuple[tuple[int, ...], ...]:
        """Every electorate that some replica believes in, and the committed one."""
        electorates = dict.fromkeys(replica.membership.voters for replica in self.replicas_of(group))
        electorates[self.invariants.committed[group].membership.voters] = None
        return tuple(electorates)

    # -- power and connections

    def crash(self, machine: Machine, *, keeps_writes: bool) -> None:
        """A killed process leaves what it wrote, and its peers notice; a power cut does neither."""
        if not machine.is_up:
            return
        self.note(machine.member, "crash" if keeps_writes else "power cut")
        machine.crash(keeps_writes=keeps_writes, may_tear=self.may_doubt(machine.member))
        self.invariants.life_ended(machine.member)
        self.network.forget(machine.member)
        if keeps_writes and self.random.random() < self.knobs.downs_are_told_share:
            self.tell_down(machine.member)

    def start(self, machine: Machine) -> None:
        if machine.is_up or machine.is_lost:
            return
        self.note(machine.member, "start")
        machine.start()
        for other in self.machines.values():
            if other is not machine:
                other.later(self.random.random() * _NOTICE_US_MAX, self._member_up, (other, machine.member))

    def tell_down(self, member: int) -> None:
        """The others notice that the member's connections are reset and nobody answers."""
        for other in self.machines.values():
            if other.member != member:
                other.later(self.random.random() * _NOTICE_US_MAX, self._member_down, (other, member))

    def tell_reset(self, machine: Machine, member: int) -> None:
        """The connection between two is reset and could not be reopened for a moment."""
        self.network.reset(machine.member, member)
        for one, other in ((machine.member, member), (member, machine.member)):
            holder = self.machines[one]
            holder.later(0, self._member_down, (holder, other))
            holder.later(self.random.random() * 20 * _NOTICE_US_MAX, self._member_up, (holder, other))

    def _member_down(self, noticed: tuple[Machine, int]) -> None:
        machine, member = noticed
        assert machine.host is not None
        machine.host.member_down(member, machine.clock.now_ms)

    def _member_up(self, noticed: tuple[Machine, int]) -> None:
        machine, member = noticed
        assert machine.host is not None
        machine.host.member_up(member, machine.clock.now_ms)

    # -- what the model of faults allows: at most one replica of a group lacks what it promised

    def may_lose(self, member: int) -> bool:
        """Whether the member may lose what it promised: no other replica of its groups does, or is in
        doubt."""
        groups = self.disks[member].images
        electorates = [voters for group in groups for voters in self.voters_known(group)]
        return all(self._others_are_sound(group, member) for group in groups) and all(
            len(voters) > 2 for voters in electorates
        )

    def may_doubt(self, member: int) -> bool:
        """Whether the member may have cause to doubt: where all voters must answer, all must be there."""
        return all(not (self.lossy[group].keys() - {member}) for group in self.disks[member].images)

    def _others_are_sound(self, group: int, member: int) -> bool:
        if self.lossy[group].keys() - {member}:
            return False
        images = [disk.images.get(group) for other, disk in self.disks.items() if other != member]
        return not any(image is not None and (image.is_in_doubt or image.is_damaged) for image in images)

    def lost_promises(self, member: int) -> None:
        for group in self.disks[member].images:
            self.lossy[group][member] = None

    # -- Surroundings

    def send(self, sender: int, receiver: int, frame: list[Message]) -> None:
        invariants = self.invariants
        for message in frame:
            invariants.sent(message)
            if self.trace.is_on:
                self.trace.line(sender, f"-> {receiver} {describe_message(message)}")
        if self._traps and not self.is_healed:
            self._maybe_trap(sender, frame)
        if receiver in self.machines:
            self.network.send(sender, receiver, frame)

    def _deliver(self, receiver: int, frame: list[Message]) -> None:
        machine = self.machines[receiver]
        if self.trace.is_on and machine.is_serving:
            for message in frame:
                self.trace.line(receiver, f"<- {message.sender} {describe_message(message)}")
        machine.do(machine.receive, frame)

    def applied(self, machine: Machine, replica: Replica, entries: list[Entry]) -> None:
        self.invariants.applied(machine.member, replica.group, entries)

    def settled(self, machine: Machine, group: int) -> None:
        self.note(machine.member, f"group {group} settled")
        if machine.member in self.lossy[group]:
            del self.lossy[group][machine.member]
            self.invariants.check_still_durable(machine.replicas[group].group)

    def read_confirmed(self, machine: Machine, read: ReadConfirmed) -> None:
        self.on_read_confirmed(machine, read)

    def turn_ended(self, machine: Machine) -> None:
        host = machine.host
        assert host is not None
        self.invariants.check_turn(machine.member, host.groups.values(), host.outbox.entries)
        if self.trace.is_on:
            for group in host.groups.values():
                self.trace.state(machine.member, group.group, describe_replica(group))
        if self.agenda.event_count % _LOG_MATCHING_EVERY_EVENTS == 0:
            self.check_logs()

    def check_logs(self) -> None:
        for group in self.groups:
            self.invariants.check_log_matching(self.replicas_of(group))
        for machine in self.machines.values():
            for replica in machine.replicas.values():
                self.invariants.check_one_uncommitted_change(machine.member, replica.group)

    def flush_begun(self, machine: Machine) -> None:
        self.invariants.flush_begun(machine.member)
        if Fault.TRAP_FLUSH in self._traps and not self.is_healed and self._springs():
            self._spring(machine, delay_us=int(self.random.random() * self.knobs.disk.fsync_us_max))

    # -- traps: crashes at the moments that matter

    def _maybe_trap(self, sender: int, frame: list[Message]) -> None:
        for message in frame:
            if isinstance(message, VoteReply) and message.granted:
                is_trap = Fault.TRAP_VOTE in self._traps and self.random.random() < 0.2
            elif isinstance(message, AppendReply):
                is_trap = Fault.TRAP_REPLY in self._traps and self._springs()
            elif isinstance(message, InstallReply):
                is_trap = Fault.TRAP_START in self._traps and self.random.random() < 0.2
            else:
                is_trap = False
            if is_trap:
                self._spring(self.machines[sender], delay_us=0)
                return

    def _springs(self) -> bool:
        return self.random.random() < self.knobs.trap_share

    def _spring(self, machine: Machine, delay_us: int) -> None:
        self.agenda.after(delay_us, self._crash_and_restart, machine)

    def _crash_and_restart(self, machine: Machine) -> None:
        if machine.is_up and not self.is_healed:
            self.crash(machine, keeps_writes=self.random.random() < 0.5)
            self.agenda.after(self.restart_delay_us(), self.start, machine)

    def restart_delay_us(self) -> int:
        """Most restarts are quick: two lives within one election are the ones that forget votes."""
        is_fast = self.random.random() < self.knobs.fast_restart_share
        return int(self.random.random() * (50 * MS if is_fast else 2_000 * MS))

    def note(self, who: object, text: str) -> None:
        if self.trace.is_on:
            self.trace.line(who, text)


def _ignore(machine: Machine, read: ReadConfirmed) -> None:
    """Nobody reads yet."""
