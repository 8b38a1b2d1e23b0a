"""Knobs of a world in which nothing goes wrong, to be changed where a test wants something to."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tidings.raft.config import RaftConfig
from tidings.sim.clock import Agenda
from tidings.sim.machine import Parts
from tidings.sim.swarm import DiskKnobs, Knobs, NetworkKnobs, ReplicaKnobs, WorkloadKnobs
from tidings.sim.trace import Trace
from tidings.sim.world import World

STREAM = NetworkKnobs(
    is_stream=True,
    delay_us_min=100,
    delay_us_max=200,
    tail_share=0.0,
    tail_us_max=0,
    loss_share=0.0,
    duplicate_share=0.0,
    replay_share=0.0,
    is_encoded=False,
)
DATAGRAM = replace(STREAM, is_stream=False)
DISK = DiskKnobs(
    fsync_us_max=1_000,
    slow_share=0.0,
    slow_us_max=0,
    job_us_max=1_000,
    is_sealed_each_turn=False,
    flushes_per_sync_max=1,
    torn_share=0.0,
)
REPLICA = ReplicaKnobs(
    write_interval_ms=20,
    checkpoint_interval_ms=50,
    released_entries_kept=0,
    log_start_interval_ms=0,
    log_start_entries_kept=0,
    gives_start_at_applied=False,
)
WORKLOAD = WorkloadKnobs(
    producers_per_group=1, interval_ms=50, window=2, timeout_ms=200, payload_bytes_max=20, reads=True
)
CALM = Knobs(
    machine_count=3,
    voters_by_group={0: (1, 2, 3)},
    duration_ms=2_000,
    tick_ms=10,
    drift_permille=0,
    raft=RaftConfig(
        election_timeout_ms_min=150, election_timeout_ms_max=300, beat_interval_ms=40, transfer_timeout_ms=150
    ),
    network=STREAM,
    disk=DISK,
    replica=REPLICA,
    workload=WORKLOAD,
    faults=(),
    fault_gap_ms=100,
    reassignment_interval_ms=100,
    adds_voters_at_once=False,
    trap_share=0.0,
    fast_restart_share=1.0,
    downs_are_told_share=1.0,
)


def calm_world(knobs: Knobs = CALM, *, write: Callable[[str], None] | None = None) -> World:
    """A world that is built and running: let time pass by its agenda. `write` takes the trace."""
    agenda = Agenda()
    trace = Trace(agenda, is_on=write is not None, write=write)
    world = World(agenda=agenda, random=Random(1), knobs=knobs, parts=Parts(), trace=trace)
    world.build()
    return world
