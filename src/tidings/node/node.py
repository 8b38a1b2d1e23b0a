"""Node: one whole broker without I/O.

Its one rule: inputs change state and put work down; `turn` then settles what follows and hands all work out,
once per turn of the event loop. Nothing leaves that is not safe: answers and replies wait inside for the
flush they depend on. It must not know sockets, threads, files or clocks. Tests: tests/node/test_node.py

    inputs    requests, frames of peers, peers up and down, flushes and jobs done, ticks
    outputs   Turn: one flush for the write-ahead log, frames for peers, jobs for storage and readers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.dispatch import Broker
from tidings.broker.ports import Arguments
from tidings.broker.requests import Request
from tidings.broker.site import Ports
from tidings.config.options import Config
from tidings.node import messages as peer_messages
from tidings.node.checkpoints import Checkpoints
from tidings.node.confirmations import Confirmations
from tidings.node.formation import Founding
from tidings.node.freshness import Freshness
from tidings.node.jobs import Compute, ReadEntries, ReadJob, ResetLog, SaveCheckpoint, StorageJob
from tidings.node.living import Living
from tidings.node.messages import PeerMessageError
from tidings.node.metadata import TITLE, Metadata
from tidings.node.recovered import RecoveredGroup, begin_metadata
from tidings.node.replicas import Replicas
from tidings.node.settling import Settling
from tidings.node.timers import Timers
from tidings.protocol.schema import Message
from tidings.raft import wire
from tidings.raft.config import RaftConfig
from tidings.raft.entries import Entry, StartState
from tidings.raft.errors import WireError
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.messages import Append, InstallStart
from tidings.raft.messages import Message as RaftMessage
from tidings.raft.outbox import Flush

# One frame to a peer is closed and another begun when it holds so much: a beat must not wait behind all of
# it.
_FRAME_BYTES = 4 * 1024 * 1024

# An idle broker ticks so often per shortest election timeout: a loop that stood still is told by ticks that
# are missing.
_TICKS_PER_TIMEOUT = 10


@dataclass(slots=True)
class Turn:
    """The work of one turn. `frames` are (member, buffers); what cannot be sent is lost, as on any
    network."""

    flush: Flush | None = None
    frames: list[tuple[int, Sequence[bytes | memoryview]]] = field(default_factory=list)
    storage_jobs: list[StorageJob] = field(default_factory=list)
    reads: list[tuple[ReadJob, Callable[[Any], None]]] = field(default_factory=list)  # any: the job's result
    cut_below_file: int | None = None
    settled: list[int] = field(default_factory=list)  # groups whose damage or doubt is over
    events: list[tuple[str, dict[str, str | int]]] = field(default_factory=list)  # (name, facts) for people


class Place(Protocol):
    """Where a flush stands in the write-ahead log."""

    @property
    def file_number(self) -> int: ...
    @property
    def sequence(self) -> int: ...


class Node:
    """One broker. All times are milliseconds of the one clock that the caller passes in."""

    def __init__(
        self,
        *,
        config: Config,
        member: int,
        founding: Founding,
        recovered: Mapping[int, RecoveredGroup],
        random: Random,
        now_ms: int,
    ) -> None:
        self.config = config
        self.member = member
        self.founding = founding
        self.now_ms = now_ms
        self.timers = Timers()
        self._idle_tick_ms = config.election_timeout_ms_min // _TICKS_PER_TIMEOUT
        self.is_storage_full = False
        self._work = Turn()
        self._leaders_version = 0  # of the table that everybody here knows of
        self._led_terms: dict[int, int] = {}  # group -> term in which this broker was elected
        self._resets: dict[int, list[ResetLog]] = {}  # by the flush that must be durable before
        self.host = RaftHost(member=member, config=raft_config(config), random=random)
        self.confirmations = Confirmations()
        self.living = Living(
            host=self.host,
            broker_id=config.broker_id,
            broker_of=self.broker_of,
            lag_time_max_ms=config.replica_lag_time_max_ms,
        )
        self.settling = Settling(self)
        self.freshness = Freshness(self)
        self.checkpoints = Checkpoints(
            self,
            file_count_max=config.wal_bytes_max // config.wal_file_bytes,
            interval_ms=config.checkpoint_interval_ms,
            now_ms=now_ms,
        )
        begin = begin_metadata(recovered.get(METADATA_GROUP), founding, member=member)
        self.metadata = Metadata(
            owner=self,
            group=begin.add_to(self.host, now_ms),
            config=config,
            random=random,
            is_read_only=begin.is_read_only,
        )
        if begin.is_read_only:
            self.tell("replica_read_only", log=TITLE)
        ports = Ports(
            timers=self.timers,
            controller=self.metadata,
            liveness=self.living,
            settling=self.settling,
            freshness=self.freshness,
            offload=self,
            random=random,
        )
        self.broker = Broker(config=config, ports=ports)
        self.metadata.start(self.broker, begin.start)
        self._broker_by_member: dict[int, int] = {}
        self._learn_members()
        self.replicas = Replicas(self, recovered)
        self.replicas.open_all(now_ms)

    # -- inputs

    def request(self, request: Request, now_ms: int) -> Message | None:
        """A client's request. None: it is answered later through the request itself."""
        self.now_ms = now_ms
        return self.broker.handle(request, now_ms)

    def receive(self, member: int, frame: bytes, now_ms: int) -> None:
        """A frame from a peer. Raises PeerMessageError for what no broker of this format sends."""
        self.now_ms = now_ms
        if frame[:1] == peer_messages.RAFT:
            self._step(frame, now_ms)
            return
        said = peer_messages.decode(frame)
        match said:
            case peer_messages.Propose():
                self.metadata.proposed_by_peer(said, now_ms)
            case peer_messages.Ask():
                self.settling.asked(member, said)
            case peer_messages.Settled():
                self.settling.answered(member, said)
            case peer_messages.Ping():
                self.send_to(member, peer_messages.Pong(said.context).encode())
            case peer_messages.Pong():
                self.freshness.answered(member, said)
            case peer_messages.Refused():
                self.metadata.refused_by_peer(said)
            case peer_messages.Stopping():
                self.living.peer_stopping(member)

    def _step(self, frame: bytes, now_ms: int) -> None:
        try:
            for message in wire.decode(frame, len(peer_messages.RAFT)):
                self.host.step(message, now_ms)
        except WireError as error:
            raise PeerMessageError(str(error)) from error
        finally:
            self._install_starts()

    def peer_up(self, member: int, broker_id: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self._broker_by_member.setdefault(member, broker_id)
        self.host.meet(member)
        self.living.peer_up(member, broker_id)
        self.host.member_up(member, now_ms)

    def peer_down(self, member: int, now_ms: int, *, refused: bool) -> None:
        """The connection was lost; `refused`: and cannot be opened again, so the process is most likely
        gone."""
        self.now_ms = now_ms
        self.living.peer_down(member, now_ms)
        self.settling.member_gone(member)
        self.freshness.member_gone(member)
        if refused:
            self.host.member_down(member, now_ms)

    def pause_sending(self, member: int, *, paused: bool) -> None:
        """The transport to the member is full, or has room again."""
        self.host.send_paused(member, paused)

    def flushed(self, flush: Flush, place: Place, now_ms: int) -> None:
        """The flush is durable, at that place of the write-ahead log."""
        self.now_ms = now_ms
        for job in self._resets.pop(flush.number, ()):
            if self._awaits(job):
                self.store(replace(job, wal_sequence=place.sequence))
        self.host.persisted(flush, now_ms)
        for group in flush.last:
            if group in self.host.groups:
                self.host.outbox.advanced[group] = None  # what is durable now may be applied now
        self.checkpoints.flushed(flush, place.file_number)

    def stored(self, job: StorageJob, result: object, now_ms: int) -> None:
        """A storage job is done."""
        self.now_ms = now_ms
        if isinstance(job, SaveCheckpoint):
            self.checkpoints.saved(job.group, job.start.index)
        if isinstance(job, ResetLog):
            if self._awaits(job):
                owner = self.metadata if job.group == METADATA_GROUP else self.replicas.by_group[job.group]
                owner.was_reset()
                self.host.start_installed(job.group)
        elif job.group == METADATA_GROUP:
            if isinstance(job, SaveCheckpoint):
                self.metadata.saved(job.start.index)
        else:
            self.replicas.stored(job, result, now_ms)

    def damaged(self, group: int, now_ms: int) -> None:
        """Synced bytes of the group turned out to be wrong: it is refilled from its leader."""
        self.now_ms = now_ms
        self.checkpoints.failed(group)
        self.replicas.refill(group, now_ms)

    def tick(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.living.tick(now_ms)
        self.host.tick(now_ms)
        self.metadata.tick(now_ms)
        self.replicas.tick(now_ms)
        self.checkpoints.tick(now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        """When the next tick is due: soon where something is under way, seldom where nothing is."""
        outbox = self.host.outbox
        is_busy = self.replicas.has_unwritten_entries or self.metadata.is_proposing or outbox.lagging
        due_ms = now_ms + (self.config.tick_interval_ms if is_busy else self._idle_tick_ms)
        alarm_ms = self.timers.next_ms()
        if alarm_ms is not None and alarm_ms < due_ms:
            due_ms = alarm_ms
        return min(due_ms, self.host.next_tick_ms())

    # -- output

    def turn(self, now_ms: int, *, may_flush: bool) -> Turn:
        """Settle what follows from the inputs and take the work. `may_flush`: the write-ahead log can take a
        flush."""
        self.now_ms = now_ms
        self.timers.run(now_ms)
        self._settle(now_ms)
        self.host.flush(now_ms)
        work = self._work
        self._work = Turn()
        if may_flush:
            work.flush = self.host.outbox.seal()
        self._pack_messages(work)
        return work

    def _settle(self, now_ms: int) -> None:
        """Tell the owners of the groups what changed, until nothing new comes of it."""
        outbox = self.host.outbox
        while outbox.changed or outbox.advanced or outbox.starts_installed or outbox.reads_confirmed:
            self._install_starts()
            changed, outbox.changed = outbox.changed, {}
            if changed:
                self._roles_changed(changed, now_ms)
                self._leaders_changed()
            advanced, outbox.advanced = outbox.advanced, {}
            if advanced:
                self._groups_advanced(advanced, now_ms)
            for confirmed in _taken(outbox, "reads_confirmed"):
                self.confirmations.answer(
                    confirmed.group, confirmed.context, leads=confirmed.index is not None
                )
        if self._leaders_version != self.host.leaders.version:
            self._leaders_version = self.host.leaders.version
            self._leaders_changed()
        if outbox.settled:
            self._work.settled += outbox.settled
            outbox.settled = {}
        for wanted in _taken(outbox, "starts_wanted"):
            self._give_start(wanted.group, wanted.member, now_ms)
        for read in _taken(outbox, "reads"):
            self._read_for_follower(read.group, read.member, read.first_index, read.bytes_max)

    def _install_starts(self) -> None:
        """At once: from here to the turn's end nobody may take the old log for the group's."""
        for installed in _taken(self.host.outbox, "starts_installed"):
            self._install(installed.group, installed.start)

    def _roles_changed(self, groups: Mapping[int, None], now_ms: int) -> None:
        for group in groups:
            if group == METADATA_GROUP:
                self.metadata.tick(now_ms)  # what waits for a leader need not wait for the next tick
            else:
                self.replicas.role_changed(group, now_ms)
            raft_group = self.host.groups.get(group)
            if raft_group is None or not raft_group.is_leader:
                self.confirmations.leadership_lost(group)
            elif self._led_terms.get(group) != raft_group.term:
                self._led_terms[group] = raft_group.term
                self.tell("leader_elected", log=self._title_of(group), epoch=raft_group.term)

    def _leaders_changed(self) -> None:
        """Of groups that this broker has no replica of, too."""
        self.living.changed()
        self.settling.check()
        self.freshness.check()

    def _groups_advanced(self, groups: Mapping[int, None], now_ms: int) -> None:
        for group in groups:
            if group == METADATA_GROUP:
                self.metadata.advance(now_ms)
            else:
                self.replicas.advanced(group, now_ms)
        self.settling.check()
        self.freshness.check()

    def _title_of(self, group: int) -> str:
        replica = self.replicas.by_group.get(group)
        return TITLE if replica is None else replica.title

    def _awaits(self, job: ResetLog) -> bool:
        """Whether the group still waits for its files to be replaced by these."""
        if job.group == METADATA_GROUP:
            return self.metadata.awaits(job)
        return self.replicas.awaits(job)

    def _install(self, group: int, start: StartState) -> None:
        """The group's log was replaced. Its files follow when the flush is durable that tells the write-ahead
        log so."""
        if group == METADATA_GROUP:
            job = self.metadata.installed(start)
        else:
            replaced = self.replicas.installed(group, start)
            if replaced is None:
                return
            job = replaced
        self._resets.setdefault(self.host.outbox.collecting_flush, []).append(job)

    def _give_start(self, group: int, member: int, now_ms: int) -> None:
        start = self.metadata.state_now() if group == METADATA_GROUP else self.replicas.start_for(group)
        raft_group = self.host.groups.get(group)
        if raft_group is not None and start is not None:
            raft_group.give_start(member, start, now_ms)

    def _read_for_follower(self, group: int, member: int, first_index: int, bytes_max: int) -> None:
        def done(entries: list[Entry] | None) -> None:
            raft_group = self.host.groups.get(group)
            if raft_group is not None:
                raft_group.entries_read(member, entries or [], self.now_ms)

        self.read(ReadEntries(group=group, first_index=first_index, bytes_max=bytes_max), done)

    def _pack_messages(self, work: Turn) -> None:
        """All messages for one peer in one frame, or in a few where they are many."""
        outbox = self.host.outbox
        if not outbox.messages:
            return
        messages, outbox.messages = outbox.messages, []
        by_receiver: dict[int, list[RaftMessage]] = {}
        for message in messages:
            by_receiver.setdefault(message.receiver, []).append(message)
        for receiver, batch in by_receiver.items():
            for part in _in_frames(batch):
                work.frames.append((receiver, [peer_messages.RAFT, *wire.encode(part)]))

    # -- what the parts ask of the node

    def broker_of(self, member: int) -> int:
        return self._broker_by_member.get(member, -1)

    def member_of(self, broker_id: int) -> int | None:
        row = self.broker.cluster.brokers.get(broker_id)
        return row.member if row is not None else None

    def send_to(self, member: int, frame: bytes) -> None:
        self._work.frames.append((member, [frame]))

    def store(self, job: StorageJob) -> None:
        self._work.storage_jobs.append(job)

    def read(self, job: ReadJob, then: Callable[[Any], None]) -> None:  # any: the job's result
        self._work.reads.append((job, then))

    def run(
        self,
        function: Callable[[*Arguments], object],
        *arguments: *Arguments,
        then: Callable[[object], None],
    ) -> None:
        """The broker room's port Offload."""
        self.read(Compute(function=function, arguments=arguments), then)

    def confirm(self, group: Group, then: Callable[[bool], None], now_ms: int) -> None:
        self.confirmations.ask(group, then, now_ms)

    def metadata_index(self) -> int:
        return self.metadata.applied_index

    def knows_leaders(self, groups: Sequence[int]) -> bool:
        """Leaders that can be asked for their end: one that is elected cannot tell it before an entry of its
        own term is committed, which it knows itself."""
        return all(
            group not in self.broker.cluster.partitions
            or (self.living.leader_of(group).broker_id >= 0 and not self._begins_to_lead(group))
            for group in groups
        )

    def _begins_to_lead(self, group: int) -> bool:
        led = self.host.groups.get(group)
        return led is not None and led.is_leader and not led.term_start_committed

    def leading_members(self, groups: Sequence[int]) -> set[int]:
        """The other brokers that are known to lead one of the groups."""
        table = self.host.leader_table
        members = {table[group][0] for group in groups if group in table}
        return members & set(self.living.members())

    def living_members(self) -> list[int]:
        return self.living.members()

    def staying_members(self) -> list[int]:
        return self.living.staying()

    def tell_stopping(self) -> None:
        for member in self.living.members():
            self.send_to(member, peer_messages.Stopping().encode())

    def groups_changed(self, groups: tuple[int, ...]) -> None:
        self._learn_members()
        self.replicas.placed(groups, self.now_ms)
        self._forget_terms()

    def metadata_replaced(self) -> None:
        self._learn_members()
        self.replicas.open_all(self.now_ms)
        self._forget_terms()

    def _forget_terms(self) -> None:
        self._led_terms = {
            group: term for group, term in self._led_terms.items() if group in self.host.groups
        }

    def tell(self, name: str, **facts: str | int) -> None:
        """An event for people."""
        self._work.events.append((name, facts))

    def save_checkpoint(self, group: int) -> int | None:
        if group != METADATA_GROUP:
            return self.replicas.save_checkpoint(group)
        job = self.metadata.checkpoint()
        if job is None:
            return None
        self.store(job)
        return job.start.index

    def is_frozen(self, group: int) -> bool:
        return self.metadata.is_frozen if group == METADATA_GROUP else self.replicas.is_frozen(group)

    def may_return(self, group: int) -> bool:
        return group == METADATA_GROUP or self.replicas.may_return(group)

    def last_index(self, group: int) -> int:
        raft_group = self.host.groups.get(group)
        return raft_group.last_index if raft_group is not None else 0

    def carry(self, group: int, first_index: int | None) -> int | None:
        raft_group = self.host.groups.get(group)
        if raft_group is None:
            return None
        if first_index is None:
            first_index = raft_group.log.window_first
        if first_index < raft_group.log.window_first or first_index > raft_group.last_index:
            return None
        outbox = self.host.outbox
        outbox.entries += [(group, entry) for entry in raft_group.log.entries_from(first_index)]
        return outbox.collecting_flush

    def cut_log(self, below_file: int) -> None:
        self._work.cut_below_file = below_file

    def _learn_members(self) -> None:
        rows = self.broker.cluster.brokers.values()
        self._broker_by_member = {member: broker_id for broker_id, member in self.founding.members.items()}
        self._broker_by_member.update({row.member: row.broker_id for row in rows})


def raft_config(config: Config) -> RaftConfig:
    """The raft room imports nothing: its options are handed over."""
    return RaftConfig(
        election_timeout_ms_min=config.election_timeout_ms_min,
        election_timeout_ms_max=config.election_timeout_ms_max,
        beat_interval_ms=config.beat_interval_ms,
        append_bytes_max=config.append_bytes_max,
        inflight_bytes_max=config.inflight_bytes_max,
        uncommitted_bytes_max=config.uncommitted_bytes_max,
        start_piece_bytes=config.start_piece_bytes,
        transfer_timeout_ms=config.transfer_timeout_ms,
    )


def _in_frames(messages: list[RaftMessage]) -> list[list[RaftMessage]]:
    """The messages in order, in as many frames as their payloads ask for."""
    frames: list[list[RaftMessage]] = [[]]
    size_bytes = 0
    for message in messages:
        if size_bytes > _FRAME_BYTES:
            frames.append([])
            size_bytes = 0
        frames[-1].append(message)
        if isinstance(message, Append):
            size_bytes += sum(len(entry.payload) for entry in message.entries)
        elif isinstance(message, InstallStart):
            size_bytes += len(message.piece)
    return frames


def _taken(outbox: Any, name: str) -> list[Any]:  # any: one of the outbox's lists
    taken: list[Any] = getattr(outbox, name)
    if taken:
        setattr(outbox, name, [])
    return taken
