"""Linearizable reads without writing (ReadIndex, Raft dissertation 6.4): a majority confirms that the leader
still leads.

The one rule: an answer names a commit index that was known when the read was asked for, in a term of which an
entry is already committed, and a majority confirmed the term after that. No clock is trusted. It must not
know what is read. Tests: tests/raft/test_reads.py

Reads asked for in one turn share a round: one append to each voter, whose reply names the round.
"""

from __future__ import annotations

from tidings.raft.membership import majority
from tidings.raft.outbox import ReadConfirmed
from tidings.raft.progress import Progress
from tidings.raft.state import GroupState, Role, WaitingRead


def ask(group: GroupState, context: int) -> None:
    """Answer `context` in outbox.reads_confirmed, as soon as it is known."""
    if group.role is not Role.LEADER:
        refuse(group, context)
    elif not group.term_start_committed:
        group.reads.without_round.append(context)
    elif group.membership.voters == (group.member,):
        confirm(group, context, group.commit_index)
    else:
        join_round(group, context)


def join_round(group: GroupState, context: int) -> None:
    """Wait for the next round. The one being collected goes out with the group's next appends."""
    reads = group.reads
    if not reads.is_collecting:
        begin_round(group)
    reads.waiting.append(WaitingRead(reads.round_number, context, group.commit_index))


def begin_round(group: GroupState) -> None:
    """Question the voters with the next flush. A later round also confirms what waits for earlier ones."""
    group.reads.round_number += 1
    group.reads.is_collecting = True
    group.outbox.dirty[group.group] = None


def term_start_committed(group: GroupState) -> None:
    """Reads that came before now have an index to wait for."""
    contexts, group.reads.without_round = group.reads.without_round, []
    for context in contexts:
        ask(group, context)


def acknowledged(group: GroupState, follower: Progress, round_number: int) -> None:
    """A voter confirmed this leader's term in answer to a round."""
    if round_number <= follower.read_acked or not follower.is_voter:
        return
    follower.read_acked = round_number
    reads = group.reads
    if not reads.waiting:
        return
    rounds = [voter.read_acked for voter in group.voters]
    if group.is_voter:
        rounds.append(reads.round_number)
    rounds.sort()
    confirmed_round = rounds[len(rounds) - majority(len(rounds))]
    still_waiting: list[WaitingRead] = []
    for read in reads.waiting:
        if read.round_number <= confirmed_round:
            confirm(group, read.context, read.index)
        else:
            still_waiting.append(read)
    reads.waiting = still_waiting


def refuse_all(group: GroupState) -> None:
    """Leadership ended: whoever asked must ask the next leader."""
    reads = group.reads
    for read in reads.waiting:
        refuse(group, read.context)
    for context in reads.without_round:
        refuse(group, context)
    reads.waiting = []
    reads.without_round = []
    reads.is_collecting = False


def confirm(group: GroupState, context: int, index: int) -> None:
    group.outbox.reads_confirmed.append(ReadConfirmed(group=group.group, context=context, index=index))


def refuse(group: GroupState, context: int) -> None:
    group.outbox.reads_confirmed.append(ReadConfirmed(group=group.group, context=context, index=None))
