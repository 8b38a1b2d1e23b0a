"""Node: one whole broker without I/O.

Its one rule: inputs change state and put work down; `turn` then settles what follows and hands all work out,
once per turn of the event loop. Nothing leaves that is not safe: answers and replies wait inside for the
flush they depend on. It must not know sockets, threads, files or clocks. Tests: tests/node/test_node.py

    inputs    requests, frames of peers, peers up and down, flushes and jobs done, ticks
    outputs   Turn: one flush for the write-ahead log, frames for peers, jobs for storage and readers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.dispatch import Broker
from tidings.broker.ports import Arguments
from tidings.broker.requests import Request
from tidings.broker.site import Ports
from tidings.config.options import Config
from tidings.node import messages as peer_messages
from tidings.node.checkpoints import Checkpoints
from tidings.node.confirmations import Confirmations
from tidings.node.consequences import Consequences
from tidings.node.formation import Founding
from tidings.node.freshness import Freshness
from tidings.node.jobs import Compute, ReadJob, ResetLog, SaveCheckpoint, StorageJob
from tidings.node.living import Living
from tidings.node.messages import PeerMessageError
from tidings.node.metadata import TITLE, Metadata
from tidings.node.raft_options import raft_config
from tidings.node.recovered import RecoveredGroup, begin_metadata
from tidings.node.removals import Removals
from tidings.node.replicas import Replicas
from tidings.node.settling import Settling
from tidings.node.timers import Timers
from tidings.node.turn import Place, Turn, pack
from tidings.protocol.errors import ErrorCode
from tidings.protocol.schema import Message
from tidings.raft import wire
from tidings.raft.errors import LogDiverged, WireError
from tidings.raft.group import Group
from tidings.raft.host import RaftHost
from tidings.raft.messages import Message as RaftMessage
from tidings.raft.messages import brings_records
from tidings.raft.outbox import Flush

# An idle broker ticks so often per shortest election timeout: a loop that stood still is told by ticks that
# are missing.
_TICKS_PER_TIMEOUT = 10


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
        self._consequences = Consequences(self)
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
            randomness=random,
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
        self.removals = Removals(self, saved_index=begin.start.index)
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
            self._step(member, frame, now_ms)
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

    def _step(self, member: int, frame: bytes, now_ms: int) -> None:
        try:
            messages = wire.decode(frame, len(peer_messages.RAFT))
            # A broker speaks for itself alone: who it is, was settled when it connected.
            if messages and (messages[0].sender, messages[0].receiver) != (member, self.member):
                raise WireError(f"messages of member {messages[0].sender} to member {messages[0].receiver}")
            for message in messages:
                self._step_one(message, now_ms)
        except WireError as error:
            raise PeerMessageError(str(error)) from error
        finally:
            self._consequences.install_starts()

    def _step_one(self, message: RaftMessage, now_ms: int) -> None:
        """A log that contradicts its leader's costs one replica, not the broker; only the metadata's does."""
        if self.has_no_room and brings_records(message):
            return  # as if lost on the way: the rest of the log is for what makes room
        try:
            self.host.step(message, now_ms)
        except LogDiverged as error:
            if message.group == METADATA_GROUP:
                raise
            self._work.damaged.append((message.group, str(error)))
            self.damaged(message.group, now_ms)

    def peer_up(self, member: int, broker_id: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self._broker_by_member.setdefault(member, broker_id)
        self.host.meet(member)
        self.living.peer_up(member, broker_id)
        self._refuse_gone_members()
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
        self.host.persisted(flush, now_ms)
        self._consequences.flushed(flush, place)
        self.checkpoints.flushed(flush, place.file_number)

    def stored(self, job: StorageJob, result: object, now_ms: int) -> None:
        """A storage job is done."""
        self.now_ms = now_ms
        if isinstance(job, SaveCheckpoint):
            self.checkpoints.saved(job.group, job.start.index)
        if isinstance(job, SaveCheckpoint | ResetLog) and job.group == METADATA_GROUP:
            self.removals.metadata_saved(job.start.index)
        if isinstance(job, ResetLog):
            self._consequences.was_reset(job)
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
        self.removals.tick()
        self.checkpoints.tick(now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        """When the next tick is due: soon where something is under way, seldom where nothing is."""
        outbox = self.host.outbox
        is_busy = (
            self.replicas.has_unwritten_entries
            or self.metadata.is_proposing
            or outbox.lagging
            or self.removals
        )
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
        self._consequences.settle(now_ms)
        self.host.flush(now_ms)
        work = self._work
        self._work = Turn()
        if may_flush:
            work.flush = self.host.outbox.seal()
        messages, self.host.outbox.messages = self.host.outbox.messages, []
        work.frames += pack(messages)
        return work

    # -- what the parts ask of the node

    @property
    def has_no_room(self) -> bool:
        return self.is_storage_full or self.checkpoints.is_overfull

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

    def first_unled(self, groups: Sequence[int]) -> int | None:
        """The first without a leader that can be asked for its end: one that is elected cannot tell it before
        an entry of its own term is committed, which it knows itself."""
        partitions = self.broker.cluster.partitions
        for group in groups:
            if group in partitions and (
                self.living.leader_of(group).broker_id < 0 or self._begins_to_lead(group)
            ):
                return group
        return None

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
        self._consequences.forget_terms()

    def metadata_replaced(self) -> None:
        self._learn_members()
        self.replicas.open_all(self.now_ms)
        self._consequences.forget_terms()

    def note_settled(self, groups: Mapping[int, None]) -> None:
        """Groups whose damage or doubt is over."""
        self._work.settled += groups

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

    def is_carried(self, group: int, *, is_too_long: bool) -> bool:
        if group == METADATA_GROUP:
            return self.metadata.is_frozen
        return self.replicas.is_frozen(group) or (is_too_long and group not in self.host.groups)

    def is_given_up(self, group: int) -> bool:
        """The mark and the votes of a replica to be refilled are in every file of the log."""
        held = self.host.groups.get(group)
        return held is not None and held.damaged and held.hard_flush <= self.host.outbox.durable_flush

    def may_return(self, group: int) -> bool:
        return group == METADATA_GROUP or group in self.removals or self.replicas.may_return(group)

    def last_index(self, group: int) -> int:
        raft_group = self.host.groups.get(group)
        return raft_group.last_index if raft_group is not None else 0

    def carry(self, group: int, first_index: int | None) -> int | None:
        raft_group = self.host.groups.get(group)
        if raft_group is None:
            return self.replicas.carry_unopened(group)
        return raft_group.write_again(first_index)

    def cut_log(self, below_file: int) -> None:
        self._work.cut_below_file = below_file

    def _refuse_gone_members(self) -> None:
        """A disk that was replaced, or whose broker was removed, hears of no leader that could tell it so."""
        for member in self.broker.cluster.gone_members.intersection(self.living.members()):
            refused = peer_messages.Refused(
                peer_messages.EVERY_PROPOSAL,
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                "this disk was replaced, or its broker removed: it may come back with an empty one only",
            )
            self.send_to(member, refused.encode())

    def _learn_members(self) -> None:
        rows = self.broker.cluster.brokers.values()
        self._broker_by_member = {member: broker_id for broker_id, member in self.founding.members.items()}
        self._broker_by_member.update({row.member: row.broker_id for row in rows})
