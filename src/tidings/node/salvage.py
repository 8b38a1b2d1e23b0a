"""Salvage: what the logs in one broker's folder are, and how those go on that nobody else can mend.

Its one rule: a log is decided about here only where this broker is its one voter, or where so many voters are
lost for good that no majority can ever answer again; every other log is mended by the others. What goes on is
in a term that nobody can have seen, with this broker as the only voter. It must not know files: storage finds
what is left and writes what is decided. Tests: tests/node/test_salvage.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from tidings.broker.cluster import METADATA_GROUP, ClusterState, PartitionRow
from tidings.broker.cluster_codec import ClusterStateError, decode_cluster
from tidings.broker.commands import CommandError, SkipNumbers, encode_command
from tidings.broker.producers_codec import decode_producers, encode_producers
from tidings.node.messages import PROPOSAL_ID_BYTES
from tidings.node.metadata import TITLE
from tidings.node.replica import log_start_of
from tidings.protocol.records import read_header
from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.raft.membership import majority
from tidings.storage.recovery import RecoveredGroup
from tidings.storage.salvage import Examined, Rewrite

# Lost voters may have held elections that this broker never heard of: far more than there can have been.
NEW_TERMS = 1_000
# As for the numbers that lost commands may have given out.
SKIPPED = SkipNumbers(group_count=100_000, producer_id_count=1_000_000_000)
_NEVER_MS = 1 << 62
_NO_PROPOSAL = bytes(PROPOSAL_ID_BYTES)


class Standing(Enum):
    """Whose a log is to decide about."""

    ALONE = "this broker is the only voter"
    MAJORITY_LOST = "the voters that are left are no majority"
    SHARED = "a majority of its voters is left: it mends itself when they run"
    STRANGER = "this broker is no member of it any more"
    UNKNOWN = "its members are not known: the metadata is damaged, or the checkpoint is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose folder it is."""

    broker_id: int
    member: int
    founders: Mapping[int, int]  # broker id -> member


class Holdings:
    """All groups of a folder, and what they are about as far as the metadata in it tells."""

    def __init__(self, groups: Mapping[int, RecoveredGroup], owner: Owner) -> None:
        self.groups = groups
        self.owner = owner
        self.metadata_problem: str | None = None
        self.cluster = ClusterState()
        metadata = groups.get(METADATA_GROUP)
        if metadata is not None:
            self.metadata_problem = metadata.damaged
            try:
                self.cluster = cluster_after(metadata.start, metadata.tail)
            except (ClusterStateError, CommandError) as error:
                self.metadata_problem = str(error)

    def title(self, group: int) -> str:
        """TOPIC-PARTITION, as far as anybody knows."""
        row = self.cluster.partitions.get(group)
        if group == METADATA_GROUP:
            return TITLE
        if row is not None:
            return f"{self.cluster.topics_by_id[row.topic_id].name}-{row.index}"
        checkpoint = self.groups[group].checkpoint
        return checkpoint.title if checkpoint is not None and checkpoint.title else f"group {group}"

    def broker_of(self, member: int) -> int | None:
        """None: a disk that was replaced, or one that this broker has not heard of."""
        for row in self.cluster.brokers.values():
            if row.member == member:
                return row.broker_id
        for broker_id, founder in self.owner.founders.items():
            if founder == member and broker_id not in self.cluster.brokers:
                return broker_id
        return None

    def brokers(self) -> list[int]:
        return sorted({*self.cluster.brokers, *self.owner.founders})

    def membership(self, group: int) -> Membership | None:
        """The newest that its log says; None where nothing says it."""
        recovered = self.groups[group]
        for entry in reversed(recovered.tail):
            if entry.kind == EntryKind.MEMBERSHIP:
                return Membership.decode(entry.payload)
        if recovered.checkpoint is not None:
            return recovered.checkpoint.start.membership
        if group == METADATA_GROUP:
            return Membership(voters=tuple(self.owner.founders.values()))
        row = self.cluster.partitions.get(group)
        if row is None:
            return None
        # A checkpoint that cannot be read may have known of changes since the log began.
        now = self._members_of(row) if recovered.damaged is not None else []
        return Membership(voters=tuple(dict.fromkeys((*row.founders, *now))))

    def standing(self, group: int, *, lost: Collection[int]) -> Standing:
        """Whose the log is, if the brokers `lost` are gone for good, and with them all disks that were
        replaced."""
        membership = self.membership(group)
        if membership is None:
            return Standing.UNKNOWN
        own = self.owner.member
        if own not in (*membership.voters, *membership.learners):
            return Standing.STRANGER
        if membership.voters == (own,):
            return Standing.ALONE
        left = len(membership.voters) - len(self.lost_voters(membership, lost))
        if lost and left < majority(len(membership.voters)):
            return Standing.MAJORITY_LOST
        return Standing.SHARED

    def lost_voters(self, membership: Membership, lost: Collection[int]) -> list[int]:
        brokers = {member: self.broker_of(member) for member in membership.voters}
        own = self.owner.member
        return [
            member
            for member, broker in brokers.items()
            if member != own and (broker is None or broker in lost)
        ]

    def orphans(self, metadata: Examined | None) -> list[int]:
        """The groups that no topic can have any more: the commands that made them were lost, now (`metadata`
        is about to be written anew) or before."""
        cluster = self.cluster
        if metadata is not None:
            cluster = cluster_after(metadata.recovered.start, metadata.tail)
        first_lost = cluster.next_group if metadata is not None else None
        return [
            group
            for group in self.groups
            if group != METADATA_GROUP
            and group not in cluster.partitions
            and (
                any(group in skipped for skipped in cluster.skipped_groups)
                or (first_lost is not None and group >= first_lost)
            )
        ]

    def _members_of(self, row: PartitionRow) -> list[int]:
        brokers = self.cluster.brokers
        return [brokers[broker_id].member for broker_id in row.replicas if broker_id in brokers]


def cluster_after(start: StartState, tail: Iterable[Entry]) -> ClusterState:
    """The metadata with all commands of the log, committed or not."""
    cluster = decode_cluster(start.state) if start.state else ClusterState()
    for entry in tail:
        if entry.kind == EntryKind.COMMAND:
            proposal, command = entry.payload[:PROPOSAL_ID_BYTES], entry.payload[PROPOSAL_ID_BYTES:]
            cluster.apply(command, entry.index, proposal=proposal)
    return cluster


def why_beyond_help(examined: Examined) -> str | None:
    """Metadata of which the beginning is lost would give its numbers out again: the partitions on the disks
    would become those of other topics."""
    recovered = examined.recovered
    is_from_the_beginning = examined.end.index > 0 or examined.known_end.index == 0
    if examined.group != METADATA_GROUP or recovered.checkpoint is not None or is_from_the_beginning:
        return None
    return (
        "the checkpoint of the metadata is lost, and the write-ahead log does not reach back to its beginning"
    )


def rewrite_of(examined: Examined, holdings: Holdings, *, now_ms: int) -> Rewrite:
    """How the log goes on: with all that is left of it, this broker as the only voter, and a new term."""
    member = holdings.owner.member
    term = examined.newest_term + NEW_TERMS
    entries = [_with_one_voter(entry, member) for entry in examined.tail]
    if examined.group == METADATA_GROUP:
        entries += _skipping(examined, term)
    return Rewrite(
        examined=examined,
        title=holdings.title(examined.group),
        entries=entries,
        hard=HardState(term=term, vote=0),
        start_of=partial(_start_of, examined, member, now_ms),
    )


def _with_one_voter(entry: Entry, member: int) -> Entry:
    """An older membership must not count again, were the broker to start before the next checkpoint."""
    if entry.kind != EntryKind.MEMBERSHIP:
        return entry
    payload = Membership(voters=(member,)).encode()
    return Entry(entry.index, entry.term, entry.kind, entry.base_offset, 0, payload)


def _skipping(examined: Examined, term: int) -> Sequence[Entry]:
    end = examined.end
    command = _NO_PROPOSAL + encode_command(SKIPPED)
    return (
        Entry(end.index + 1, term, EntryKind.TERM_START, end.offset, 0, b""),
        Entry(end.index + 2, term, EntryKind.COMMAND, end.offset, 0, command),
    )


def _start_of(
    examined: Examined,
    member: int,
    now_ms: int,
    entries_from: Callable[[int], Iterator[Entry]],
) -> StartState:
    scan, saved = examined.scan, examined.recovered.checkpoint
    state, log_start_offset = b"", scan.log_start.offset
    if saved is not None:
        log_start_offset = max(log_start_offset, saved.start.log_start_offset)
    if saved is not None and saved.start.index == scan.end.index:
        state = saved.start.state
    elif examined.group != METADATA_GROUP:  # whose state is that of its checkpoint, and of its tail
        after = scan.log_start.index
        if saved is not None and saved.start.index < scan.end.index:
            state, after = saved.start.state, saved.start.index
        state, moved_offset = _replayed(state, entries_from(after + 1), now_ms)
        log_start_offset = max(log_start_offset, moved_offset)
    return StartState(
        index=scan.end.index,
        term=scan.end.term,
        offset=scan.end.offset,
        membership=Membership(voters=(member,)),
        log_start_offset=min(log_start_offset, scan.end.offset),
        terms=scan.terms,
        state=state,
    )


def _replayed(state: bytes, entries: Iterable[Entry], now_ms: int) -> tuple[bytes, int]:
    """The producers and the log start offset after the entries."""
    producers = decode_producers(state, expiration_ms=_NEVER_MS)
    log_start_offset = 0
    for entry in entries:
        if entry.kind == EntryKind.LOG_START:
            log_start_offset = max(log_start_offset, log_start_of(entry))
        elif entry.kind == EntryKind.RECORDS:
            header = read_header(entry.payload)
            if header.producer_id >= 0:
                producers.committed(header, now_ms)
    return encode_producers(producers), log_start_offset
