"""What seeds turn on."""

from random import Random

from tidings.sim.swarm import Fault, Knobs, draw

DRAWN: list[Knobs] = [draw(Random(seed), duration_ms=1_000) for seed in range(300)]


def test_the_same_seed_draws_the_same_knobs() -> None:
    assert draw(Random(4), duration_ms=1_000) == DRAWN[4]


def test_every_fault_is_on_in_some_seeds_and_off_in_others() -> None:
    for fault in Fault:
        share = sum(fault in knobs.faults for knobs in DRAWN) / len(DRAWN)
        assert 0.2 < share < 0.6, (fault, share)


def test_some_seeds_are_calm_and_then_nothing_gets_lost() -> None:
    calm = [knobs for knobs in DRAWN if knobs.is_calm]

    assert 3 < len(calm) < 60
    assert all(knobs.network.is_stream and not knobs.network.tail_share for knobs in calm)
    assert all(not knobs.disk.slow_share for knobs in calm)


def test_groups_are_placed_on_machines_that_exist() -> None:
    for knobs in DRAWN:
        members = range(1, knobs.machine_count + 1)
        for voters in knobs.voters_by_group.values():
            assert len(set(voters)) in (3, 4, 5)
            assert set(voters) <= set(members)


def test_spares_are_there_only_where_replicas_move() -> None:
    with_spares = [knobs for knobs in DRAWN if knobs.machine_count not in (3, 5)]

    assert with_spares
    assert all(Fault.REASSIGN in knobs.faults for knobs in with_spares)
