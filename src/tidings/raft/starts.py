"""Start states, the leader's side: a follower below the log's start, or without a log, is given what it can
go on from.

The one rule: one piece is on its way at a time, and the follower says which one it wants next, so an
interrupted transfer goes on where it stopped. It must not know what a start state holds. Tests:
tests/raft/test_starts.py

Roles of the two sides: the leader's owner makes the state (outbox.starts_wanted, give); the follower's owner
replaces its storage by it (outbox.starts_installed, installing.py). What comes behind it are ordinary
appends.
"""

from __future__ import annotations

from tidings.raft.entries import StartState
from tidings.raft.messages import InstallReply, InstallStart
from tidings.raft.outbox import StartWanted
from tidings.raft.progress import Progress, ProgressState, StartSending
from tidings.raft.roles import become_follower
from tidings.raft.start_codec import encode_start
from tidings.raft.state import GroupState


def want(group: GroupState, follower: Progress, now_ms: int) -> None:
    """Ask the owner for a start state, once; again when the silence is noticed (send_piece)."""
    if follower.state is not ProgressState.START:
        follower.want_start()
        ask_owner(group, follower, now_ms)


def ask_owner(group: GroupState, follower: Progress, now_ms: int) -> None:
    group.outbox.starts_wanted.append(StartWanted(group=group.group, member=follower.member))
    follower.is_waiting = True
    follower.unanswered_since_ms = now_ms


def give(group: GroupState, member: int, start: StartState) -> None:
    """The owner's answer."""
    follower = group.progress.get(member)
    if follower is None or follower.state is not ProgressState.START or follower.sending is not None:
        return
    assert group.log.start_index <= start.index <= group.commit_index, (start.index, group.log.start_index)
    follower.sending = StartSending(encode_start(start), start.index, start.term)
    follower.is_waiting = False
    follower.unanswered_since_ms = None
    group.outbox.dirty[group.group] = None


def send_piece(group: GroupState, follower: Progress, now_ms: int) -> None:
    """Send the piece that the follower wants next, and wait for its answer."""
    sending = follower.sending
    if sending is None:
        ask_owner(group, follower, now_ms)
        return
    piece_end = sending.next_offset + group.config.start_piece_bytes
    group.send(
        InstallStart(
            group.group,
            group.term,
            group.member,
            follower.member,
            sending.start_index,
            sending.start_term,
            sending.next_offset,
            len(sending.encoded),
            sending.encoded[sending.next_offset : piece_end],
            follower.session,
        )
    )
    follower.is_waiting = True
    follower.unanswered_since_ms = now_ms


def on_install_reply(group: GroupState, reply: InstallReply, now_ms: int) -> None:
    if reply.term != group.term:
        if reply.term > group.term:
            become_follower(group, reply.term, 0, now_ms)
        return
    follower = group.progress.get(reply.sender)
    if follower is None or reply.session != follower.session:
        return
    follower.last_ack_ms = now_ms
    sending = follower.sending
    if sending is None or reply.start_index != sending.start_index:
        return
    group.outbox.dirty[group.group] = None
    if reply.installed:
        follower.match_index = max(follower.match_index, reply.start_index)
        follower.probe()
        follower.next_index = follower.match_index + 1
        return
    follower.unanswered_since_ms = None
    follower.is_waiting = False
    sending.next_offset = min(reply.next_offset, len(sending.encoded))
