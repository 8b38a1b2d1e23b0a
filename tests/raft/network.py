"""Several hosts joined by a network, a clock and disks that do only what a test tells them to.

    cluster = Network([1, 2, 3])            three members
    cluster.create()                        a group whose voters they are
    cluster.settle()                        deliver and flush until nothing is left to do (time stands still)
    cluster.pass_time(1500)                 tick and settle, 10 ms at a time

Messages travel as bytes. Between two calls of settle() nothing moves, so a test can look at what is under
way, drop it, or deliver it one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidings.raft import wire
from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.messages import Message
from tidings.raft.outbox import Flush

GROUP = 7
STEP_MS = 10


class Disk:
    """What a host's write-ahead log holds durably. A recovered group is made from it."""

    def __init__(self) -> None:
        self.hard_states: dict[int, HardState] = {}
        self.starts: dict[int, StartState] = {}
        self.tails: dict[int, list[Entry]] = {}

    def write(self, flush: Flush) -> None:
        self.hard_states.update(flush.hard_states)
        for group, entry in flush.entries:
            if entry.kind == EntryKind.START:
                self.tails[group] = []
                continue
            tail = [kept for kept in self.tails.get(group, []) if kept.index < entry.index]
            self.tails[group] = [*tail, entry]


class Network:
    """Hosts by member; `now_ms` is everybody's clock."""

    def __init__(self, members: list[int], config: RaftConfig | None = None, seed: int = 1) -> None:
        self.config = config if config is not None else RaftConfig()
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.hosts: dict[int, RaftHost] = {}
        self.disks: dict[int, Disk] = {}
        self.unwritten: dict[int, list[Flush]] = {}
        self.under_way: list[Message] = []
        self.sent: list[Message] = []  # everything that ever left a host
        self.cut: set[tuple[int, int]] = set()  # (sender, receiver)
        self.dead: set[int] = set()
        self.slow_disks: set[int] = set()  # members whose flushes wait until write() is called
        for member in members:
            self.disks[member] = Disk()
            self.start(member)

    # -- members

    def start(self, member: int) -> RaftHost:
        host = RaftHost(member=member, config=self.config, random=Random(self.random.getrandbits(32)))
        self.hosts[member] = host
        self.unwritten[member] = []
        self.dead.discard(member)
        return host

    def crash(self, member: int) -> None:
        """The process is gone, with all that was not durable."""
        self.dead.add(member)
        self.unwritten[member] = []
        self.under_way = [message for message in self.under_way if message.receiver != member]

    def crash_noticed(self, member: int) -> None:
        """The process is gone, and every other host has its connection reset."""
        self.crash(member)
        for other, host in self.hosts.items():
            if other not in self.dead:
                host.member_down(member, self.now_ms)

    def connect(self, member: int) -> None:
        """The member and all others have new connections."""
        for other, host in self.hosts.items():
            if other not in self.dead and other != member:
                host.member_up(member, self.now_ms)
                self.hosts[member].member_up(other, self.now_ms)

    def restart(self, member: int, *, doubtful: bool = False, damaged: bool = False) -> RaftHost:
        host = self.start(member)
        disk = self.disks[member]
        for group, start in disk.starts.items():
            host.add(
                group=group,
                start=start,
                hard=disk.hard_states.get(group, HardState(term=0, vote=0)),
                tail=list(disk.tails.get(group, [])),
                first_index=start.index + 1,
                first_offset=start.offset,
                doubtful=doubtful,
                damaged=damaged,
                now_ms=self.now_ms,
            )
        self.connect(member)
        return host

    def isolate(self, *members: int) -> None:
        """Cut these off from all others, both ways."""
        for member in members:
            for other in self.hosts:
                if other not in members:
                    self.cut |= {(member, other), (other, member)}

    def heal(self) -> None:
        self.cut.clear()

    # -- groups

    def create(
        self, voters: list[int] | None = None, learners: tuple[int, ...] = (), group: int = GROUP
    ) -> None:
        membership = Membership(voters=tuple(voters if voters is not None else self.hosts), learners=learners)
        for member in (*membership.voters, *membership.learners):
            self.create_replica(member, membership, group)

    def create_replica(self, member: int, membership: Membership, group: int = GROUP) -> Group:
        start = StartState(index=0, term=0, offset=0, membership=membership)
        self.disks[member].starts[group] = start
        return self.hosts[member].add(
            group=group,
            start=start,
            hard=HardState(term=0, vote=0),
            tail=[],
            first_index=1,
            first_offset=0,
            doubtful=False,
            damaged=False,
            now_ms=self.now_ms,
        )

    def group(self, member: int, group: int = GROUP) -> Group:
        return self.hosts[member].groups[group]

    def leaders(self, group: int = GROUP) -> list[int]:
        return [
            member
            for member, host in self.hosts.items()
            if member not in self.dead and group in host.groups and host.groups[group].is_leader
        ]

    def leader(self, group: int = GROUP) -> Group:
        (member,) = self.leaders(group)
        return self.group(member, group)

    def propose(self, payload: bytes = b"batch", record_count: int = 1, group: int = GROUP) -> Entry:
        return self.leader(group).propose(EntryKind.RECORDS, payload, record_count, self.now_ms)

    def propose_at(self, member: int, payload: bytes, group: int = GROUP) -> Entry:
        return self.group(member, group).propose(EntryKind.RECORDS, payload, 1, self.now_ms)

    def payloads(self, member: int, group: int = GROUP) -> list[bytes]:
        """The records that a member holds."""
        log = self.group(member, group).log
        return [
            entry.payload for entry in log.entries_from(log.window_first) if entry.kind == EntryKind.RECORDS
        ]

    def committed(self, member: int, group: int = GROUP) -> list[bytes]:
        replica = self.group(member, group)
        entries = replica.log.entries_between(replica.log.window_first, replica.commit_index)
        return [entry.payload for entry in entries if entry.kind == EntryKind.RECORDS]

    # -- movement

    def collect(self) -> None:
        """Let every host send and flush what it has; nothing arrives and nothing becomes durable."""
        for member, host in self.hosts.items():
            if member in self.dead:
                continue
            host.flush(self.now_ms)
            flush = host.outbox.seal()
            if flush is not None:
                self.unwritten[member].append(flush)
            messages, host.outbox.messages = host.outbox.messages, []
            self.sent.extend(messages)
            self.under_way.extend(m for m in messages if (m.sender, m.receiver) not in self.cut)

    def write(self, member: int, count: int | None = None) -> None:
        """Make a member's flushes durable, the oldest `count` or all."""
        flushes = self.unwritten[member]
        due = flushes if count is None else flushes[:count]
        self.unwritten[member] = flushes[len(due) :]
        for flush in due:
            self.disks[member].write(flush)
            self.hosts[member].persisted(flush, self.now_ms)

    def deliver(self, message: Message) -> None:
        """Hand over one message, as bytes, whether it is under way or was long ago."""
        if message.receiver not in self.hosts or message.receiver in self.dead:
            return
        (received,) = wire.decode(b"".join(wire.encode([message])))
        assert received == message, (received, message)
        self.hosts[message.receiver].step(received, self.now_ms)

    def drop(self, chosen: Callable[[Message], bool] = lambda message: True) -> list[Message]:
        """Lose messages that are under way."""
        dropped = [message for message in self.under_way if chosen(message)]
        self.under_way = [message for message in self.under_way if not chosen(message)]
        return dropped

    def deliver_all(self) -> None:
        due, self.under_way = self.under_way, []
        for message in due:
            self.deliver(message)

    def sent_by(self, member: int, kind: type[Message]) -> list[Message]:
        return [message for message in self.sent if message.sender == member and type(message) is kind]

    def settle(self, rounds_max: int = 200) -> None:
        """Deliver, flush and write until nothing is left; members with slow disks keep their flushes."""
        for _ in range(rounds_max):
            if not self.move_once():
                return
        raise AssertionError(f"still moving after {rounds_max} rounds: {self.under_way[:5]}")

    def move_once(self) -> bool:
        """One turn of everybody: send, write, receive. False if there was nothing to do."""
        self.collect()
        idle = self.slow_disks | self.dead
        writable = [member for member in self.hosts if member not in idle and self.unwritten[member]]
        if not self.under_way and not writable:
            return False
        for member in writable:
            self.write(member)
        self.deliver_all()
        return True

    def tick(self) -> None:
        for member, host in self.hosts.items():
            if member not in self.dead:
                host.tick(self.now_ms)

    def pass_time(self, duration_ms: int) -> None:
        for _ in range(0, duration_ms, STEP_MS):
            self.now_ms += STEP_MS
            self.tick()
            self.settle()

    def until(self, condition: Callable[[], bool], within_ms: int = 10_000) -> int:
        """Pass time until something is so; the milliseconds it took."""
        began_ms = self.now_ms
        while not condition():
            assert self.now_ms - began_ms < within_ms, f"not within {within_ms} ms"
            self.pass_time(STEP_MS)
        return self.now_ms - began_ms

    def elect(self, member: int, group: int = GROUP) -> None:
        """Make a member the leader, by asking it to stand when nobody leads, or by a hand-over."""
        leaders = self.leaders(group)
        if leaders == [member]:
            return
        if leaders:
            self.group(leaders[0], group).transfer(member, self.now_ms)
        self.settle()
        self.until(lambda: self.leaders(group) == [member] and self.group(member, group).term_start_committed)


def running(members: list[int] | None = None, config: RaftConfig | None = None, seed: int = 1) -> Network:
    """A group on three members, led by the first, at rest."""
    network = Network(members if members is not None else [1, 2, 3], config, seed)
    network.create()
    network.until(lambda: bool(network.leaders()))
    network.pass_time(200)
    return network
