"""Leading: taking office, taking proposals, committing, and giving up when no majority answers.

The one rule: an entry is committed when it is of the leader's own term and on the disks of a majority, the
leader's own disk counting only once its own flush is durable (Raft 5.4.2). Entries of earlier terms follow.
It must not know how entries reach the followers. Tests: tests/raft/test_commit.py
"""

from __future__ import annotations

from tidings.raft import reads
from tidings.raft.entries import Entry, EntryKind, Membership
from tidings.raft.errors import LogFull, MembershipRefused, NotLeader
from tidings.raft.membership import check_step, majority
from tidings.raft.messages import Append, TimeoutNow
from tidings.raft.progress import Progress, ProgressState
from tidings.raft.roles import step_down
from tidings.raft.state import GroupState, Role


def start_leading(group: GroupState, now_ms: int) -> None:
    """Won: begin the term with an entry of its own, which alone can commit what earlier terms left."""
    group.change_role(Role.LEADER)
    group.leader = group.member
    group.votes = {}
    group.campaign_at_ms = None
    group.hurry_ms = 0
    group.around.leaders.learn(group.group, group.member, group.term)
    group.outbox.led[group.group] = None
    group.progress = {}
    group.term_start_index = group.log.last_index + 1
    group.term_start_committed = False
    sync_followers(group, now_ms)
    append_own(group, EntryKind.TERM_START, b"", 0)
    group.arm(now_ms + group.config.election_timeout_ms_min // 2)


def sync_followers(group: GroupState, now_ms: int) -> None:
    """Have a progress for every other member, as the membership of now says."""
    membership = group.membership
    known = group.progress
    group.progress = {}
    for member in (*membership.voters, *membership.learners):
        if member == group.member:
            continue
        follower = known.get(member)
        if follower is None:
            follower = Progress(member, group.log.last_index + 1, is_voter=False, now_ms=now_ms)
        follower.is_voter = member in membership.voters
        group.progress[member] = follower
    group.voters = [follower for follower in group.progress.values() if follower.is_voter]
    group.commit_rank = len(membership.voters) - majority(len(membership.voters))


def propose(group: GroupState, kind: int, payload: bytes, record_count: int) -> Entry:
    """Append an entry to the own log; the flush and the followers come with the host's next flush."""
    if group.role is not Role.LEADER or group.transferee:
        raise NotLeader(group.group, group.leader if group.role is not Role.LEADER else group.transferee)
    log = group.log
    if log.last_index > group.commit_index:
        uncommitted_bytes = log.bytes_between(group.commit_index, log.last_index)
        if uncommitted_bytes + len(payload) > group.config.uncommitted_bytes_max:
            raise LogFull(f"group {group.group}: {uncommitted_bytes} bytes wait for a majority")
    return append_own(group, kind, payload, record_count)


def append_own(group: GroupState, kind: int, payload: bytes, record_count: int) -> Entry:
    log = group.log
    entry = Entry(log.last_index + 1, group.term, kind, log.next_offset, record_count, payload)
    group.append(entry)
    group.outbox.dirty[group.group] = None
    return entry


def propose_membership(group: GroupState, membership: Membership, now_ms: int) -> Entry:
    """Change who is a member. One voter at a time, after an entry of the own term is committed: two leaders
    that change the same membership differently could else each find a majority (Ongaro, raft-dev, 2015)."""
    check_step(group.membership, membership)
    if group.role is Role.LEADER and not group.term_start_committed:
        raise MembershipRefused("no entry of this term is committed yet")
    if group.members.newest_index > group.commit_index:
        raise MembershipRefused(f"the change at {group.members.newest_index} is not committed yet")
    entry = propose(group, EntryKind.MEMBERSHIP, membership.encode(), 0)
    take_membership(group)
    sync_followers(group, now_ms)
    advance_commit(group, now_ms)
    return entry


def take_membership(group: GroupState) -> None:
    """The log says anew who is a member."""
    group.membership = group.members.newest
    group.outbox.changed[group.group] = None
    for member in (*group.membership.voters, *group.membership.learners):
        if member != group.member:
            group.peers.meet(member)


def advance_commit(group: GroupState, now_ms: int) -> None:
    """Commit what a majority of the voters has on disk."""
    durable = [follower.counted_index for follower in group.voters]
    if group.is_voter:
        durable.append(group.durable_index)
    durable.sort()
    index = durable[group.commit_rank]
    if index <= group.commit_index or index < group.term_start_index:
        return
    group.commit_to(index)
    group.outbox.lagging[group.group] = None
    for follower in group.progress.values():
        if follower.match_index < index:
            follower.committed(index, now_ms)
    if not group.term_start_committed:
        group.term_start_committed = True
        group.outbox.changed[group.group] = None
        reads.term_start_committed(group)
    if not group.is_voter and group.members.newest_index <= index:
        resign(group, now_ms)


def resign(group: GroupState, now_ms: int) -> None:
    """The leader is no voter any more, and that is committed: let the follower that has all go on at once."""
    best = max(group.voters, key=_match_index, default=None)
    if best is not None and best.match_index == group.log.last_index:
        group.send(TimeoutNow(group.group, group.term, group.member, best.member))
    step_down(group, now_ms)


def _match_index(follower: Progress) -> int:
    return follower.match_index


def tick(group: GroupState, now_ms: int) -> None:
    """Twice per timeout: give up without a majority, and doubt what was sent to followers that are silent."""
    half_timeout_ms = group.config.election_timeout_ms_min // 2
    if not hears_majority(group, now_ms):
        step_down(group, now_ms)
        return
    group.arm(now_ms + half_timeout_ms)
    if group.transferee:
        if now_ms >= group.transfer_ends_ms:
            group.transferee = 0
            group.outbox.changed[group.group] = None
        else:
            group.arm(min(group.deadline_ms, group.transfer_ends_ms))
    if group.reads.waiting:
        reads.begin_round(group)  # the last one's questions or answers may be lost
    for follower in group.progress.values():
        since_ms = follower.unanswered_since_ms
        if follower.read_failed or (since_ms is not None and now_ms - since_ms >= half_timeout_ms):
            doubt_sent(group, follower)
        elif (
            follower.commit_index < group.commit_index or follower.counted_index < follower.match_index
        ) and follower.state is ProgressState.REPLICATE:
            follower.sent_commit = (
                -1
            )  # told again: the last notice may be lost, or the follower's doubts settled
            group.outbox.lagging[group.group] = None


def doubt_sent(group: GroupState, follower: Progress) -> None:
    """What was sent and not answered may be lost: find out what is there."""
    if follower.state is ProgressState.START:
        follower.unanswered_since_ms = None
        follower.is_waiting = False
    else:
        follower.probe()
    group.outbox.dirty[group.group] = None


def hears_majority(group: GroupState, now_ms: int) -> bool:
    """Whether a majority was heard within an election timeout, this replica included."""
    if now_ms < group.peers.excused_until_ms:
        return True
    agreed_ms = group.peers.agreed_ms
    since_ms = now_ms - group.config.election_timeout_ms_min
    heard = 1 if group.is_voter else 0
    for follower in group.voters:
        if follower.last_ack_ms > since_ms or agreed_ms.get(follower.member, 0) > since_ms:
            heard += 1
    return heard >= majority(len(group.membership.voters))


def send_notice(group: GroupState, follower: Progress, now_ms: int, *, read_context: int) -> None:
    """An append without entries: tells the commit index, asks whether this member still leads."""
    prev_index = max(follower.next_index - 1, group.log.start_index)
    follower.sent_commit = group.commit_index
    if follower.unanswered_since_ms is None:
        follower.unanswered_since_ms = now_ms
    group.send(
        Append(
            group.group,
            group.term,
            group.member,
            follower.member,
            prev_index,
            group.log.term_at(prev_index),
            group.commit_index,
            [],
            read_context,
            follower.session,
        )
    )


def hand_over(group: GroupState, member: int, now_ms: int) -> None:
    """Let another voter lead: no proposals from now on, and once it has all, it is told to stand."""
    follower = group.progress.get(member)
    if group.role is not Role.LEADER or follower is None or not follower.is_voter:
        return
    group.transferee = member
    group.transfer_ends_ms = now_ms + group.config.transfer_timeout_ms
    group.outbox.changed[group.group] = None
    group.outbox.dirty[group.group] = None
    group.arm(min(group.deadline_ms, group.transfer_ends_ms))
    tell_transferee(group, follower)


def tell_transferee(group: GroupState, follower: Progress) -> None:
    if follower.match_index == group.log.last_index:
        group.send(TimeoutNow(group.group, group.term, group.member, follower.member))
