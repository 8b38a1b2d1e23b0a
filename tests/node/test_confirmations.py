"""Tests of node/confirmations.py: every question whether a leader still leads gets one answer."""

from __future__ import annotations

from tests.node.client import Client
from tests.node.world import World
from tidings.node.confirmations import Confirmations
from tidings.raft.group import Group


def leading_group(world: World, client: Client) -> Group:
    (group,) = client.create_topic()
    return world.lead(group).replica(group).group


def test_an_answer_reaches_the_one_who_asked(world: World, client: Client) -> None:
    group = leading_group(world, client)
    confirmations = Confirmations()
    answers: list[tuple[str, bool]] = []
    confirmations.ask(group, lambda leads: answers.append(("first", leads)), world.now_ms)
    confirmations.ask(group, lambda leads: answers.append(("second", leads)), world.now_ms)

    confirmations.answer(group.group, 2, leads=True)
    confirmations.answer(group.group, 1, leads=False)

    assert answers == [("second", True), ("first", False)]


def test_nobody_is_answered_twice(world: World, client: Client) -> None:
    group = leading_group(world, client)
    confirmations = Confirmations()
    answers: list[bool] = []
    confirmations.ask(group, answers.append, world.now_ms)

    confirmations.answer(group.group, 1, leads=True)
    confirmations.answer(group.group, 1, leads=False)
    confirmations.leadership_lost(group.group)

    assert answers == [True]


def test_who_asked_about_a_leader_that_lost_office_is_told_no(world: World, client: Client) -> None:
    group = leading_group(world, client)
    confirmations = Confirmations()
    answers: list[bool] = []
    confirmations.ask(group, answers.append, world.now_ms)

    confirmations.leadership_lost(group.group + 1)
    answers_for_others = list(answers)
    confirmations.leadership_lost(group.group)

    assert answers_for_others == []
    assert answers == [False]


def test_who_asks_a_follower_is_told_no(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    follower = next(machine for machine in world.running if machine is not leader)
    answers: list[bool] = []

    follower.replica(group).confirm_leadership(answers.append, world.now_ms)
    answers_within_the_call = list(answers)
    follower.wake()
    world.run(5)

    assert answers_within_the_call == []
    assert answers == [False]


def test_who_asks_a_leader_is_told_yes_when_a_majority_answered(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    answers: list[bool] = []

    leader.replica(group).confirm_leadership(answers.append, world.now_ms)
    leader.wake()
    world.run(5)

    assert answers == [True]


def test_who_waits_when_the_topic_is_deleted_is_told_no(world: World, client: Client) -> None:
    (group,) = client.create_topic()
    leader = world.lead(group)
    world.loses = lambda sender, receiver, frame: True  # no follower confirms anything
    answers: list[bool] = []
    leader.replica(group).confirm_leadership(answers.append, world.now_ms)
    leader.wake()
    world.run(20)

    del leader.node.broker.cluster.partitions[group]
    leader.node.replicas.placed([group], world.now_ms)
    leader.wake()
    world.run(20)

    assert answers == [False]
