"""Following: taking a leader's entries, the follower's side of replication.

The one rule: entries are cut off only where an entry of the leader has another term, never because an append
is old or short; and nothing is taken for committed beyond what was just compared with the leader's log. It
must not know what the leader will do with the answer. Tests: tests/raft/test_following.py
"""

from __future__ import annotations

from tidings.raft.entries import Entry
from tidings.raft.errors import LogDiverged
from tidings.raft.leading import take_membership
from tidings.raft.messages import Append, AppendReply, InstallStart
from tidings.raft.roles import become_follower
from tidings.raft.state import GroupState


def obeys(group: GroupState, message: Append | InstallStart, now_ms: int) -> bool:
    """Whether the sender is the leader to follow now. One of an older term is told of the newer one."""
    if message.term < group.term:
        group.send(stale_reply(group, message))
        return False
    if message.term > group.term or group.leader != message.sender:
        assert message.term > group.term or group.leader == 0, (
            group.group,
            group.term,
            group.leader,
            message,
        )
        become_follower(group, message.term, message.sender, now_ms)
    group.last_contact_ms = now_ms
    return True


def on_append(group: GroupState, append: Append, now_ms: int) -> None:
    if not obeys(group, append, now_ms) or group.installing:
        return  # while a start state becomes durable nothing can be promised behind it
    if group.damaged:
        group.send(reply_to(group, append, False, 0, 0, 0))
        return
    log = group.log
    agreed_index = append.prev_index
    entries = append.entries
    if agreed_index < group.commit_index:
        # What is committed here agrees with every leader's log: go on behind it.
        known = entries[: group.commit_index - agreed_index]
        if not all(e.index <= log.start_index or log.term_at(e.index) == e.term for e in known):
            raise LogDiverged(f"entries {known[0].index} to {known[-1].index} are committed here otherwise")
        entries = entries[len(known) :]
        agreed_index = group.commit_index
    elif agreed_index > log.last_index or log.term_at(agreed_index) != append.prev_term:
        refuse(group, append)
        return
    if entries:
        take_entries(group, entries)
        agreed_index += len(entries)
    commit_index = min(append.commit_index, agreed_index)
    if commit_index > group.commit_index:
        group.commit_to(commit_index)
    acknowledge(group, append, agreed_index)


def take_entries(group: GroupState, entries: list[Entry]) -> None:
    """Append what is new. What is there already, in the same term, stays, and so does all behind it."""
    log = group.log
    first_index = entries[0].index
    had_membership = group.members.newest_index
    if first_index <= log.last_index:
        new = 0
        for entry in entries:
            if entry.index > log.last_index:
                break
            if log.term_at(entry.index) != entry.term:
                replace_from(group, entry.index)
                break
            new += 1
        entries = entries[new:]
    for entry in entries:
        group.append(entry)
    if group.members.newest_index != had_membership:
        take_membership(group)


def replace_from(group: GroupState, index: int) -> None:
    """The leader has another entry at `index`: what stands there and behind it was never committed."""
    assert index > group.commit_index, (group.group, index, group.commit_index)
    group.log.truncate(index)
    group.replaces_from(index)
    if group.members.truncate(index):
        take_membership(group)


def acknowledge(group: GroupState, append: Append, agreed_index: int) -> None:
    """Say what agrees, and what of it is durable; for entries just taken that is so when the reply leaves."""
    if append.entries and agreed_index > group.durable_index:
        group.promise(
            reply_to(
                group, append, accepted=True, match_index=agreed_index, hint_index=agreed_index, hint_term=0
            )
        )
        return
    match_index = min(agreed_index, group.durable_index)
    group.send(
        reply_to(group, append, accepted=True, match_index=match_index, hint_index=agreed_index, hint_term=0)
    )


def refuse(group: GroupState, append: Append) -> None:
    """Name the newest entry that may agree: of the append's previous term or an older one."""
    hint_index = group.log.newest_in_terms_up_to(append.prev_index, append.prev_term)
    hint_index = max(hint_index, group.commit_index)
    group.send(reply_to(group, append, False, 0, hint_index, group.log.term_at(hint_index)))


def reply_to(
    group: GroupState, append: Append, accepted: bool, match_index: int, hint_index: int, hint_term: int
) -> AppendReply:
    return AppendReply(
        group.group,
        group.term,
        group.member,
        append.sender,
        accepted,
        append.prev_index,
        match_index,
        hint_index,
        hint_term,
        group.commit_index,
        group.damaged,
        group.counts,
        append.read_context,
        append.session,
    )


def stale_reply(group: GroupState, message: Append | InstallStart) -> AppendReply:
    """To a leader of an older term: all that matters is the newer one."""
    return AppendReply(
        group.group,
        group.term,
        group.member,
        message.sender,
        False,
        0,
        0,
        0,
        0,
        0,
        False,
        False,
        0,
        message.session,
    )
