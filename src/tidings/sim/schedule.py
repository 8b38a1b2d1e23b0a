"""Schedule: one seed from the first event to the verdict.

Its one rule: a run is a function of its seed (and of the parts that machines are made of). First a world
with faults, then everything is healed, and within a bounded time all must be well: one leader, equal
replicas, every producer answered. It must not know who asked. Tests: tests/sim/test_raft_schedules.py,
tests/sim/test_determinism.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tidings.raft.group import Group
from tidings.sim.clock import MS, Agenda
from tidings.sim.faults import Nemesis
from tidings.sim.invariants import Violation
from tidings.sim.machine import Machine, Parts
from tidings.sim.reassignment import Reassignment
from tidings.sim.swarm import Knobs, draw
from tidings.sim.trace import Trace
from tidings.sim.workload import Workload
from tidings.sim.world import World

DURATION_MS = 8_000
_RECOVERY_MS_MAX = 10_000
_RECOVERY_STEP_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a schedule. `failure` is None where all held."""

    seed: int
    knobs: Knobs
    failure: BaseException | None
    event_count: int
    entry_count: int
    digest: int
    at_us: int  # virtual time of the end, or of the failure

    @property
    def virtual_ms(self) -> int:
        return self.at_us // MS


def run_schedule(
    seed: int,
    *,
    duration_ms: int = DURATION_MS,
    parts: Parts | None = None,
    is_traced: bool = False,
    write: Callable[[str], None] | None = None,
) -> Outcome:
    """Run one seed. `write` takes the lines of the trace."""
    schedule = Schedule(
        seed, duration_ms=duration_ms, parts=parts or Parts(), is_traced=is_traced, write=write
    )
    failure: BaseException | None = None
    try:
        schedule.run()
    except Exception as error:  # noqa: BLE001 whatever stops a simulated cluster is what was looked for
        failure = error
        schedule.world.note("all", f"FAILED: {type(error).__name__}: {error}")
    return schedule.outcome(failure)


class Schedule:
    """The world of one seed with all that goes on in it."""

    def __init__(
        self,
        seed: int,
        *,
        duration_ms: int,
        parts: Parts,
        is_traced: bool,
        write: Callable[[str], None] | None,
    ) -> None:
        random = Random(seed)
        self.seed = seed
        self.knobs = draw(random, duration_ms)
        self.agenda = Agenda()
        self.trace = Trace(self.agenda, is_on=is_traced, write=write)
        self.world = World(agenda=self.agenda, random=random, knobs=self.knobs, parts=parts, trace=self.trace)
        self.workload = Workload(self.world)
        self.reassignment = Reassignment(self.world)
        self.nemesis = Nemesis(self.world, self.reassignment)

    def run(self) -> None:
        self.world.note("all", str(self.knobs))
        self.world.build()
        self.workload.begin()
        self.reassignment.begin()
        self.nemesis.begin()
        self.agenda.run_until(self.knobs.duration_ms * MS)
        if self.knobs.is_calm:
            self._check_calm()
        self.nemesis.heal()
        self.workload.end()
        self._recover()
        self.world.check_logs()
        for group in self.world.groups:
            self.world.invariants.check_acked(group, self.workload.acked[group])

    def outcome(self, failure: BaseException | None) -> Outcome:
        committed = self.world.invariants.committed.values()
        return Outcome(
            seed=self.seed,
            knobs=self.knobs,
            failure=failure,
            event_count=self.agenda.event_count,
            entry_count=sum(log.last_index for log in committed),
            digest=self.trace.digest,
            at_us=self.agenda.now_us,
        )

    def _check_calm(self) -> None:
        """Where nothing went wrong no leader was lost."""
        for group in self.world.groups:
            terms = self.world.invariants.terms_led(group)
            if len(terms) != 1:
                raise Violation(f"group {group}: leaders in terms {terms}, and nothing had gone wrong")

    def _recover(self) -> None:
        """Run on until all is well, but not for longer than promised."""
        end_us = self.agenda.now_us + _RECOVERY_MS_MAX * MS
        lacking: str | None = "nothing was looked at"
        while lacking is not None and self.agenda.now_us < end_us:
            self.agenda.run_until(self.agenda.now_us + _RECOVERY_STEP_MS * MS)
            lacking = self._what_is_lacking()
        if lacking is not None:
            raise Violation(f"{_RECOVERY_MS_MAX} ms after everything was healed: {lacking}")

    def _what_is_lacking(self) -> str | None:
        for group in self.world.groups:
            lacking = self._what_group_lacks(group)
            if lacking is not None:
                return f"group {group}: {lacking}"
        if not self.workload.is_done:
            return f"not acknowledged: {self.workload.unanswered[:5]}"
        if not self.reassignment.is_done:
            return "a membership change is not done"
        return None

    def _what_group_lacks(self, group: int) -> str | None:
        leaders = [m for m in self.world.machines.values() if _leads(m, group)]
        if len(leaders) != 1:
            return f"led by {[leader.member for leader in leaders]}"
        leader = leaders[0]
        membership = leader.replicas[group].group.membership
        for member in (*membership.voters, *membership.learners):
            machine = self.world.machines[member]
            if machine.is_lost:
                continue
            if group not in machine.replicas:
                return f"member {member} has no replica"
            differs = _difference(leader, machine, group)
            if differs is not None:
                return f"member {member} {differs} of leader {leader.member}"
        return None


def _leads(machine: Machine, group: int) -> bool:
    return group in machine.replicas and machine.replicas[group].group.is_leader


def _difference(leader: Machine, machine: Machine, group: int) -> str | None:
    """In what a replica differs from its leader's."""
    ours, theirs = leader.replicas[group], machine.replicas[group]
    if _marks(ours.group) != _marks(theirs.group):
        return f"has {_marks(theirs.group)}, not {_marks(ours.group)}"
    if ours.state.encode() != theirs.state.encode():
        return f"has {theirs.state.last_sequences}, not {ours.state.last_sequences}"
    if theirs.group.doubtful or theirs.group.damaged:
        return "still doubts or lacks its log"
    return None


def _marks(group: Group) -> tuple[int, int, int, int, int]:
    return group.term, group.last_index, group.log.last_term, group.commit_index, group.durable_index
