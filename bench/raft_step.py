"""Raft benchmark: microseconds per step of one small entry's way. Run: python -m bench.raft_step

Each figure is the best of several rounds, since the other load of a machine only ever adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from tidings.raft import wire
from tidings.raft.config import RaftConfig
from tidings.raft.entries import EntryKind, HardState, Membership, StartState
from tidings.raft.host import RaftHost
from tidings.raft.messages import Append, AppendReply, Message

ROUNDS = 9
ENTRIES = 2_000
GROUP = 1
PAYLOAD = bytes(100)
MEMBERS = (1, 2, 3)
NOW_MS = 1_000_000
IDLE_GROUPS = 1_000
TICK_MS = 20


def add_new(host: RaftHost, group: int, start: StartState) -> None:
    host.add(
        group=group,
        start=start,
        hard=HardState(term=0, vote=0),
        tail=[],
        first_index=1,
        first_offset=0,
        doubtful=False,
        damaged=False,
        now_ms=NOW_MS,
    )


class Cluster:
    """Three hosts whose messages and disks are as fast as a call."""

    def __init__(self) -> None:
        start = StartState(index=0, term=0, offset=0, membership=Membership(voters=MEMBERS))
        self.hosts = {
            member: RaftHost(member=member, config=RaftConfig(), random=Random(member)) for member in MEMBERS
        }
        for host in self.hosts.values():
            add_new(host, GROUP, start)
        self.hosts[1].tick(NOW_MS + 50)
        while any(self.move(member, NOW_MS) for member in MEMBERS):
            pass
        self.leader = self.hosts[1].groups[GROUP]
        assert self.leader.term_start_committed

    def move(self, member: int, now_ms: int) -> bool:
        """Flush one host and deliver what it has to say; whether there was anything."""
        host = self.hosts[member]
        host.flush(now_ms)
        flush = host.outbox.seal()
        if flush is not None:
            host.persisted(flush, now_ms)
        messages = self.take_messages(member)
        for message in messages:
            self.hosts[message.receiver].step(message, now_ms)
        return bool(messages)

    def take_messages(self, member: int) -> list[Message]:
        outbox = self.hosts[member].outbox
        messages, outbox.messages = outbox.messages, []
        return messages


class Stopwatch:
    """The best time per call of each step, over all rounds."""

    def __init__(self) -> None:
        self.best_us: dict[str, float] = {}

    def note(self, title: str, seconds: float) -> None:
        us = seconds * 1e6 / ENTRIES
        self.best_us[title] = min(us, self.best_us.get(title, us))


def main() -> None:
    watch = Stopwatch()
    for _ in range(ROUNDS):
        measure_round(watch)
    measure_wire(watch)
    measure_idle(watch)
    for title, us in watch.best_us.items():
        print(f"{title:<66}{us:8.2f} us")


def measure_round(watch: Stopwatch) -> None:
    """Every step of an entry's way from proposal to commit, the steps of three hosts taken apart."""
    cluster = Cluster()
    leader_host, clock = cluster.hosts[1], time.perf_counter
    leading = saving = following = sealing = 0.0
    for _ in range(ENTRIES):
        began = clock()
        cluster.leader.propose(EntryKind.RECORDS, PAYLOAD, 1, NOW_MS)
        leader_host.flush(NOW_MS)
        leading += clock() - began

        began = clock()
        flush = leader_host.outbox.seal()
        assert flush is not None
        sealing += clock() - began
        began = clock()
        leader_host.persisted(flush, NOW_MS)
        saving += clock() - began

        replies: list[Message] = []
        for message in cluster.take_messages(1):
            follower = cluster.hosts[message.receiver]
            began = clock()
            follower.step(message, NOW_MS)
            following += clock() - began
            flush = follower.outbox.seal()
            assert flush is not None
            follower.persisted(flush, NOW_MS)
            replies += cluster.take_messages(message.receiver)

        began = clock()
        for reply in replies:
            leader_host.step(reply, NOW_MS)
        leading += clock() - began
    assert cluster.leader.commit_index == cluster.leader.last_index
    watch.note("leader: propose, flush to 2 followers, 2 replies, commit", leading)
    watch.note("leader: seal a flush of one entry", sealing)
    watch.note("leader: own flush durable", saving)
    watch.note("follower: append of one entry with its reply", following / 2)


def measure_idle(watch: Stopwatch) -> None:
    """What a host does in a second for groups in which nothing happens, a third of which it leads."""
    cluster = Cluster()
    for group in range(2, IDLE_GROUPS + 1):
        voters = MEMBERS[group % 3 :] + MEMBERS[: group % 3]
        start = StartState(index=0, term=0, offset=0, membership=Membership(voters=voters))
        for host in cluster.hosts.values():
            add_new(host, group, start)
    now_ms = NOW_MS
    took = 0.0
    for second in range(5):
        for _ in range(1000 // TICK_MS):
            now_ms += TICK_MS
            for member, host in cluster.hosts.items():
                began = time.perf_counter()
                host.tick(now_ms)
                took += (time.perf_counter() - began) if second >= 3 else 0.0
                while cluster.move(member, now_ms):
                    pass
    watch.note(f"a second of {IDLE_GROUPS} idle groups: ticks and beats of one host", took / 2 / 3 * ENTRIES)


def measure_wire(watch: Stopwatch) -> None:
    cluster = Cluster()
    entry = cluster.leader.propose(EntryKind.RECORDS, PAYLOAD, 1, NOW_MS)
    append = Append(GROUP, 1, 1, 2, entry.index - 1, 1, entry.index - 1, [entry], 0, 0)
    reply = AppendReply(GROUP, 1, 2, 1, True, 1, 2, 2, 0, 1, False, True, 0, 0)
    append_frame, reply_frame = b"".join(wire.encode([append])), b"".join(wire.encode([reply]))
    many = [append] * 32
    many_frame = b"".join(wire.encode(many))
    cases: list[tuple[str, Callable[[], object]]] = [
        ("wire: encode a frame of one append", lambda: wire.encode([append])),
        ("wire: decode a frame of one append", lambda: wire.decode(append_frame)),
        ("wire: encode a frame of one reply", lambda: wire.encode([reply])),
        ("wire: decode a frame of one reply", lambda: wire.decode(reply_frame)),
        ("wire: encode a frame of 32 appends", lambda: wire.encode(many)),
        ("wire: decode a frame of 32 appends", lambda: wire.decode(many_frame)),
    ]
    for title, call in cases:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(ENTRIES):
                call()
            watch.note(title, time.perf_counter() - began)


if __name__ == "__main__":
    main()
