"""Reassignment: the operator who changes who votes in a group, one safe step at a time.

Its one rule: nobody leaves before all who should vote do; a newcomer listens until it has caught up, then
votes. It must not know why a change is wanted. Tests: tests/sim/test_reassignment.py
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.raft.entries import Membership
from tidings.raft.errors import RaftError
from tidings.raft.group import Group
from tidings.sim.clock import MS
from tidings.sim.machine import Machine
from tidings.sim.world import World

_CAUGHT_UP_ENTRIES = 5


class Reassignment:
    """Holds one goal per group: the members that should vote in the end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._goals: dict[int, tuple[int, ...]] = {}
        self.on_proposed: Callable[[int, int], None] = _ignore  # group, leader

    def begin(self) -> None:
        self._plan_step()

    @property
    def is_done(self) -> bool:
        return all(self._is_reached(group) for group in self._goals)

    def is_under_way(self, group: int) -> bool:
        return group in self._goals and not self._is_reached(group)

    def aim(self, group: int, voters: tuple[int, ...]) -> None:
        self._world.note("ops", f"group {group}: voters shall be {voters}")
        self._goals[group] = voters

    def replace_lost(self, lost: int, newcomer: int) -> None:
        """A member will never come back: the newcomer takes its place in every group."""
        world = self._world
        for group in world.groups:
            goal = self._goals.get(group, world.invariants.committed[group].membership.voters)
            voting = any(lost in voters for voters in world.voters_known(group))
            if lost in goal or voting:
                rest = tuple(voter for voter in goal if voter != lost)
                self.aim(group, (*rest, newcomer) if lost in goal else rest)

    def _is_reached(self, group: int) -> bool:
        membership = self._world.invariants.committed[group].membership
        return set(membership.voters) == set(self._goals[group]) and not membership.learners

    def _step(self, _: object) -> None:
        world = self._world
        for group in self._goals:
            if self.is_under_way(group):
                self._advance(group)
            self._clean_up(group)
        for member, machine in world.machines.items():
            if machine.is_lost and not any(self._is_named(group, member) for group in world.groups):
                world.remove_member(member)
        self._plan_step()

    def _plan_step(self) -> None:
        self._world.agenda.after(self._world.knobs.reassignment_interval_ms * MS, self._step)

    def _advance(self, group: int) -> None:
        leader = self._world.leader_of(group)
        if leader is None:
            return
        replica = leader.replicas[group].group
        listens_first = not self._world.knobs.adds_voters_at_once
        step = _next_step(replica, self._goals[group], listens_first=listens_first)
        if step is None:
            return
        now = replica.membership
        named = (*step.voters, *step.learners)
        newcomers = [member for member in named if member not in now.learners and member not in now.voters]
        if all(self._can_listen(member, group, now) for member in newcomers):
            leader.do(self._propose, (leader, group, step))

    def _propose(self, asked: tuple[Machine, int, Membership]) -> None:
        leader, group, step = asked
        try:
            leader.replicas[group].change_membership(step, leader.clock.now_ms)
        except RaftError as refused:
            self._world.note("ops", f"refused: {refused}")
        else:
            self._world.note("ops", f"group {group}: proposed {step}")
            self.on_proposed(group, leader.member)

    def _is_named(self, group: int, member: int) -> bool:
        """Whether the member is still of the group, for all that is committed."""
        membership = self._world.invariants.committed[group].membership
        return member in membership.voters or member in membership.learners

    def _can_listen(self, newcomer: int, group: int, now: Membership) -> bool:
        """Have a replica on the newcomer, if that is possible. It begins as one that listens whatever it is
        to become: with an empty log it must never believe to be a voter, or blank members could elect each
        other."""
        machine = self._world.machines[newcomer]
        if not machine.is_serving or (group not in machine.replicas and machine.had_replica(group)):
            return False
        if group not in machine.replicas:
            machine.add_listener(group, Membership(voters=now.voters, learners=(*now.learners, newcomer)))
        return True

    def _clean_up(self, group: int) -> None:
        """Replicas that a committed membership does not name are removed; what they lost counts no more."""
        world = self._world
        leader = world.leader_of(group)
        if leader is None:
            return
        wanted = set(self._goals.get(group, ()))
        for membership in (
            world.invariants.committed[group].membership,
            leader.replicas[group].group.membership,
        ):
            wanted.update((*membership.voters, *membership.learners))
        for member in [member for member in world.lossy[group] if member not in wanted]:
            del world.lossy[group][member]
        for machine in world.serving():
            replica = machine.replicas.get(group)
            if replica is not None and machine.member not in wanted and not replica.group.is_leader:
                world.remove_replica(machine, group)


def _next_step(replica: Group, goal: tuple[int, ...], *, listens_first: bool) -> Membership | None:
    """The next membership to propose; None where nothing can be done yet."""
    now = replica.membership
    for newcomer in goal:
        if newcomer not in now.voters and newcomer not in now.learners:
            if listens_first:
                return Membership(voters=now.voters, learners=(*now.learners, newcomer))
            return Membership(voters=(*now.voters, newcomer), learners=now.learners)
    for learner in now.learners:
        rest = tuple(other for other in now.learners if other != learner)
        if learner not in goal:
            return Membership(voters=now.voters, learners=rest)
        if _has_caught_up(replica, learner):
            return Membership(voters=(*now.voters, learner), learners=rest)
    if any(voter not in now.voters for voter in goal):
        return None
    for voter in now.voters:
        if voter not in goal:
            return Membership(voters=tuple(v for v in now.voters if v != voter), learners=now.learners)
    return None


def _has_caught_up(replica: Group, member: int) -> bool:
    """What it acknowledges must count: a voter in doubt would only be in the way of a majority."""
    progress = replica.progress_of().get(member)
    return progress is not None and progress.counted_index + _CAUGHT_UP_ENTRIES >= replica.commit_index


def _ignore(group: int, leader: int) -> None:
    """Nobody waits for proposals."""
