"""RaftHost: all groups of one member, and what they share.

The one rule: inputs in, work in the outbox, in the order in which it arose; the same inputs give the same
work. It must not know clocks, files, sockets, or what a group is for. Tests: tests/raft/test_host.py

The owner's loop, once per turn:
    step(message) / tick() / persisted(flush) / Group verbs    as they come
    flush()                                                    what the groups have for each other
    flush = outbox.seal(); write it, and later persisted(flush)
    send outbox.messages; do what else is in the outbox
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from tidings.raft import beats, doubt, election, installing, replication
from tidings.raft.config import RaftConfig as RaftConfig
from tidings.raft.entries import Entry, HardState, StartState
from tidings.raft.group import Group
from tidings.raft.leaders import LeaderTable
from tidings.raft.messages import Append, DoubtRequest, Message
from tidings.raft.outbox import Flush, Outbox
from tidings.raft.peers import Peers
from tidings.raft.progress import ProgressState
from tidings.raft.schedule import Schedule
from tidings.raft.state import Role, Surroundings

# Messages kept for groups that this host is about to have: one per group, without entries.
EARLY_MESSAGES_MAX = 4096


class RaftHost:
    """Made once per process, by the owner of the write-ahead log."""

    def __init__(self, *, member: int, config: RaftConfig, random: Random) -> None:
        self.member = member
        self.groups: dict[int, Group] = {}
        self.outbox = Outbox()
        self.peers = Peers()
        self.leaders = LeaderTable()
        self._config = config
        self._schedule = Schedule()
        self._early: dict[int, Message] = {}
        self._holds_no_others = False
        self._next_beat_ms = 0
        self._ticked_ms = 0
        self._around = Surroundings(
            member=member,
            config=config,
            random=random,
            outbox=self.outbox,
            peers=self.peers,
            leaders=self.leaders,
            schedule=self._schedule,
        )

    @property
    def leader_table(self) -> dict[int, tuple[int, int]]:
        """group -> (leader, term) of every group ever heard of, member of it or not; leader 0: unknown."""
        return self.leaders.table

    # -- groups

    def add(
        self,
        *,
        group: int,
        start: StartState,
        hard: HardState,
        tail: list[Entry],
        first_index: int,
        first_offset: int,
        doubtful: bool,
        damaged: bool,
        now_ms: int,
    ) -> Group:
        """Take up a group: a new one, or one recovered from its checkpoint (`start`) and the entries behind
        it (`tail`, all durable). Storage can give entries from `first_index` on, whose first record has
        `first_offset`. Of a damaged one only the membership counts, and the index as of which it is known."""
        assert group not in self.groups, group
        known_index = start.index
        if damaged:
            start, tail = StartState(index=0, term=0, offset=0, membership=start.membership), []
        added = Group(self._around, group, start, hard, tail)
        if not damaged and first_index <= start.index:
            added.log.move_start(first_index - 1, added.log.term_at(first_index - 1), first_offset)
        self.groups[group] = added
        added.damaged = damaged
        added.begin(now_ms)
        if doubtful or damaged:
            doubt.begin(added, known_index, now_ms)
        election.first_attempt(added, now_ms)
        early = self._early.pop(group, None)
        if early is not None:
            added.step(early, now_ms)
        return added

    def remove(self, group: int) -> None:
        """The group is no longer this member's business."""
        self.remove_all((group,))

    def remove_all(self, groups: Collection[int]) -> None:
        """A topic may have thousands: what waits in the outbox is gone through once."""
        for group in groups:
            removed = self.groups.pop(group)
            if removed.role is Role.LEADER:
                removed.step_down(removed.last_contact_ms)
            self._schedule.forget(group)
        self.outbox.drop_groups(groups)

    def forget_group(self, group: int) -> None:
        """The group does not exist any more, anywhere."""
        self.leaders.forget(group)

    def holds_no_others(self) -> None:
        """All groups that this member's disk holds are added now. Of any other it has promised nothing, or a
        committed change has removed it: members in doubt about such a group are told so."""
        self._holds_no_others = True

    def start_installed(self, group: int) -> None:
        """What outbox.starts_installed asked for is durable."""
        installed = self.groups.get(group)
        if installed is not None:
            installing.start_installed(installed)
            doubt.settle(installed)

    # -- inputs

    def step(self, message: Message, now_ms: int) -> None:
        group = self.groups.get(message.group)
        if beats.is_between_hosts(message):
            beats.HANDLERS[message.__class__](self, message, now_ms)
        elif group is not None:
            group.step(message, now_ms)
        elif self._holds_no_others and isinstance(message, DoubtRequest):
            self.outbox.messages.append(doubt.unheld(message))
        else:
            self._keep_early(message)

    def tick(self, now_ms: int) -> None:
        """Call often, at next_tick_ms() at the latest: nothing happens before it is due."""
        self._notice_stall(now_ms)
        if now_ms >= self._next_beat_ms:
            self._next_beat_ms = now_ms + self._config.beat_interval_ms
            beats.send_beats(self, now_ms)
        for number in self._schedule.due(now_ms):
            self.groups[number].tick(now_ms)
        if self.outbox.lagging:
            lagging, self.outbox.lagging = self.outbox.lagging, {}
            for number in lagging:
                replication.tell_commit(self.groups[number], now_ms)

    def next_tick_ms(self) -> int:
        """When the next tick has something to do."""
        alarm_ms = self._schedule.next_ms()
        return self._next_beat_ms if alarm_ms is None else min(alarm_ms, self._next_beat_ms)

    def flush(self, now_ms: int) -> None:
        """Send what the groups have for their followers since the last time."""
        outbox = self.outbox
        if outbox.dirty:
            dirty, outbox.dirty = outbox.dirty, {}
            groups = self.groups
            for number in dirty:
                replication.replicate(groups[number], now_ms)
        if outbox.led:
            beats.announce(self)

    def persisted(self, flush: Flush, now_ms: int) -> None:
        """A flush is durable. Flushes are told in order."""
        self.outbox.made_durable(flush.number)
        groups = self.groups
        for number, (index, term) in flush.last.items():
            group = groups.get(number)
            if group is not None:
                group.persisted(index, term, now_ms)
        self.outbox.release()

    # -- other hosts

    def meet(self, member: int) -> None:
        """Another host that is to know what is led here, even if it shares no group with this one."""
        if member != self.member:
            self.peers.meet(member)

    def forget_member(self, member: int) -> None:
        """The other host was removed from the cluster, after every group had replaced it by a committed
        change."""
        self.peers.forget(member)
        for group in self.groups.values():
            if group.doubtful:
                doubt.ask(group, self._ticked_ms)

    def member_down(self, member: int, now_ms: int) -> None:
        """The connection was reset and cannot be opened again: the host's process is gone."""
        if member in self.peers.down:
            return
        self.peers.down[member] = None
        for group in self.groups.values():
            if group.leader == member:
                election.leader_lost(group, now_ms)

    def member_up(self, member: int, now_ms: int) -> None:
        """There is a connection again. What was under way on the old one is lost."""
        self.peers.down.pop(member, None)
        for number, group in self.groups.items():
            if group.doubtful:
                doubt.ask(group, now_ms)
            follower = group.progress.get(member)
            if follower is None:
                continue
            if follower.state is ProgressState.START:
                follower.is_waiting = False
            else:
                follower.probe()
            self.outbox.dirty[number] = None

    def send_paused(self, member: int, paused: bool) -> None:
        """The transport to a member is full: make no appends for it until it is not."""
        if paused:
            self.peers.paused[member] = None
        else:
            for number in self.peers.resume(member):
                if number in self.groups:
                    self.outbox.dirty[number] = None

    def _notice_stall(self, now_ms: int) -> None:
        """This process stood still, so all others seem silent: read what they said before judging them. Once
        per timeout only, or one that always stands still would never give up leading."""
        config = self._config
        stall_ms_min = max(config.election_timeout_ms_min // 4, 2 * config.beat_interval_ms)
        is_spent = now_ms - self.peers.excused_until_ms < config.election_timeout_ms_min
        if now_ms - self._ticked_ms > stall_ms_min and not is_spent:
            self.peers.excused_until_ms = now_ms + config.election_timeout_ms_min // 2
        self._ticked_ms = now_ms

    def _keep_early(self, message: Message) -> None:
        """A group's first messages may overtake the news that this member has a replica of it."""
        if isinstance(message, Append):
            message = Append(
                message.group,
                message.term,
                message.sender,
                message.receiver,
                message.prev_index,
                message.prev_term,
                message.commit_index,
                [],
                0,
                message.session,
            )
        self._early.pop(message.group, None)
        self._early[message.group] = message
        if len(self._early) > EARLY_MESSAGES_MAX:
            del self._early[next(iter(self._early))]
