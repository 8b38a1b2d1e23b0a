"""Start states, the follower's side: collecting the pieces, then replacing the log.

The one rule: from the moment a start is taken until the owner has made it durable, this replica promises
nothing that rests on it. A start at or below what is committed here, or that the log already contains,
replaces nothing. It must not know what a start state holds for its owner. Tests: tests/raft/test_starts.py
"""

from __future__ import annotations

from tidings.raft.doubt import recount
from tidings.raft.entries import Entry, EntryKind, StartState
from tidings.raft.errors import WireError
from tidings.raft.following import obeys
from tidings.raft.leading import take_membership
from tidings.raft.log import GroupLog
from tidings.raft.membership import MembershipHistory
from tidings.raft.messages import InstallReply, InstallStart
from tidings.raft.outbox import StartInstalled
from tidings.raft.start_codec import decode_start
from tidings.raft.state import GroupState, IncomingStart


def on_install_start(group: GroupState, message: InstallStart, now_ms: int) -> None:
    if not obeys(group, message, now_ms) or group.installing:
        return
    if has_already(group, message):
        group.promise(reply_to(group, message, next_offset=message.total_bytes, installed=True))
        return
    if message.total_bytes > group.config.start_bytes_max:
        return
    incoming = group.incoming
    if incoming is None or not continues(incoming, message):
        incoming = group.incoming = IncomingStart(
            message.sender,
            message.term,
            message.session,
            message.start_index,
            message.start_term,
            message.total_bytes,
        )
    if message.piece_offset == len(incoming.received):
        incoming.received += message.piece
    if len(incoming.received) < incoming.total_bytes:
        group.send(reply_to(group, message, next_offset=len(incoming.received), installed=False))
        return
    start = decode_start(bytes(incoming.received))
    incoming.received = bytearray()
    if (start.index, start.term) != (message.start_index, message.start_term):
        group.incoming = None
        raise WireError(f"start state of entry {start.index} sent as that of entry {message.start_index}")
    install(group, start)


def has_already(group: GroupState, message: InstallStart) -> bool:
    if group.damaged:
        return False
    if message.start_index <= group.commit_index:
        return True
    if not group.log.matches(message.start_index, message.start_term):
        return False
    group.commit_to(message.start_index)
    return True


def continues(incoming: IncomingStart, message: InstallStart) -> bool:
    """Whether a piece is of the transfer that is under way: the same leader's copy of the same state."""
    return (
        incoming.term == message.term
        and incoming.session == message.session
        and incoming.start_index == message.start_index
        and incoming.start_term == message.start_term
        and incoming.total_bytes == message.total_bytes
    )


def install(group: GroupState, start: StartState) -> None:
    """Go on from the start state; all that the log held is gone."""
    group.log = GroupLog(start)
    group.members = MembershipHistory(start.index, start.membership)
    group.commit_index = group.durable_index = start.index
    group.commit_offset = group.durable_offset = start.offset
    group.damaged = False
    group.installing = True
    recount(group)
    outbox = group.outbox
    # For the write-ahead log: what it holds of this group is void, and flushes before this one wrote nothing
    # that lasts.
    replacement = Entry(start.index, start.term, EntryKind.START, start.offset, 0, b"")
    outbox.entries.append((group.group, replacement))
    group.log_flush = group.replaced_flush = outbox.collecting_flush
    group.replaced_index = start.index + 1
    outbox.starts_installed.append(StartInstalled(group=group.group, start=start))
    outbox.advanced[group.group] = None
    take_membership(group)


def start_installed(group: GroupState) -> None:
    """The owner has made the start durable."""
    assert group.installing, group.group
    group.installing = False
    incoming, group.incoming = group.incoming, None
    assert incoming is not None, group.group
    group.promise(
        InstallReply(
            group.group,
            group.term,
            group.member,
            incoming.sender,
            incoming.start_index,
            incoming.total_bytes,
            True,
            incoming.session,
        )
    )


def reply_to(group: GroupState, message: InstallStart, *, next_offset: int, installed: bool) -> InstallReply:
    return InstallReply(
        group.group,
        group.term,
        group.member,
        message.sender,
        message.start_index,
        next_offset,
        installed,
        message.session,
    )
