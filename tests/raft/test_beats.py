"""Beats: hosts assure each other, at a cost that no group adds to."""

from __future__ import annotations

import pytest

from tests.raft.network import GROUP, Network, running
from tidings.raft.messages import Beat, BeatReply, Led, LedReply, Message


def between_hosts(messages: list[Message]) -> list[Message]:
    return [message for message in messages if isinstance(message, Beat | BeatReply | Led | LedReply)]


def many_groups(count: int) -> Network:
    """Three hosts with groups led by each of them in turn, at rest."""
    network = Network([1, 2, 3])
    for group in range(1, count + 1):
        voters = [[1, 2, 3], [2, 3, 1], [3, 1, 2]][group % 3]
        network.create(voters, group=group)
    network.until(lambda: all(network.leaders(group) for group in range(1, count + 1)))
    network.pass_time(1_500)
    return network


@pytest.mark.parametrize("count", [3, 60])
def test_idle_hosts_exchange_as_many_messages_for_one_group_as_for_many(count: int) -> None:
    network = many_groups(count)
    sent = len(network.sent)

    network.pass_time(1_500)

    messages = network.sent[sent:]
    assert len(messages) == 10 * 3 * 2 * 2, "ten beats, each of three hosts to two others, each answered"
    assert between_hosts(messages) == messages


def test_beats_keep_idle_leaders_and_followers_together() -> None:
    network = many_groups(9)
    leaders = {group: network.leaders(group) for group in range(1, 10)}

    network.pass_time(10_000)

    assert {group: network.leaders(group) for group in range(1, 10)} == leaders
    assert all(network.group(member, 1).term == 1 for member in (1, 2, 3))


def test_a_host_that_beats_no_more_loses_all_its_groups() -> None:
    network = many_groups(9)

    network.crash(1)
    network.pass_time(4_000)

    for group in range(1, 10):
        assert network.leaders(group) in ([2], [3])


def test_hosts_that_disagree_send_the_whole_list_and_agree_again() -> None:
    network = many_groups(6)
    table = network.hosts[2].leaders
    for group in range(1, 7):
        if network.leaders(group) != [2]:
            table.forget(group)
    sent = len(network.sent)

    network.pass_time(300)

    lists = [m for m in network.sent[sent:] if isinstance(m, Led)]
    assert {(led.sender, led.is_complete) for led in lists} == {(1, True), (3, True)}
    assert network.hosts[2].leader_table[3] == network.hosts[1].leader_table[3]


def test_a_follower_that_gave_up_its_leader_finds_it_again_by_the_beats() -> None:
    network = running()
    sent = len(network.sent)
    network.group(3).leader = 0
    network.hosts[3].leaders.disown(GROUP, 1)

    network.pass_time(400)

    assert network.group(3).leader == 1
    assert [m for m in network.sent[sent:] if isinstance(m, Led)]


def test_a_leader_learns_by_the_list_that_it_leads_no_more() -> None:
    """All it hears is a host's word that a newer term has begun."""
    network = Network([1, 2, 3, 4])
    network.create([1, 2, 3])
    network.until(lambda: bool(network.leaders()))
    network.hosts[1].meet(4)
    network.pass_time(200)
    network.hosts[4].leaders.learn(GROUP, 0, 9)

    network.pass_time(300)

    assert network.group(1).term == 9


def test_a_leader_that_stepped_down_is_no_longer_believed_to_lead() -> None:
    network = running()
    network.group(1).step_down(network.now_ms)

    network.pass_time(300)

    assert network.hosts[3].leader_table[GROUP][0] != 1
    assert network.group(3).leader != 1


def test_a_restarted_leader_is_no_longer_believed_to_lead() -> None:
    network = running()
    network.crash(1)
    network.restart(1)

    network.pass_time(200)

    assert network.hosts[2].leader_table[GROUP] == (0, 1)
    network.until(lambda: bool(network.leaders()), within_ms=3_000)


def test_a_late_answer_counts_as_of_its_question() -> None:
    network = running()
    asked_ms = network.now_ms - 700
    before_ms = network.hosts[1].peers.agreed_ms[2]

    network.deliver(BeatReply(0, 0, 2, 1, asked_ms, True))
    assert network.hosts[1].peers.agreed_ms[2] == before_ms
    network.deliver(BeatReply(0, 0, 2, 1, network.now_ms + 10_000, True))

    assert network.hosts[1].peers.agreed_ms[2] == network.now_ms, "never in the future"


def test_agreeing_with_what_this_host_leads_makes_nobody_a_living_leader() -> None:
    """A leader that came back without its group, and so sends no beats, still answers those of others."""
    network = running()
    network.hosts[1].remove(GROUP)
    network.hosts[1].forget_member(2)
    network.hosts[1].forget_member(3)

    network.until(lambda: any(member != 1 for member in network.leaders()), within_ms=4_000)


def test_no_beats_go_to_a_host_that_is_down_or_forgotten() -> None:
    network = running()
    network.hosts[1].member_down(2, network.now_ms)
    network.hosts[1].forget_member(3)
    sent = len(network.sent)

    network.hosts[1].tick(network.now_ms + 200)
    network.collect()

    assert not [m for m in network.sent[sent:] if isinstance(m, Beat) and m.sender == 1]


def test_an_announcement_waits_until_the_term_is_durable() -> None:
    network = Network([1, 2])
    network.slow_disks.add(1)
    network.hosts[1].meet(2)
    network.create([1])
    network.pass_time(300)
    assert network.group(1).is_leader
    assert GROUP not in network.hosts[2].leader_table

    network.slow_disks.clear()
    network.settle()

    assert network.hosts[2].leader_table[GROUP] == (1, 1)
