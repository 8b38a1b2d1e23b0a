"""Policies: what a leader does unasked: voters as the metadata names them, leaders at home, old segments
gone.

Its one rule: a policy proposes; it changes nothing by itself, and what it proposes is safe at any moment.
Tests: tests/node/test_policies.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.ports import AppendRefused
from tidings.node.membership import Target, next_membership
from tidings.raft.errors import RaftError
from tidings.raft.group import Group

if TYPE_CHECKING:
    from tidings.node.replica import Replica
    from tidings.node.replicas import Replicas, ReplicasOwner

_MEMBERSHIP_MS = 250  # a step of a change of voters waits no longer; nobody waits for one
_TRANSFERS_MAX = 8  # leaders sent home at a time: each is a short pause for its partition only


class Policies:
    """All that is done now and then for the groups that this broker leads."""

    def __init__(self, owner: ReplicasOwner, replicas: Replicas) -> None:
        self._owner = owner
        self._replicas = replicas
        self._membership_at_ms = 0
        self._is_all_settled = False
        self._seen_versions = (-1, -1)  # of the metadata and of the living, when all was last looked at
        self._balance_at_ms = 0
        self._retention_at_ms = 0
        self._forgotten: set[int] = set()  # members that the host knows to be gone

    def tick(self, now_ms: int) -> None:
        config = self._owner.config
        if now_ms >= self._membership_at_ms:
            self._membership_at_ms = now_ms + _MEMBERSHIP_MS
            self._look_at_memberships(now_ms)
            self._forget_members()
        if now_ms >= self._balance_at_ms:
            self._balance_at_ms = now_ms + config.leader_balance_interval_ms
            self._send_leaders_home(now_ms)
        if now_ms >= self._retention_at_ms:
            self._retention_at_ms = now_ms + config.retention_check_ms
            self._drop_old_segments(now_ms)

    def _look_at_memberships(self, now_ms: int) -> None:
        """Only where something has changed since all was as it should be: a thousand idle partitions cost
        nothing."""
        seen = (self._owner.broker.cluster.version, self._owner.living.version)
        if self._is_all_settled and seen == self._seen_versions:
            return
        self._seen_versions = seen
        self._is_all_settled = True
        self._change_memberships(now_ms)

    def _forget_members(self) -> None:
        """Nobody waits for disks that are gone for good, once no group here counts them among its own."""
        for member in self._owner.broker.cluster.gone_members - self._forgotten:
            if not any(member in _members_of(group) for group in self._owner.host.groups.values()):
                self._forgotten.add(member)
                self._owner.host.forget_member(member)

    def _change_memberships(self, now_ms: int) -> None:
        metadata = self._owner.host.groups[METADATA_GROUP]
        if metadata.is_leader:
            self._change_membership(metadata, self._metadata_target(metadata), now_ms)
        cluster = self._owner.broker.cluster
        living = {self._owner.host.member, *self._owner.living_members()}
        for number, replica in self._replicas.by_group.items():
            row = cluster.partitions.get(number)
            if row is None or not replica.group.is_leader:
                continue
            voters = [member for member in map(self._owner.member_of, row.replicas) if member is not None]
            leaving = [member for member in _members_of(replica.group) if member not in voters]
            target = Target(voters=voters, learners=(), leaving=leaving, reachable=living)
            self._change_membership(replica.group, target, now_ms)

    def _change_membership(self, group: Group, target: Target, now_ms: int) -> None:
        now = group.membership
        if set(now.voters) == set(target.voters) and set(now.learners) == set(target.learners):
            return
        self._is_all_settled = False
        if not group.term_start_committed:
            return
        membership = next_membership(group, target)
        if membership is None:
            return
        try:
            group.propose_membership(membership, now_ms)
        except RaftError:
            return  # one change at a time: the next tick asks again

    def _metadata_target(self, group: Group) -> Target:
        """Whoever votes goes on voting as long as it is registered; free places go to brokers that answer, by
        their ids. A founder whose broker has not registered yet keeps its vote."""
        cluster = self._owner.broker.cluster
        founders = self._owner.founding.members
        now = group.membership.voters
        waiting = [
            member
            for broker_id, member in founders.items()
            if broker_id not in cluster.brokers and member in now and member not in cluster.gone_members
        ]
        registered = [row.member for _, row in sorted(cluster.brokers.items())]
        staying = [member for member in registered if member in now]
        living = {group.member, *self._owner.living_members()}
        others = [member for member in registered if member not in now]
        others.sort(key=lambda member: member not in living)
        free_count = self._owner.config.metadata_voters_max - len(waiting) - len(staying)
        voters = [*waiting, *staying, *others[: max(0, free_count)]]
        known = {*waiting, *registered}
        return Target(
            voters=voters,
            learners=[member for member in registered if member not in voters],
            leaving=[member for member in _members_of(group) if member not in known],
            reachable=living,
        )

    def _send_leaders_home(self, now_ms: int) -> None:
        """Hand leadership to the preferred replica where it lives and has everything."""
        cluster = self._owner.broker.cluster
        living = self._owner.staying_members()
        transfers = 0
        for number, replica in self._replicas.by_group.items():
            group = replica.group
            row = cluster.partitions.get(number)
            if row is None or not group.is_leader or row.replicas[0] == self._owner.config.broker_id:
                continue
            home = self._owner.member_of(row.replicas[0])
            if home is None or home not in living or home not in group.membership.voters:
                continue
            progress = group.progress_of().get(home)
            if progress is not None and progress.match_index >= group.commit_index:
                group.transfer(home, now_ms)
                transfers += 1
                if transfers >= _TRANSFERS_MAX:
                    return

    def hand_over(self, now_ms: int) -> int:
        """Before a stop: give every leadership away that somebody can take. How many are still held."""
        held_count = 0
        living = self._owner.staying_members()
        for group in list(self._owner.host.groups.values()):
            if not group.is_leader:
                continue
            heirs = {
                member: progress.match_index
                for member, progress in group.progress_of().items()
                if member in living and member in group.membership.voters
            }
            if heirs:
                held_count += 1
                # Told twice, one heir stands once; two heirs would split the vote.
                heir = group.transferee if group.transferee in heirs else max(heirs, key=heirs.__getitem__)
                group.transfer(heir, now_ms)
        return held_count

    def _drop_old_segments(self, now_ms: int) -> None:
        for replica in self._replicas.by_group.values():
            if not replica.group.is_leader:
                continue
            offset = log_start_by_retention(replica, now_ms)
            if offset > replica.log_start_offset:
                try:
                    replica.append_log_start(offset, now_ms)
                except AppendRefused:
                    continue  # not the leader any more, or too busy: the next round asks again


def log_start_by_retention(replica: Replica, now_ms: int) -> int:
    """The log start offset that the topic's retention allows: whole segments are dropped, oldest first."""
    partition = replica.partition
    assert partition is not None
    settings = partition.settings
    offset = replica.log_start_offset
    if not settings.deletes:
        return offset
    segments = [segment for segment in replica.segments if segment.next_offset > offset]
    excess_bytes = sum(segment.size_bytes for segment in segments) - settings.retention_bytes
    for segment in segments:
        # Without any time in it, nobody can say how old it is.
        is_dated = segment.max_timestamp >= 0
        is_old = is_dated and 0 <= settings.retention_ms < now_ms - segment.max_timestamp
        is_too_much = settings.retention_bytes >= 0 and excess_bytes >= segment.size_bytes
        is_last = segment is segments[-1]
        if not is_old and (not is_too_much or is_last):
            break
        offset = segment.next_offset
        excess_bytes -= segment.size_bytes
    return min(offset, replica.high_watermark)


def _members_of(group: Group) -> tuple[int, ...]:
    return (*group.membership.voters, *group.membership.learners)
