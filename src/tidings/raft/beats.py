"""Beats: how two hosts assure each other that they live and agree on who leads what, at a cost that no group
adds to.

The one rule: a host counts as heard when both digests agree; else the whole list goes over, and then both
agree again or the sender learns what it does not lead any more. It must not know what a group does with being
led. Tests: tests/raft/test_beats.py

    every beat interval    Beat(digest of what I lead)  ->
                           <-  BeatReply(matches)          equal: heard as a leader, agreed as a follower
    if they differ         Led(all that I lead)         ->  heard; whatever follows me goes on doing so
                           <-  LedReply(what is outdated)  I step down there
    on winning an election Led(what is new)             ->
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tidings.raft.leaders import LeaderTable
from tidings.raft.messages import NO_GROUP, Beat, BeatReply, Led, LedReply, Message
from tidings.raft.outbox import Outbox
from tidings.raft.peers import Peers
from tidings.raft.roles import become_follower
from tidings.raft.state import GroupState, Role


class BeatingHost(Protocol):
    """What beats ask of the host."""

    member: int
    outbox: Outbox
    peers: Peers
    leaders: LeaderTable

    @property
    def groups(self) -> Mapping[int, GroupState]: ...


def send_beats(host: BeatingHost, now_ms: int) -> None:
    digest = host.leaders.digest_of(host.member)
    for member in host.peers.known:
        if member not in host.peers.down:
            host.outbox.messages.append(Beat(NO_GROUP, 0, host.member, member, now_ms, digest))


def announce(host: BeatingHost) -> None:
    """Tell all hosts what this one leads newly, as far as the terms are durable."""
    outbox = host.outbox
    leads: list[tuple[int, int]] = []
    for number in list(outbox.led):
        group = host.groups[number]
        if group.role is Role.LEADER and group.hard_flush > outbox.durable_flush:
            continue  # the term may not be told yet: with a later flush
        del outbox.led[number]
        if group.role is Role.LEADER:
            leads.append((number, group.term))
    if leads:
        for member in host.peers.known:
            outbox.messages.append(Led(NO_GROUP, 0, host.member, member, 0, False, leads))


def on_beat(host: BeatingHost, beat: Beat, now_ms: int) -> None:
    matches = beat.digest == host.leaders.digest_of(beat.sender)
    if matches:
        host.peers.heard_ms[beat.sender] = now_ms
    host.outbox.messages.append(BeatReply(NO_GROUP, 0, host.member, beat.sender, beat.sent_ms, matches))


def on_beat_reply(host: BeatingHost, reply: BeatReply, now_ms: int) -> None:
    if reply.matches:
        # As of the question: an answer that was long under way says nothing about now.
        host.peers.agreed(reply.sender, min(reply.sent_ms, now_ms))
        return
    durable_flush = host.outbox.durable_flush
    leads = [
        (number, term)
        for number, term in host.leaders.led_by(host.member)
        if host.groups[number].hard_flush <= durable_flush
    ]
    host.outbox.messages.append(Led(NO_GROUP, 0, host.member, reply.sender, now_ms, True, leads))


def on_led(host: BeatingHost, led: Led, now_ms: int) -> None:
    """Take the sender's word for what it leads, and follow it where this host has a replica."""
    outdated: list[tuple[int, int]] = []
    for number, term in led.leads:
        known_term = newest_term(host, number)
        if known_term > term:
            outdated.append((number, known_term))
        else:
            host.leaders.learn(number, led.sender, term)
            group = host.groups.get(number)
            if group is not None:
                follow(group, led.sender, term, now_ms)
    if led.is_complete:
        disown_others(host, led)
    host.outbox.messages.append(LedReply(NO_GROUP, 0, host.member, led.sender, led.sent_ms, outdated))


def newest_term(host: BeatingHost, number: int) -> int:
    """The newest term of a group that this host knows and may tell."""
    _, term = host.leaders.table.get(number, (0, 0))
    group = host.groups.get(number)
    if group is not None and group.hard_flush > host.outbox.durable_flush:
        return 0
    return term


def follow(group: GroupState, leader: int, term: int, now_ms: int) -> None:
    """As an append without entries would be taken."""
    if term < group.term:
        return
    if term > group.term or group.leader != leader:
        assert term > group.term or group.leader == 0, (group.group, group.term, group.leader, leader)
        become_follower(group, term, leader, now_ms)
    group.last_contact_ms = now_ms


def disown_others(host: BeatingHost, led: Led) -> None:
    """What the sender does not name, it does not lead."""
    named = dict(led.leads)
    for number, term in host.leaders.led_by(led.sender):
        if named.get(number, -1) < term:
            host.leaders.disown(number, led.sender)
            group = host.groups.get(number)
            if group is not None and group.leader == led.sender:
                group.leader = 0
                group.outbox.changed[number] = None


def on_led_reply(host: BeatingHost, reply: LedReply, now_ms: int) -> None:
    host.peers.agreed(reply.sender, min(reply.sent_ms, now_ms))
    for number, term in reply.outdated:
        group = host.groups.get(number)
        if group is not None and group.role is Role.LEADER and group.term < term:
            become_follower(group, term, 0, now_ms)


HANDLERS: dict[type[Message], Callable[..., None]] = {
    Beat: on_beat,
    BeatReply: on_beat_reply,
    Led: on_led,
    LedReply: on_led_reply,
}


def is_between_hosts(message: Message) -> bool:
    return message.__class__ in HANDLERS
