"""Consequences: what follows from the inputs of a turn, told to those whom it concerns.

Its one rule: what Raft says is passed on until nothing new comes of it: replaced logs first, then roles, then
what is committed, so that nobody acts for a log or a leader that is no more. It must not know what the parts
do about it. Tests: tests/node/test_node.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from tidings.broker.cluster import METADATA_GROUP
from tidings.node.confirmations import Confirmations
from tidings.node.freshness import Freshness
from tidings.node.jobs import ReadEntries, ReadJob, ResetLog, StorageJob
from tidings.node.living import Living
from tidings.node.metadata import TITLE, Metadata
from tidings.node.replicas import Replicas
from tidings.node.settling import Settling
from tidings.node.turn import Place
from tidings.raft.entries import Entry, StartState
from tidings.raft.host import RaftHost
from tidings.raft.outbox import Flush


class ConsequencesOwner(Protocol):
    """The parts of a node that are told."""

    now_ms: int
    host: RaftHost
    living: Living
    settling: Settling
    freshness: Freshness
    confirmations: Confirmations
    metadata: Metadata
    replicas: Replicas

    def store(self, job: StorageJob) -> None: ...
    def read(self, job: ReadJob, then: Callable[[Any], None]) -> None: ...  # any: the job's result
    def tell(self, name: str, **facts: str | int) -> None: ...
    def note_settled(self, groups: Mapping[int, None]) -> None: ...


class Consequences:
    """One per node."""

    def __init__(self, node: ConsequencesOwner) -> None:
        self._node = node
        self._leaders_version = 0  # of the table that everybody here knows of
        self._beginning: set[int] = (
            set()
        )  # groups led here without a committed entry of the leader's own term
        self._seen: tuple[int, int] | None = (
            None  # versions of the living and of the metadata; None: look again
        )
        self._led_terms: dict[int, int] = {}  # group -> term in which this broker was elected
        self._resets: dict[int, list[ResetLog]] = {}  # by the flush that must be durable before

    def flushed(self, flush: Flush, place: Place) -> None:
        """The flush is durable: files may be replaced that waited for it, and what it holds may be
        applied."""
        for job in self._resets.pop(flush.number, ()):
            if self._awaits(job):
                self._node.store(replace(job, wal_sequence=place.sequence))
        for group in flush.last:
            if group in self._node.host.groups:
                self._node.host.outbox.advanced[group] = None

    def was_reset(self, job: ResetLog) -> None:
        """A group's files were replaced, as its leader's start state asked for."""
        if not self._awaits(job):
            return
        node = self._node
        owner = node.metadata if job.group == METADATA_GROUP else node.replicas.by_group[job.group]
        owner.was_reset()
        node.host.start_installed(job.group)

    def forget_terms(self) -> None:
        """Groups are gone: who led them is of no interest any more."""
        groups = self._node.host.groups
        self._led_terms = {group: term for group, term in self._led_terms.items() if group in groups}
        self._beginning &= groups.keys()

    def settle(self, now_ms: int) -> None:
        """Tell the owners of the groups what changed, until nothing new comes of it."""
        outbox = self._node.host.outbox
        while outbox.changed or outbox.advanced or outbox.starts_installed or outbox.reads_confirmed:
            self.install_starts()
            changed, outbox.changed = outbox.changed, {}
            if changed:
                self._roles_changed(changed, now_ms)
                self._node.living.changed()
            advanced, outbox.advanced = outbox.advanced, {}
            if advanced:
                self._groups_advanced(advanced, now_ms)
            for confirmed in _taken(outbox, "reads_confirmed"):
                self._node.confirmations.answer(
                    confirmed.group, confirmed.context, leads=confirmed.index is not None
                )
        if self._leaders_version != self._node.host.leaders.version:
            # Of groups that this broker has no replica of, too.
            self._leaders_version = self._node.host.leaders.version
            self._node.living.changed()
        self._tell_waiters()
        if outbox.settled:
            self._node.note_settled(outbox.settled)
            outbox.settled = {}
        for wanted in _taken(outbox, "starts_wanted"):
            self._give_start(wanted.group, wanted.member, now_ms)
        for read in _taken(outbox, "reads"):
            self._read_for_follower(read.group, read.member, read.first_index, read.bytes_max)

    def install_starts(self) -> None:
        """At once: from here to the turn's end nobody may take the old log for the group's."""
        for installed in _taken(self._node.host.outbox, "starts_installed"):
            self._install(installed.group, installed.start)

    def _roles_changed(self, groups: Mapping[int, None], now_ms: int) -> None:
        for group in groups:
            if group == METADATA_GROUP:
                self._node.metadata.tick(now_ms)  # what waits for a leader need not wait for the next tick
            else:
                self._node.replicas.role_changed(group, now_ms)
            raft_group = self._node.host.groups.get(group)
            if raft_group is None or not raft_group.is_leader:
                self._beginning.discard(group)
                self._node.confirmations.leadership_lost(group)
            elif self._led_terms.get(group) != raft_group.term:
                self._led_terms[group] = raft_group.term
                self._beginning.add(group)
                self._node.tell("leader_elected", log=self._title_of(group), epoch=raft_group.term)

    def _tell_waiters(self) -> None:
        """Those who wait for leaders or metadata, when one of both is not what it was: hardly ever, where
        most turns commit records."""
        seen = (self._node.living.version, self._node.metadata.applied_index)
        if seen != self._seen:
            self._seen = seen
            self._node.settling.check()
            self._node.freshness.check()

    def _groups_advanced(self, groups: Mapping[int, None], now_ms: int) -> None:
        for group in groups:
            if group == METADATA_GROUP:
                self._node.metadata.advance(now_ms)
            else:
                self._node.replicas.advanced(group, now_ms)
            if group in self._beginning and self._has_begun(group):
                self._beginning.discard(group)
                self._seen = None

    def _has_begun(self, group: int) -> bool:
        led = self._node.host.groups.get(group)
        return led is None or led.term_start_committed

    def _title_of(self, group: int) -> str:
        replica = self._node.replicas.by_group.get(group)
        return TITLE if replica is None else replica.title

    def _awaits(self, job: ResetLog) -> bool:
        """Whether the group still waits for its files to be replaced by these."""
        if job.group == METADATA_GROUP:
            return self._node.metadata.awaits(job)
        return self._node.replicas.awaits(job)

    def _install(self, group: int, start: StartState) -> None:
        """The group's log was replaced. Its files follow when the flush is durable that tells the write-ahead
        log so."""
        if group == METADATA_GROUP:
            job = self._node.metadata.installed(start)
        else:
            replaced = self._node.replicas.installed(group, start)
            if replaced is None:
                return
            job = replaced
        self._resets.setdefault(self._node.host.outbox.collecting_flush, []).append(job)

    def _give_start(self, group: int, member: int, now_ms: int) -> None:
        start = (
            self._node.metadata.state_now()
            if group == METADATA_GROUP
            else self._node.replicas.start_for(group)
        )
        raft_group = self._node.host.groups.get(group)
        if raft_group is not None and start is not None:
            raft_group.give_start(member, start, now_ms)

    def _read_for_follower(self, group: int, member: int, first_index: int, bytes_max: int) -> None:
        def done(entries: list[Entry] | None) -> None:
            raft_group = self._node.host.groups.get(group)
            if raft_group is not None:
                raft_group.entries_read(member, entries or [], self._node.now_ms)

        self._node.read(ReadEntries(group=group, first_index=first_index, bytes_max=bytes_max), done)


def _taken(outbox: Any, name: str) -> list[Any]:  # any: one of the outbox's lists
    taken: list[Any] = getattr(outbox, name)  # as above
    if taken:
        setattr(outbox, name, [])
    return taken
