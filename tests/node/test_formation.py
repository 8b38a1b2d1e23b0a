"""A cluster is formed once: when all seeds are there, blank, and of one mind."""

from __future__ import annotations

from dataclasses import replace

from tidings.node.formation import Formation, Founding, Waiting
from tidings.node.handshake import Hello

SEEDS = ("h:1", "h:2", "h:3")


def blank(broker_id: int, *, directory: str = "", seeds: tuple[str, ...] = SEEDS) -> Hello:
    return Hello(
        cluster_id="",
        broker_id=broker_id,
        directory=directory or f"{broker_id:032x}",
        seeds=seeds,
        peer=f"h:{broker_id}",
        kafka=f"h:{9_090 + broker_id}",
    )


def member(cluster_id: str, broker_id: int = 2) -> Hello:
    return replace(blank(broker_id), cluster_id=cluster_id, founders=((1, 11), (2, 22)))


def decision(own: Hello, *others: Hello) -> Founding | Waiting:
    formation = Formation(own)
    for other in others:
        formation.seen(other)
    return formation.decide()


def test_all_seeds_work_out_the_same_cluster() -> None:
    hellos = [blank(number) for number in (1, 2, 3)]

    decisions = [decision(own, *hellos[::-1]) for own in hellos]

    assert isinstance(decisions[0], Founding)
    assert decisions == [decisions[0]] * 3
    assert len(decisions[0].cluster_id) == 22
    assert decisions[0].membership().voters == tuple(hello.member for hello in hellos)


def test_other_disks_make_another_cluster() -> None:
    one = decision(blank(1, seeds=("h:1",)))
    other = decision(blank(1, seeds=("h:1",), directory="f" * 32))

    assert isinstance(one, Founding)
    assert isinstance(other, Founding)
    assert one.cluster_id != other.cluster_id


def test_a_broker_alone_forms_a_cluster_of_one() -> None:
    formed = decision(blank(1, seeds=("h:1",)))

    assert isinstance(formed, Founding)
    assert formed.members == {1: blank(1).member}


def test_it_waits_for_a_seed_that_has_not_answered() -> None:
    assert decision(blank(1), blank(3)) == Waiting(reason="no answer yet from h:2")


def test_it_waits_where_the_lists_differ() -> None:
    other = blank(3, seeds=("h:1", "h:3"))

    assert decision(blank(1), blank(2), other) == Waiting(reason="h:3 has another list: h:1, h:3")


def test_it_waits_where_two_have_one_id() -> None:
    twin = replace(blank(2), broker_id=3)

    assert decision(blank(1), twin, blank(3)) == Waiting(reason="two seeds have the same broker id")


def test_who_is_no_seed_waits_for_a_cluster_to_join() -> None:
    newcomer = blank(4)

    waiting = decision(newcomer, blank(1), blank(2), blank(3))
    joined = decision(newcomer, member("c"))

    assert waiting == Waiting(reason="h:4 is none of the seeds, and no seed is in a cluster yet")
    assert joined == Founding(cluster_id="c", members={1: 11, 2: 22})


def test_a_blank_broker_joins_the_cluster_it_finds_however_many_are_blank() -> None:
    assert decision(blank(1), member("c"), blank(3)) == Founding(cluster_id="c", members={1: 11, 2: 22})


def test_it_joins_none_of_two_clusters() -> None:
    waiting = decision(blank(1), member("c", 2), member("d", 3))

    assert waiting == Waiting(reason="the brokers belong to different clusters (h:2: c, h:3: d)")


def test_a_seed_that_was_wiped_meanwhile_counts_as_it_is_now() -> None:
    before, now = blank(2), blank(2, directory="e" * 32)

    formed = decision(blank(1), before, blank(3), now)

    assert isinstance(formed, Founding)
    assert formed.members[2] == now.member


def test_a_founder_is_known_by_its_member() -> None:
    founding = Founding(cluster_id="c", members={1: 11, 2: 22})

    assert founding.founder_of(22) == 2
    assert founding.founder_of(33) is None
