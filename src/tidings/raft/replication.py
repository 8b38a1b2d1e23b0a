"""Replication, the leader's side: sending entries, and learning from the answers what each follower has.

The one rule: send ahead of the answers within a window of bytes, but count only what a follower says is on
its disk. What is refused or stays unanswered is found out by probing, a whole term per question. It must not
know why an entry was proposed or who is elected. Tests: tests/raft/test_replication.py
"""

from __future__ import annotations

from tidings.raft import reads, starts
from tidings.raft.entries import Entry
from tidings.raft.leading import advance_commit, send_notice, tell_transferee
from tidings.raft.messages import Append, AppendReply
from tidings.raft.outbox import ReadEntries
from tidings.raft.progress import Progress, ProgressState
from tidings.raft.roles import become_follower
from tidings.raft.state import GroupState, Role


def replicate(group: GroupState, now_ms: int) -> None:
    """Send every follower what it lacks and may be sent."""
    if group.role is not Role.LEADER:
        return
    for follower in group.progress.values():
        send_entries(group, follower, now_ms)
    if group.reads.is_collecting:
        group.reads.is_collecting = False
        for follower in group.voters:
            send_notice(group, follower, now_ms, read_context=group.reads.round_number)


def send_entries(group: GroupState, follower: Progress, now_ms: int) -> None:
    """Everything new that fits the follower's window, coalesced; one probe while it is not known what it
    has."""
    if follower.is_waiting:
        return
    if follower.member in group.peers.paused:
        group.peers.skip(follower.member, group.group)
        return
    if follower.state is ProgressState.START:
        starts.send_piece(group, follower, now_ms)
        return
    log = group.log
    next_index = follower.next_index
    last_index = log.last_index
    if follower.state is ProgressState.PROBE:
        probe(group, follower, now_ms)
        return
    if next_index > last_index:
        return
    if next_index < log.window_first:
        ask_storage(group, follower, now_ms)
        return
    config = group.config
    while (
        next_index <= last_index
        and log.bytes_between(follower.match_index, next_index - 1) < config.inflight_bytes_max
    ):
        entries = log.entries_within(next_index, config.append_bytes_max)
        send_append(group, follower, next_index - 1, entries, now_ms)
        next_index += len(entries)
    follower.next_index = next_index


def send_append(
    group: GroupState, follower: Progress, prev_index: int, entries: list[Entry], now_ms: int
) -> None:
    commit_index = group.commit_index
    follower.sent_commit = commit_index
    if follower.unanswered_since_ms is None:
        follower.unanswered_since_ms = now_ms
    term = group.term
    message = Append(
        group.group,
        term,
        group.member,
        follower.member,
        prev_index,
        group.log.term_at(prev_index),
        commit_index,
        entries,
        0,
        follower.session,
    )
    outbox = group.outbox
    if group.hard_flush <= outbox.durable_flush:
        outbox.messages.append(message)
    else:
        outbox.send_after(group.hard_flush, message)


def probe(group: GroupState, follower: Progress, now_ms: int) -> None:
    """Ask with one append whether the follower has the entry before `next_index`."""
    log = group.log
    next_index = follower.next_index
    if next_index <= log.start_index:
        starts.want(group, follower, now_ms)
        return
    if log.window_first <= next_index <= log.last_index:
        entries = log.entries_within(next_index, group.config.append_bytes_max)
        send_append(group, follower, next_index - 1, entries, now_ms)
    else:
        send_notice(group, follower, now_ms, read_context=0)
    follower.is_waiting = True


def ask_storage(group: GroupState, follower: Progress, now_ms: int) -> None:
    """Entries that left memory are read piece by piece, the next one when the one before is on the follower's
    disk."""
    if follower.next_index <= group.log.start_index:
        starts.want(group, follower, now_ms)
    elif follower.match_index == follower.next_index - 1:
        follower.is_waiting = True
        bytes_max = group.config.append_bytes_max
        group.outbox.reads.append(
            ReadEntries(
                group=group.group,
                member=follower.member,
                first_index=follower.next_index,
                bytes_max=bytes_max,
            )
        )


def entries_read(group: GroupState, member: int, entries: list[Entry], now_ms: int) -> None:
    """Storage's answer to ask_storage(); nothing if it could not read: asked again when the silence is
    noticed."""
    follower = group.progress.get(member)
    if follower is None or not follower.is_waiting or follower.state is not ProgressState.REPLICATE:
        return
    if not entries:
        follower.read_failed = True
        return
    follower.is_waiting = False
    group.outbox.dirty[group.group] = None
    log = group.log
    is_next = entries[0].index == follower.next_index and entries[-1].index <= log.last_index
    if is_next and follower.next_index > log.start_index:  # the log start may have moved while storage read
        send_append(group, follower, follower.next_index - 1, entries, now_ms)
        follower.next_index += len(entries)


def on_append_reply(group: GroupState, reply: AppendReply, now_ms: int) -> None:
    if reply.term != group.term:
        if reply.term > group.term:
            become_follower(group, reply.term, 0, now_ms)
        return
    follower = group.progress.get(reply.sender)
    if follower is None or reply.session != follower.session:
        return  # not the leader, or not a member, any more; or said before the follower lost what it had
    follower.last_ack_ms = now_ms
    if not reply.counts and follower.counted_index:
        # It says itself that it may have lost what it promised. Its round asks the voters that it knows of,
        # and this leader may be none of them.
        follower.forget_promises()
        group.outbox.dirty[group.group] = None
    if reply.read_context and reply.counts:
        reads.acknowledged(group, follower, reply.read_context)
    if reply.needs_start:
        starts.want(group, follower, now_ms)
    elif reply.accepted:
        accepted(group, follower, reply, now_ms)
    else:
        refused(group, follower, reply)


def accepted(group: GroupState, follower: Progress, reply: AppendReply, now_ms: int) -> None:
    match_index = max(reply.match_index, follower.match_index)
    follower.match_index = match_index
    if reply.commit_index > follower.commit_index:
        follower.commit_index = reply.commit_index
    last_index = group.log.last_index
    assert match_index <= last_index, (group.group, match_index, last_index)
    if follower.state is not ProgressState.REPLICATE:
        if reply.hint_index < group.log.start_index:
            return  # it is not what the start state is for
        follower.replicate()
        follower.next_index = max(reply.hint_index, match_index) + 1
    elif reply.hint_index >= follower.next_index:
        follower.next_index = reply.hint_index + 1
    next_index = follower.next_index
    follower.unanswered_since_ms = now_ms if match_index + 1 < next_index else None
    if next_index <= last_index and not follower.is_waiting:
        group.outbox.dirty[group.group] = None
    if reply.counts and match_index > follower.counted_index:
        follower.counted_index = match_index
        if match_index > group.commit_index and follower.is_voter:
            advance_commit(group, now_ms)
    if follower.behind_since_ms:
        follower.measure_lag(group.commit_index, now_ms)
    if group.transferee == follower.member:
        tell_transferee(group, follower)


def refused(group: GroupState, follower: Progress, reply: AppendReply) -> None:
    """The follower lacks the entry before what was sent, or has another there: go back by a whole term."""
    refused_index = reply.prev_index
    if follower.state is ProgressState.START or refused_index <= follower.match_index:
        return  # overtaken by what is known since
    if follower.state is ProgressState.REPLICATE:
        follower.probe()
    elif refused_index != follower.next_index - 1:
        return
    guess = group.log.newest_in_terms_up_to(reply.hint_index, reply.hint_term)
    follower.next_index = max(min(refused_index, guess + 1), follower.match_index + 1)
    follower.is_waiting = False
    follower.unanswered_since_ms = None
    group.outbox.dirty[group.group] = None


def tell_commit(group: GroupState, now_ms: int) -> None:
    """Tell followers the commit index that no append carried to them."""
    if group.role is not Role.LEADER:
        return
    for follower in group.progress.values():
        if follower.state is ProgressState.REPLICATE and follower.sent_commit < group.commit_index:
            if follower.member in group.peers.paused:
                group.outbox.lagging[group.group] = None
            else:
                send_notice(group, follower, now_ms, read_context=0)
