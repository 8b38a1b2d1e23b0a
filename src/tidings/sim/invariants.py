"""Invariants: what must hold after every event, whatever went wrong.

Its one rule: it only looks. It remembers, beside the machines and never lost, what was ever committed,
voted, led and acknowledged, and compares each machine with that after each of its turns. It must not know
which faults were chosen. Tests: tests/sim/test_invariants.py, tests/sim/mutants.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.raft.entries import Entry, EntryKind, Membership
from tidings.raft.group import Group
from tidings.raft.messages import AppendReply, Message, VoteReply
from tidings.sim.disk import Disk
from tidings.sim.replica import BatchId, batch_of


class Violation(AssertionError):
    """Something happened that must never happen."""


class CommittedLog:
    """What is committed in one group, from its first entry on. Nothing in it ever changes."""

    __slots__ = ("commit_terms", "entries", "index_by_batch", "last_sequences", "membership", "next_offset")

    def __init__(self, membership: Membership) -> None:
        self.entries: list[Entry] = []  # entries[i] has index i + 1
        self.commit_terms: list[int] = []  # the term in which each was committed, its own or a later one
        self.next_offset = 0
        self.index_by_batch: dict[BatchId, int] = {}
        self.last_sequences: dict[int, int] = {}
        self.membership = membership

    @property
    def last_index(self) -> int:
        return len(self.entries)

    def term_at(self, index: int) -> int:
        return self.entries[index - 1].term if index else 0

    def last_index_before_term(self, term: int) -> int:
        """The last entry that was committed in an older term than this."""
        index = self.last_index
        while index and self.commit_terms[index - 1] >= term:
            index -= 1
        return index


class _Seen:
    """A replica as it was at the end of its last turn in this life."""

    __slots__ = ("commit_index", "last_index", "log_start_index", "role", "term", "vote")

    def __init__(self, group: Group) -> None:
        self.take(group)

    def take(self, group: Group) -> None:
        self.term = group.term
        self.vote = group.vote
        self.commit_index = group.commit_index
        self.last_index = group.last_index
        self.log_start_index = group.log.start_index
        self.role = group.role


class Invariants:
    """`disks` are all disks by member; `is_lossy(group, member)`: the member may lack what it promised, by
    a fault it has not yet been healed of, and is known to count for nothing meanwhile."""

    def __init__(self, disks: dict[int, Disk], is_lossy: Callable[[int, int], bool]) -> None:
        self.committed: dict[int, CommittedLog] = {}
        self.checked_count = 0
        self._disks = disks
        self._is_lossy = is_lossy
        self._leaders: dict[tuple[int, int], int] = {}  # (group, term) -> member
        self._votes: dict[tuple[int, int, int], int] = {}  # (group, member, term) -> candidate
        self._seen: dict[tuple[int, int], _Seen] = {}  # (member, group)
        self._unsaved_counts: dict[
            int, int
        ] = {}  # by member: entries of the flush being collected that were seen

    def terms_led(self, group: int) -> list[int]:
        return [term for led, term in self._leaders if led == group]

    def group_created(self, group: int, membership: Membership) -> None:
        self.committed[group] = CommittedLog(membership)

    def life_ended(self, member: int) -> None:
        """A machine went down: its memory begins anew, what it promised does not."""
        for key in [key for key in self._seen if key[0] == member]:
            del self._seen[key]
        self._unsaved_counts[member] = 0

    def replica_removed(self, member: int, group: int, unsaved: list[tuple[int, Entry]]) -> None:
        self._seen.pop((member, group), None)
        self._unsaved_counts[member] = len(unsaved)

    def flush_begun(self, member: int) -> None:
        """What the member had collected is being written; it collects anew."""
        self._unsaved_counts[member] = 0

    # -- after every turn

    def check_turn(self, member: int, groups: Iterable[Group], unsaved: list[tuple[int, Entry]]) -> None:
        """`unsaved`: what the member has collected for its next flush."""
        if unsaved:
            for number, entry in unsaved[self._unsaved_counts.get(member, 0) :]:
                self._check_unsaved(member, number, entry)
            self._unsaved_counts[member] = len(unsaved)
        self.checked_count += 1
        for group in groups:
            log = group.log
            seen = self._seen.get((member, group.group))
            if seen is None:
                self._seen[member, group.group] = _Seen(group)
                self._check_role(member, group)
            elif (
                group.commit_index != seen.commit_index
                or log.last_index != seen.last_index
                or group.term != seen.term
                or group.vote != seen.vote
                or group.role is not seen.role
                or log.start_index != seen.log_start_index
            ):
                self._check_changed(member, group, seen)
                seen.take(group)

    def _check_changed(self, member: int, group: Group, seen: _Seen) -> None:
        if group.term != seen.term or group.vote != seen.vote:
            self._check_term(member, group, seen)
        if group.role != seen.role or group.term != seen.term:
            self._check_role(member, group)
        _demand(
            group.commit_index >= seen.commit_index, f"commit fell from {seen.commit_index}", member, group
        )
        _demand(group.last_index >= group.commit_index, "log ends before commit", member, group)
        _demand(group.log.start_index <= group.commit_index, "log starts behind commit", member, group)
        known = self.committed[group.group].last_index
        _demand(
            group.commit_index <= known, f"commit without an announcement (known: {known})", member, group
        )

    def _check_term(self, member: int, group: Group, seen: _Seen) -> None:
        _demand(group.term >= seen.term, f"term fell from {seen.term}", member, group)
        if group.term == seen.term:
            _demand(not seen.vote, f"vote for {seen.vote} changed to {group.vote}", member, group)

    def _check_role(self, member: int, group: Group) -> None:
        if not group.is_leader:
            return
        leader = self._leaders.setdefault((group.group, group.term), member)
        _demand(leader == member, f"second leader of its term besides {leader}", member, group)
        # Leader Completeness (Raft 5.4.3), by Log Matching through the last committed entry alone.
        log = self.committed[group.group]
        index = log.last_index_before_term(group.term)
        held = group.log.matches(index, log.term_at(index)) if index else True
        _demand(held, f"leader without committed entry {index} of term {log.term_at(index)}", member, group)

    def _check_unsaved(self, member: int, group: int, entry: Entry) -> None:
        """An entry about to be written replaces what stands at its index: that must not be committed here."""
        seen = self._seen.get((member, group))
        log = self.committed.get(group)
        if seen is None or log is None or entry.kind == EntryKind.START or entry.index > seen.commit_index:
            return
        same = log.entries[entry.index - 1].term == entry.term
        if not same:
            raise Violation(f"member {member} group {group}: entry {entry.index} replaced below commit")

    # -- when something is told

    def sent(self, message: Message) -> None:
        """A message leaves: what it promises must be on the sender's disk, and hold for ever."""
        if isinstance(message, VoteReply):
            if message.granted and not message.pre:
                self._check_vote(message)
        elif isinstance(message, AppendReply) and message.accepted and message.counts:
            self._check_promise(message)

    def _check_vote(self, reply: VoteReply) -> None:
        key = (reply.group, reply.sender, reply.asked_term)
        candidate = self._votes.setdefault(key, reply.receiver)
        if candidate != reply.receiver:
            raise Violation(
                f"member {reply.sender} group {reply.group}: voted in term {reply.asked_term} "
                f"for {candidate} and for {reply.receiver}"
            )

    def _check_promise(self, reply: AppendReply) -> None:
        seen = self._seen.get((reply.sender, reply.group))
        if seen is not None and seen.term > reply.term:
            return  # true in its own term; the leader of a newer one may have replaced it since
        image = self._disks[reply.sender].images.get(reply.group)
        if image is not None and reply.match_index > max(image.durable_last, image.checkpoint.index):
            raise Violation(
                f"member {reply.sender} group {reply.group}: promised entry {reply.match_index}, "
                f"{image.durable_last} is durable"
            )

    # -- when something is committed

    def applied(self, member: int, group: Group, entries: list[Entry]) -> None:
        """A member takes these entries for committed."""
        log = self.committed[group.group]
        known = log.entries
        known_before = len(known)
        for entry in entries:
            if entry.index <= len(known):
                before = known[entry.index - 1]
                if before is not entry and before != entry:
                    raise Violation(
                        f"member {member} group {group.group}: committed {entry}, but {before} before"
                    )
            else:
                self._commit(member, group, log, entry)
        if len(known) > known_before:
            self._check_durable(group.group, [group.membership.voters], known[-1])

    def _commit(self, member: int, group: Group, log: CommittedLog, entry: Entry) -> None:
        _demand(
            entry.index == log.last_index + 1, f"entry {entry.index} committed behind a hole", member, group
        )
        _demand(
            entry.base_offset == log.next_offset, f"offset {entry.base_offset} leaves a hole", member, group
        )
        _demand(entry.term >= log.term_at(log.last_index), f"term of entry {entry.index} fell", member, group)
        if entry.kind == EntryKind.RECORDS:
            batch = batch_of(entry.payload)
            expected = log.last_sequences.get(batch.producer, -1) + 1
            _demand(batch.sequence == expected, f"{batch} committed, expected {expected}", member, group)
            log.last_sequences[batch.producer] = batch.sequence
            log.index_by_batch[batch] = entry.index
        else:
            _demand(entry.record_count == 0, f"entry {entry.index} takes offsets", member, group)
        if entry.kind == EntryKind.MEMBERSHIP:
            before, log.membership = log.membership, Membership.decode(entry.payload)
            changed = set(before.voters) ^ set(log.membership.voters)
            _demand(len(changed) <= 1, f"voters went from {before} to {log.membership}", member, group)
        log.entries.append(entry)
        log.commit_terms.append(group.term)
        log.next_offset = entry.next_offset

    def _check_durable(self, group: int, electorates: list[tuple[int, ...]], entry: Entry) -> None:
        for voters in electorates:
            holders = [m for m in voters if self._holds(m, group, entry) or self._is_lossy(group, m)]
            if len(holders) > len(voters) // 2:
                return
        raise Violation(
            f"group {group}: entry {entry.index} committed, durable on {holders} of {voters} only"
        )

    def _holds(self, member: int, group: int, entry: Entry) -> bool:
        disk = self._disks.get(member)
        image = disk.images.get(group) if disk is not None else None
        return image is not None and image.holds(entry.index, entry.term)

    def check_still_durable(self, group: Group) -> None:
        """A replica that lacked promises counts again: what is committed must be on a majority even so."""
        log = self.committed[group.group]
        if log.entries:
            self._check_durable(
                group.group, [group.membership.voters, log.membership.voters], log.entries[-1]
            )

    # -- now and then, and at the end

    def check_log_matching(self, groups: list[Group]) -> None:
        """Two logs of a group with an entry of the same index and term agree in all before it (Raft 5.3)."""
        for place, group in enumerate(groups):
            for other in groups[place + 1 :]:
                _check_pair(group, other)

    def check_one_uncommitted_change(self, member: int, group: Group) -> None:
        """Behind what is committed, known to the leader or not, there is one change of membership at most."""
        if not group.is_leader:
            return
        committed_index = self.committed[group.group].last_index
        tail = group.log.entries_from(max(committed_index + 1, group.log.window_first))
        changes = [entry.index for entry in tail if entry.kind == EntryKind.MEMBERSHIP]
        _demand(len(changes) <= 1, f"uncommitted membership changes at {changes}", member, group)

    def check_acked(self, group: int, acked: dict[BatchId, int]) -> None:
        """All that was acknowledged is committed. (Once, in order and without holes is checked at each
        commit.)"""
        missing = [batch for batch in acked if batch not in self.committed[group].index_by_batch]
        if missing:
            raise Violation(f"group {group}: acknowledged but not committed: {missing[:5]}")


def _check_pair(group: Group, other: Group) -> None:
    first = max(group.log.window_first, other.log.window_first)
    last = min(group.last_index, other.last_index)
    agrees = False
    for index in range(last, first - 1, -1):
        mine, theirs = group.log.entry_at(index), other.log.entry_at(index)
        if mine.term == theirs.term:
            agrees = True
            same = mine is theirs or mine == theirs
        else:
            same = not agrees
        if not same:
            raise Violation(
                f"group {group.group}: members {group.member} and {other.member} differ at entry {index}: "
                f"{mine} and {theirs}"
            )


def _demand(holds: bool, otherwise: str, member: int, group: Group) -> None:
    if not holds:
        raise Violation(
            f"member {member} group {group.group} (term {group.term}, {group.role.name}, "
            f"commit {group.commit_index}, last {group.last_index}): {otherwise}"
        )
