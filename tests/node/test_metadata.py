"""Tests of node/metadata.py: how a broker's proposals get into the cluster's log, and what answers them."""

from __future__ import annotations

import pytest

from tests.fakes.world import topic_id_of
from tests.node.client import Client
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.commands import (
    AllotProducerIds,
    CreateTopic,
    DeleteTopic,
    SetTopicConfigs,
    encode_command,
)
from tidings.broker.outcome import Outcome
from tidings.node.messages import Propose, Refused, decode
from tidings.protocol.errors import ErrorCode
from tidings.raft.entries import EntryKind

STRANGER = 999  # a member that no group knows


class Answers:
    """What was told of proposals."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome | None] = []

    def __call__(self, outcome: Outcome | None) -> None:
        self.outcomes.append(outcome)


def create(name: str) -> bytes:
    command = CreateTopic(
        name=name,
        topic_id=topic_id_of(name),
        partition_count=1,
        replication_factor=3,
        assignments=((1, 2, 3),),
    )
    return encode_command(command)


def propose(world: World, machine: Machine, command: bytes) -> Answers:
    answers = Answers()
    machine.node.metadata.propose(command, answers, world.now_ms)
    assert answers.outcomes == []  # never from within the call
    machine.wake()
    return answers


def answered(world: World, answers: Answers) -> Outcome | None:
    world.run_until(lambda: bool(answers.outcomes), within_ms=60_000)
    (outcome,) = answers.outcomes
    return outcome


def other_than(world: World, machine: Machine) -> Machine:
    return next(other for other in world.running if other is not machine)


def topic_count(machine: Machine) -> int:
    return len(machine.node.broker.cluster.topics)


def is_proposal(frame: bytes) -> bool:
    return frame[:1] == b"\x01"


def test_the_leaders_proposal_is_answered_by_its_own_application(world: World) -> None:
    leader = world.lead(METADATA_GROUP)

    outcome = answered(world, propose(world, leader, create("t")))

    assert outcome is not None
    assert (outcome.code, outcome.groups) == (ErrorCode.NONE, (1,))
    assert topic_count(leader) == 1


def test_another_brokers_proposal_is_answered_when_it_has_applied_it_itself(world: World) -> None:
    follower = other_than(world, world.lead(METADATA_GROUP))

    outcome = answered(world, propose(world, follower, create("t")))

    assert outcome is not None
    assert outcome.groups == (1,)
    assert topic_count(follower) == 1


def test_a_proposer_whose_disk_is_slow_is_answered_when_it_has_the_change_itself(world: World) -> None:
    follower = other_than(world, world.lead(METADATA_GROUP))
    follower.holds_flushes = True
    answers = propose(world, follower, create("t"))
    world.run(200)
    outcomes_while_slow = list(answers.outcomes)

    follower.release_flushes()
    answered(world, answers)

    assert outcomes_while_slow == []
    assert topic_count(world.lead(METADATA_GROUP)) == 1


def test_a_refusal_is_an_outcome_too(world: World) -> None:
    leader = world.lead(METADATA_GROUP)
    command = encode_command(DeleteTopic(topic_id=topic_id_of("nothing")))

    outcome = answered(world, propose(world, leader, command))

    assert outcome is not None
    assert outcome.code == ErrorCode.UNKNOWN_TOPIC_ID


def test_proposals_are_answered_each_by_its_own(world: World) -> None:
    follower = other_than(world, world.lead(METADATA_GROUP))
    block = encode_command(AllotProducerIds(broker_id=1, id_count=10))

    answers = [propose(world, follower, block) for _ in range(5)]
    outcomes = [answered(world, one) for one in answers]

    first_ids = [outcome.value for outcome in outcomes if outcome is not None]
    assert first_ids == [first_ids[0] + 10 * place for place in range(5)]


@pytest.mark.parametrize("lost_count", [1, 3])
def test_a_proposal_that_is_lost_on_the_way_is_sent_again(world: World, lost_count: int) -> None:
    follower = other_than(world, world.lead(METADATA_GROUP))
    lost: list[bytes] = []

    def loses(sender: Machine, receiver: Machine, frame: bytes) -> bool:
        is_lost = is_proposal(frame) and len(lost) < lost_count
        if is_lost:
            lost.append(frame)
        return is_lost

    world.loses = loses

    outcome = answered(world, propose(world, follower, create("t")))

    assert outcome is not None
    assert outcome.code == ErrorCode.NONE
    assert len(lost) == lost_count


def test_a_proposal_to_a_leader_that_dies_reaches_the_next_one(world: World) -> None:
    leader = world.lead(METADATA_GROUP)
    follower = other_than(world, leader)
    world.loses = lambda sender, receiver, frame: receiver is leader and is_proposal(frame)
    answers = propose(world, follower, create("t"))
    world.run(20)

    world.crash(leader.broker_id)
    outcome = answered(world, answers)

    assert outcome is not None
    assert outcome.code == ErrorCode.NONE
    assert topic_count(follower) == 1


def test_a_proposal_that_stands_in_the_log_twice_is_answered_by_the_first_and_changes_nothing_more(
    world: World,
) -> None:
    leader = world.lead(METADATA_GROUP)
    follower = other_than(world, leader)
    sent: list[bytes] = []

    def copies(sender: Machine, receiver: Machine, frame: bytes) -> bool:
        if is_proposal(frame):
            sent.append(frame)
        return False

    world.loses = copies
    outcome = answered(world, propose(world, follower, create("t")))

    leader.receive(follower.member, sent[0])
    world.run(100)

    assert outcome is not None
    assert outcome.groups == (1,)
    assert topic_count(leader) == topic_count(follower) == 1
    assert leader.node.broker.cluster.next_group == 2


def test_a_leader_that_is_slow_appends_a_proposal_once(world: World) -> None:
    leader = world.lead(METADATA_GROUP)
    follower = other_than(world, leader)
    sent: list[bytes] = []

    def copies(sender: Machine, receiver: Machine, frame: bytes) -> bool:
        if is_proposal(frame):
            sent.append(frame)
            leader.receive(follower.member, frame)
        return False

    world.loses = copies
    last_index = leader.node.metadata.group.log.last_index
    answered(world, propose(world, follower, create("t")))

    leader.receive(follower.member, sent[0])
    world.run(100)

    assert leader.node.metadata.group.log.last_index == last_index + 1


def test_a_copy_that_another_leader_appended_does_not_undo_what_came_later(world: World) -> None:
    leader = world.lead(METADATA_GROUP)
    answered(world, propose(world, leader, create("t")))
    old, new = (
        encode_command(SetTopicConfigs(topic_id=topic_id_of("t"), values={"retention.ms": value}))
        for value in ("1", "2")
    )
    answered(world, propose(world, leader, old))
    log = leader.node.metadata.group.log
    (first,) = log.entries_between(log.last_index, log.last_index)
    answered(world, propose(world, leader, new))

    leader.node.metadata.group.propose(EntryKind.COMMAND, first.payload, 0, world.now_ms)
    leader.wake()
    world.run(200)

    configs = [machine.node.broker.cluster.topics["t"].configs for machine in world.running]
    assert configs == [{"retention.ms": "2"}] * len(configs)


def test_a_proposal_that_nobody_can_commit_is_given_up_after_a_while() -> None:
    world = World(controller_timeout_ms=4_000)
    world.run_until(world.is_serving)
    leader = world.lead(METADATA_GROUP)
    world.isolate(leader.broker_id)
    before_ms = world.now_ms

    outcome = answered(world, propose(world, leader, create("t")))

    assert outcome is None
    assert 4_000 <= world.now_ms - before_ms <= 4_500


def test_a_proposer_without_a_leader_waits_for_one(world: World) -> None:
    leader = world.lead(METADATA_GROUP)
    follower = other_than(world, leader)
    world.crash(leader.broker_id)
    world.run(2)

    outcome = answered(world, propose(world, follower, create("t")))

    assert outcome is not None
    assert outcome.code == ErrorCode.NONE


def test_a_stranger_is_told_of_a_refusal_by_word(world: World) -> None:
    """It is no member of the group, so it will not see what comes of its proposal in its log."""
    leader = world.lead(METADATA_GROUP)
    proposal = STRANGER.to_bytes(8, "little") + bytes(8)
    command = encode_command(DeleteTopic(topic_id=topic_id_of("nothing")))

    leader.receive(STRANGER, Propose(proposal, command).encode())
    world.run(50)

    ((member, frame),) = world.strays
    said = decode(frame)
    assert isinstance(said, Refused)
    assert (member, said.proposal, said.code) == (STRANGER, proposal, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("command", [b"", b"\x02{}", b'\x01{"do":"Later"}', b'\x01{"do":"DeleteTopic"}'])
def test_a_command_that_the_leader_cannot_read_is_refused_and_not_appended(
    world: World, command: bytes
) -> None:
    leader = world.lead(METADATA_GROUP)
    follower = other_than(world, leader)
    last_index = leader.node.metadata.group.log.last_index

    outcome = answered(world, propose(world, follower, command + b" "))

    assert outcome is not None
    assert outcome.code == ErrorCode.UNSUPPORTED_VERSION
    assert leader.node.metadata.group.log.last_index == last_index


def test_a_leaders_word_on_a_proposal_answers_it_once(world: World) -> None:
    follower = other_than(world, world.lead(METADATA_GROUP))
    sent: list[bytes] = []

    def loses(sender: Machine, receiver: Machine, frame: bytes) -> bool:
        if is_proposal(frame):
            sent.append(frame)
        return is_proposal(frame)

    world.loses = loses
    answers = propose(world, follower, create("t"))
    world.run(5)
    proposed = decode(sent[0])
    assert isinstance(proposed, Propose)

    for _ in range(2):
        refused = Refused(proposed.proposal, ErrorCode.INVALID_REQUEST, "no")
        follower.receive(world.lead(METADATA_GROUP).member, refused.encode())

    assert [outcome and outcome.code for outcome in answers.outcomes] == [ErrorCode.INVALID_REQUEST]


def test_a_broker_that_was_away_gets_a_copy_of_the_whole_state_when_the_log_was_cut(
    world: World, client: Client
) -> None:
    away = other_than(world, world.lead(METADATA_GROUP))
    world.crash(away.broker_id)
    for number in range(5):
        client.create_topic(f"t{number}", at=world.running[0].broker_id, assignments=((1, 2, 3),))
    world.run(CHECKPOINT_MS + 500)
    for machine in list(world.running):
        world.restart(machine.broker_id)
        world.lead(METADATA_GROUP)

    world.start(away.broker_id)
    world.run_until(lambda: topic_count(away) == 5)

    assert len(away.node.replicas.by_group) == 5
    assert away.node.metadata.group.log.start_index > 0


def test_a_copy_of_the_state_survives_a_crash_at_any_moment(world: World, client: Client) -> None:
    away = other_than(world, world.lead(METADATA_GROUP))
    world.crash(away.broker_id)
    client.create_topic("t", at=world.running[0].broker_id)
    world.run(CHECKPOINT_MS + 500)
    for machine in list(world.running):
        world.restart(machine.broker_id)
        world.lead(METADATA_GROUP)

    for after_ms in range(1, 14):
        world.start(away.broker_id)
        world.run(after_ms)
        world.crash(away.broker_id, keeps_flush=bool(after_ms % 2))
        world.run(5)
    world.start(away.broker_id)
    world.run_until(lambda: topic_count(away) == 1)

    assert not away.disk.problems()
