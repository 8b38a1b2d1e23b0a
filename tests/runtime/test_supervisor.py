"""The supervisor starts all, restarts with growing pauses, yields to a broker started by hand, stops all."""

import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes.processes import FOR_EVER_MS, FakeProcesses, Life
from tidings.config.exits import Exit
from tidings.config.options import Config
from tidings.runtime.supervisor import BrokerFailed, BrokerPlan, MajorityLost, NotReady, Running, Supervisor
from tidings.telemetry.events import EventLog, Level

CONFIG = Config(ready_ms_max=60_000, stop_ms_max=10_000)
FOLDER = Path("cluster")


def plan(broker_id: int) -> BrokerPlan:
    return BrokerPlan(
        broker_id=broker_id,
        kafka=f"127.0.0.1:{9091 + broker_id}",
        peer=f"127.0.0.1:{19091 + broker_id}",
        data=FOLDER / f"broker-{broker_id}",
        argv=("tidings", "broker", "--id", str(broker_id)),
    )


class Run:
    """A supervisor of three brokers in a world of fake processes, and what came of it."""

    def __init__(self, world: FakeProcesses, config: Config = CONFIG) -> None:
        self.world = world
        self.ready_ms: list[int] = []
        self.running: list[Running] = []
        self._events = io.StringIO()
        log = EventLog(
            stream=self._events,
            is_json=True,
            level=Level.INFO,
            events_per_second_max=100,
            clock_s=lambda: 0.0,
        )
        self._supervisor = Supervisor(
            [plan(1), plan(2), plan(3)],
            config=config,
            spawn=world.spawn,
            mailbox=world,
            log=log,
            holder_is_alive=lambda folder: folder in world.holders,
            now_ms=lambda: world.now_ms,
        )

    def go(self) -> None:
        self._supervisor.run(self._on_ready)

    def events(self, broker: int) -> list[str]:
        said = [json.loads(line) for line in self._events.getvalue().splitlines()]
        return [each["event"] for each in said if each["broker"] == broker]

    def _on_ready(self, running: list[Running]) -> None:
        self.ready_ms.append(self.world.now_ms)
        self.running = running


def test_the_cluster_is_ready_when_every_broker_is() -> None:
    world = FakeProcesses(lives={2: [Life(ready_ms=300)]})
    world.stop_at(5_000)
    run = Run(world)

    run.go()

    assert run.ready_ms == [300]
    assert [each.plan.broker_id for each in run.running] == [1, 2, 3]
    assert [each.pid for each in run.running] == [101, 102, 103]


def test_all_are_started_at_once() -> None:
    world = FakeProcesses()
    world.stop_at(100)

    Run(world).go()

    assert world.started_ms == {1: [0], 2: [0], 3: [0]}


def test_all_are_asked_to_stop_and_waited_for() -> None:
    world = FakeProcesses(lives={3: [Life(stop_ms=900)]})
    world.stop_at(100)

    Run(world).go()

    assert world.now_ms == 1_000
    assert not any(child.is_living or child.is_killed for child in world.children.values())


def test_a_broker_that_does_not_stop_in_time_is_killed() -> None:
    world = FakeProcesses(lives={2: [Life(stop_ms=60_000)]})
    world.stop_at(100)
    run = Run(world)

    run.go()

    assert world.now_ms == 100 + CONFIG.stop_ms_max
    assert [each for each, child in world.children.items() if child.is_killed] == [2]
    assert run.events(2)[-1] == "broker_killed"


def test_a_broker_that_died_is_started_again_after_a_pause() -> None:
    world = FakeProcesses(lives={2: [Life(ends_ms=1_000), Life()]})
    world.stop_at(5_000)
    run = Run(world)

    run.go()

    assert world.started_ms == {1: [0], 2: [0, 1_200], 3: [0]}
    assert run.events(2) == [
        "broker_started",
        "broker_ready",
        "broker_died",
        "broker_started",
        "broker_ready",
    ]
    assert run.ready_ms == [50]


def test_pauses_double_up_to_their_bound() -> None:
    world = FakeProcesses(lives={1: [Life(ends_ms=100)]})
    world.stop_at(40_000)

    Run(world).go()

    times_ms = world.started_ms[1]
    pauses_ms = [after - before - 100 for before, after in pairwise(times_ms)]
    assert pauses_ms == [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]


def test_a_broker_that_lived_long_starts_again_with_the_shortest_pause() -> None:
    short, long = Life(ends_ms=100), Life(ends_ms=CONFIG.restart_reset_ms)
    world = FakeProcesses(lives={1: [short, short, long, Life()]})
    world.stop_at(60_000)

    Run(world).go()

    assert world.started_ms[1] == [0, 300, 800, 800 + CONFIG.restart_reset_ms + 200]


def test_without_restart_a_dead_broker_stays_dead() -> None:
    world = FakeProcesses(lives={1: [Life(ends_ms=1_000)]})
    world.stop_at(50_000)
    run = Run(world, Config(restart=False))

    run.go()

    assert world.started_ms == {1: [0], 2: [0], 3: [0]}
    assert run.events(1)[-1] == "broker_given_up"
    assert run.events(1).count("broker_given_up") == 1


def test_without_restart_a_lost_majority_ends_the_cluster() -> None:
    world = FakeProcesses(lives={number: [Life(ends_ms=1_000 * number)] for number in (1, 2, 3)})
    run = Run(world, Config(restart=False))

    with pytest.raises(MajorityLost, match="1 of 3 brokers is left"):
        run.go()

    assert not any(child.is_living for child in world.children.values())


def test_a_broker_started_by_hand_counts_for_the_majority() -> None:
    world = FakeProcesses(lives={1: [Life(ends_ms=1_000)], 2: [Life(ends_ms=3_000)]})
    world.at(2_000, lambda: world.holders.add(FOLDER / "broker-1"))
    world.stop_at(50_000)

    Run(world, Config(restart=False)).go()

    assert world.now_ms >= 50_000


@pytest.mark.parametrize("code", [Exit.DISK_FAILED, Exit.IDENTITY, Exit.FORMAT_TOO_NEW, Exit.CONFIG])
def test_what_a_restart_does_not_mend_is_not_tried_again(code: Exit) -> None:
    world = FakeProcesses(lives={2: [Life(ends_ms=1_000, code=code)]})
    world.stop_at(50_000)
    run = Run(world)

    run.go()

    assert world.started_ms[2] == [0]
    assert run.events(2)[-1] == "broker_given_up"


def test_when_no_majority_is_left_to_keep_the_cluster_has_failed() -> None:
    world = FakeProcesses(
        lives={number: [Life(ends_ms=1_000 * number, code=Exit.DISK_FAILED)] for number in (1, 2, 3)}
    )

    with pytest.raises(BrokerFailed) as caught:
        Run(world).go()

    assert (caught.value.plan.broker_id, caught.value.code) == (2, Exit.DISK_FAILED)


@pytest.mark.parametrize("code", [Exit.FAILED, Exit.PORT_IN_USE, Exit.OK])
def test_a_broker_that_ends_by_itself_before_all_are_ready_fails_the_start(code: Exit) -> None:
    world = FakeProcesses(lives={2: [Life(ends_ms=10, code=code)]})

    with pytest.raises(BrokerFailed) as caught:
        Run(world).go()

    assert (caught.value.plan.broker_id, caught.value.code) == (2, code)
    assert not any(child.is_living for child in world.children.values())


def test_a_broker_killed_before_all_are_ready_is_started_again() -> None:
    world = FakeProcesses(lives={2: [Life(ends_ms=10), Life()]})
    world.stop_at(1_000)
    run = Run(world)

    run.go()

    assert run.ready_ms == [260]


def test_a_cluster_that_is_not_ready_in_time_names_who_is_missing() -> None:
    world = FakeProcesses(lives={2: [Life(ready_ms=70_000)]})

    with pytest.raises(NotReady, match="broker 2") as caught:
        Run(world).go()

    assert [each.broker_id for each in caught.value.plans] == [2]
    assert world.now_ms == CONFIG.ready_ms_max + 20
    assert not any(child.is_living for child in world.children.values())


def test_a_stop_while_starting_ends_quietly() -> None:
    world = FakeProcesses(lives={2: [Life(ready_ms=30_000)]})
    world.stop_at(1_000)
    run = Run(world)

    run.go()

    assert run.ready_ms == []
    assert not any(child.is_living for child in world.children.values())


def test_a_broker_started_by_hand_keeps_the_place_until_it_is_gone() -> None:
    locked = Life(ends_ms=30, ready_ms=FOR_EVER_MS, code=Exit.FOLDER_LOCKED)
    world = FakeProcesses(lives={2: [Life(ends_ms=1_000), locked, Life()]})
    world.holders.add(FOLDER / "broker-2")
    world.at(20_000, lambda: world.holders.clear())
    world.stop_at(30_000)
    run = Run(world)

    run.go()

    first, second, third = world.started_ms[2]
    assert (first, second) == (0, 1_200)
    assert 20_000 <= third <= 20_000 + CONFIG.restart_pause_ms_min
    assert "broker_place_taken" in run.events(2)


def test_a_lock_whose_holder_is_unknown_is_tried_with_growing_pauses() -> None:
    locked = Life(ends_ms=0, ready_ms=FOR_EVER_MS, code=Exit.FOLDER_LOCKED)
    world = FakeProcesses(lives={2: [locked, locked, locked, Life()]})
    world.stop_at(5_000)
    run = Run(world)

    run.go()

    assert world.started_ms[2] == [0, 200, 600, 1_400]
    assert run.ready_ms == [1_450]


def test_a_start_that_the_system_refuses_is_tried_again_while_the_cluster_serves() -> None:
    world = FakeProcesses(lives={2: [Life(ends_ms=1_000), Life()]})
    world.at(900, lambda: world.refusals.append(BlockingIOError(11, "try again")))
    world.stop_at(5_000)
    run = Run(world)

    run.go()

    assert world.started_ms[2] == [0, 1_600]
    assert "broker_not_started" in run.events(2)


def test_a_first_start_that_the_system_refuses_ends_the_command() -> None:
    world = FakeProcesses(refusals=[PermissionError(13, "denied")])

    with pytest.raises(PermissionError):
        Run(world).go()
