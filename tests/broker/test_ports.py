"""Tests of broker/ports.py: the fakes keep what the protocols promise, so that other tests may rely on it."""

from __future__ import annotations

import pytest

from tests.fakes.world import World
from tidings.broker.commands import FormCluster, encode_command
from tidings.broker.outcome import Outcome
from tidings.broker.ports import (
    AppendRefused,
    Controller,
    Liveness,
    LogFull,
    NotLeader,
    Offload,
    ReplicaLog,
    Settling,
    StorageFull,
    Timers,
)
from tidings.protocol.errors import ErrorCode


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_called_from_within_the_call_that_asks_for_it(world: World) -> None:
    partition = world.create_topic("t")[0]
    log: ReplicaLog = partition.log
    controller: Controller = world.controller
    settling: Settling = world.settling
    timers: Timers = world.timers
    offload: Offload = world.offload
    calls: list[object] = []

    log.confirm_leadership(calls.append, world.now_ms)
    log.read_later(0, 1, 1, calls.append)
    log.find_batch_by_time(0, calls.append)
    controller.propose(encode_command(FormCluster(cluster_id="x")), calls.append, world.now_ms)
    settling.when_settled([], world.now_ms, calls.append)
    timers.call_at(world.now_ms, calls.append)
    offload.run(abs, -3, then=calls.append)

    assert calls == []
    world.settle()
    world.timers.advance(0)
    assert [True, [], [], True, 3, world.now_ms] == [call for call in calls if not isinstance(call, Outcome)]


def test_a_cancelled_timer_is_not_called(world: World) -> None:
    calls: list[int] = []
    world.timers.call_at(world.now_ms + 5, calls.append).cancel()

    world.timers.advance(10)

    assert calls == []


def test_liveness_has_another_version_after_each_change(world: World) -> None:
    liveness: Liveness = world.liveness
    before = liveness.version

    world.add_broker(9)

    assert liveness.version != before


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (LogFull, ErrorCode.NOT_ENOUGH_REPLICAS),
        (StorageFull, ErrorCode.KAFKA_STORAGE_ERROR),
        (NotLeader, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_log_that_takes_nothing_says_so_with_an_error_upon_which_producers_try_again(
    refused: type[AppendRefused], code: ErrorCode
) -> None:
    assert refused("why").code is code
