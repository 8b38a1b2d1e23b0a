"""Swarm: what one seed turns on. Every seed tries another small world, with some faults and extreme settings.

Its one rule: all knobs are drawn here, before the run begins, from the seed alone. A run with everything on
at once finds less than many runs with a few things on: faults mask each other. It must not know how a fault
is done. Tests: tests/sim/test_swarm.py
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from tidings.raft.config import RaftConfig

MEMBER_FIRST = 1
GROUP_FIRST = 0
_CALM_SHARE = 0.06  # of the seeds have no fault at all: then nothing may go wrong, no leader may be lost


class Fault(Enum):
    """What can go wrong, or be done by an operator, while producers go on."""

    CRASH = "crash"
    CRASH_ALL = "crash-all"
    ROLLING_RESTART = "rolling-restart"
    LONG_STOP = "long-stop"
    PAUSE = "pause"
    CUT = "cut"
    RESET = "reset"
    CLOCK_JUMP = "clock-jump"
    TRANSFER = "transfer"
    REASSIGN = "reassign"
    LOSE_DISK = "lose-disk"
    LOSE_FLUSH = "lose-flush"
    DAMAGE = "damage"
    TRANSPORT_FULL = "transport-full"
    SLOW_DISK = "slow-disk"
    TRAP_VOTE = "trap-vote"  # crash right after a vote was sent
    TRAP_REPLY = "trap-reply"  # crash right after an append was promised
    TRAP_FLUSH = "trap-flush"  # crash between a write and its fsync
    TRAP_START = "trap-start"  # crash while a start state is being taken
    TRAP_MEMBERSHIP = "trap-membership"  # part the machines right after a change of membership was proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkKnobs:
    """How links behave. A stream is in order and loses only by a reset; a datagram link loses, repeats and
    overtakes."""

    is_stream: bool
    delay_us_min: int
    delay_us_max: int
    tail_share: float
    tail_us_max: int
    loss_share: float
    duplicate_share: float
    replay_share: float
    is_encoded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskKnobs:
    """How long the disk takes and what a power cut leaves."""

    fsync_us_max: int
    slow_share: float
    slow_us_max: int
    job_us_max: int
    is_sealed_each_turn: bool  # else flushes are collected while one is being written
    flushes_per_sync_max: int
    torn_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaKnobs:
    """How the owners of the groups treat their logs."""

    write_interval_ms: int
    checkpoint_interval_ms: int
    released_entries_kept: int  # entries that stay in memory behind what the segments hold
    log_start_interval_ms: int  # 0: the log start never moves
    log_start_entries_kept: int
    gives_start_at_applied: bool  # as the metadata group does; else at the log start, as partitions do


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKnobs:
    """How producers send."""

    producers_per_group: int
    interval_ms: int
    window: int
    timeout_ms: int
    payload_bytes_max: int
    reads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """One seed's world."""

    machine_count: int
    voters_by_group: dict[int, tuple[int, ...]]
    duration_ms: int
    tick_ms: int
    drift_permille: int
    raft: RaftConfig
    network: NetworkKnobs
    disk: DiskKnobs
    replica: ReplicaKnobs
    workload: WorkloadKnobs
    faults: tuple[Fault, ...]
    fault_gap_ms: int
    reassignment_interval_ms: int
    adds_voters_at_once: bool  # operators do not let newcomers listen first
    trap_share: float
    fast_restart_share: float
    downs_are_told_share: float

    @property
    def is_calm(self) -> bool:
        return not self.faults


def draw(chance: Random, duration_ms: int) -> Knobs:
    """The knobs of a seed, whose random source this is."""
    is_calm = chance.random() < _CALM_SHARE
    faults = (
        () if is_calm else tuple(f for f in Fault if chance.random() < 0.4) or (chance.choice(list(Fault)),)
    )
    voter_count = chance.choice((3, 3, 3, 5))
    spare_count = chance.choice((0, 1, 2)) if Fault.REASSIGN in faults else 0
    members = range(MEMBER_FIRST, MEMBER_FIRST + voter_count + spare_count)
    groups = range(GROUP_FIRST, GROUP_FIRST + chance.choice((1, 1, 2, 3, 4)))
    election_ms = chance.choice((150, 300, 600, 1_000))
    return Knobs(
        machine_count=len(members),
        voters_by_group={group: _place(chance, members, voter_count) for group in groups},
        duration_ms=duration_ms,
        tick_ms=max(10, election_ms // chance.choice((6, 10, 20))),
        drift_permille=chance.choice((0, 10, 50)),
        raft=_draw_raft(chance, election_ms),
        network=_draw_network(chance, is_calm=is_calm),
        disk=_draw_disk(chance, is_calm=is_calm, is_slow=Fault.SLOW_DISK in faults),
        replica=_draw_replica(chance),
        workload=_draw_workload(chance, len(groups)),
        faults=faults,
        fault_gap_ms=int(election_ms * chance.choice((0.3, 1, 2))),
        adds_voters_at_once=chance.random() < 0.3,
        reassignment_interval_ms=chance.choice((10, 30, 100)) if Fault.REASSIGN in faults else 100,
        trap_share=chance.choice((0.003, 0.02, 0.1)),
        fast_restart_share=chance.choice((0.3, 0.7, 1.0)),
        downs_are_told_share=chance.choice((0.0, 0.5, 1.0)),
    )


def _place(chance: Random, members: range, voter_count: int) -> tuple[int, ...]:
    return tuple(sorted(chance.sample(members, chance.choice((3, min(4, len(members)), voter_count)))))


def _draw_raft(chance: Random, election_ms: int) -> RaftConfig:
    return RaftConfig(
        election_timeout_ms_min=election_ms,
        election_timeout_ms_max=election_ms
        * chance.choice((11, 20, 20))
        // 10,  # a small spread splits votes
        beat_interval_ms=max(10, election_ms // chance.choice((3, 6, 8))),
        append_bytes_max=chance.choice((1, 200, 2_000, 1 << 20)),
        inflight_bytes_max=chance.choice((1, 1_000, 8 << 20)),
        uncommitted_bytes_max=chance.choice((2_000, 32 << 20)),
        start_piece_bytes=chance.choice((8, 64, 1 << 20)),
        transfer_timeout_ms=election_ms,
    )


def _draw_network(chance: Random, *, is_calm: bool) -> NetworkKnobs:
    is_stream = is_calm or chance.random() < 0.5
    delay_us_min = chance.choice((50, 500, 3_000))
    return NetworkKnobs(
        is_stream=is_stream,
        delay_us_min=delay_us_min,
        delay_us_max=delay_us_min * chance.choice((1, 2, 6)),
        tail_share=0.0 if is_calm else chance.choice((0.0, 0.01, 0.05)),
        tail_us_max=chance.choice((50_000, 400_000, 2_000_000)),
        loss_share=0.0 if is_stream else chance.choice((0.0, 0.01, 0.1)),
        duplicate_share=0.0 if is_stream else chance.choice((0.0, 0.05)),
        replay_share=0.0 if is_stream else chance.choice((0.0, 0.02)),
        is_encoded=chance.random() < 0.15,
    )


def _draw_disk(chance: Random, *, is_calm: bool, is_slow: bool) -> DiskKnobs:
    return DiskKnobs(
        fsync_us_max=chance.choice((500, 4_000, 20_000)),
        slow_share=0.05 if is_slow else 0.0,
        slow_us_max=1_500_000,
        job_us_max=chance.choice((1_000, 20_000, 200_000)),
        is_sealed_each_turn=chance.random() < 0.5,
        flushes_per_sync_max=chance.choice((1, 1, 4)),
        torn_share=0.0 if is_calm else chance.choice((0.0, 0.2, 0.6)),
    )


def _draw_replica(chance: Random) -> ReplicaKnobs:
    return ReplicaKnobs(
        write_interval_ms=chance.choice((20, 200)),
        checkpoint_interval_ms=chance.choice((150, 600, 3_000)),
        released_entries_kept=chance.choice((0, 0, 5, 10_000)),
        log_start_interval_ms=chance.choice((0, 200, 1_000)),
        log_start_entries_kept=chance.choice((0, 3, 20)),
        gives_start_at_applied=chance.random() < 0.4,
    )


def _draw_workload(chance: Random, group_count: int) -> WorkloadKnobs:
    return WorkloadKnobs(
        producers_per_group=chance.choice((1, 2, 3)),
        interval_ms=chance.choice((40, 120, 400)) * max(1, group_count // 2),
        window=chance.choice((1, 2, 5)),
        timeout_ms=chance.choice((150, 600)),
        payload_bytes_max=chance.choice((16, 300, 3_000)),
        reads=chance.random() < 0.5,
    )
