"""Doubt: a replica that may have lost what it promised finds out what that can have been.

The one rule: until every other voter has answered twice it grants no vote, stands for no election, and
nothing it acknowledges is counted. It must not know why it is in doubt. Tests: tests/raft/test_doubt.py

A torn last flush is mostly one that was never finished, so nothing rested on it. But it looks the same as a
finished one that was damaged later, and then two kinds of promises are lost: a vote (in a term T, perhaps
newer than any this replica now knows), and acknowledged entries (which may be committed by having been
counted). The round restores both:

Phase 1, "stop counting on me". A leader forgets what this replica acknowledged and raises the session of its
    appends, so that an old reply still under way is counted by nobody. Whatever was committed by counting it
    was so before that leader's answer; a leader that has died since cannot count any more. Whoever got the
    lost vote had its term T on its own disk before it asked, so the newest term of all answers is at least T.
    This replica enters that term with its vote spent, and will vote in later ones.
Phase 2, asked when all have answered phase 1, "what do you hold?". An entry that was committed by counting
    this replica is on the disk of at least one other voter, and by now it stands in that voter's answer,
    which leaves when its log is durable. The newest (term, index) of all answers is the floor: from now on
    this replica votes as one whose log ends there, the same comparison that the voter which holds the entry
    would make, and stands for election itself only once its own log has got there.

Both phases are needed: in one alone, a voter could answer, then acknowledge an entry to a leader that counts
this replica too, and that leader could crash and answer without it. Catching up with some leader instead of
asking would not do: that leader may be of an older term than the forgotten vote, which is held by a voter it
does not hear.

Who is asked: the voters as this replica knows them, and as those who answer do, for it may have lost the
news of who votes now, too, and then a promise may have been counted by leaders that it does not know. Voters
change one at a time, so of three or more, every majority of the next electorate has a member of the one
before besides this replica: asking all of each leads to the newest. Members that were replaced since,
perhaps with their disks, need not answer: an answer that knows of it says so, the owner says so
(RaftHost.forget_member), or they say themselves that they hold nothing of the group (unheld). But where such
a member stands in the newest electorate known, there is a newer one still to be found.

A whole group in doubt goes on once all answer: answering needs no trust in oneself, what was committed is on
a voter that lost nothing, and the replica with the newest log stands. The only voter of a group has nobody to
ask and goes on at once. A damaged replica, whose log is gone, asks the same round: its floor keeps it from
electing a leader that lacks what it had, and from standing before it is refilled.
"""

from __future__ import annotations

from tidings.raft.messages import DoubtReply, DoubtRequest
from tidings.raft.state import Doubt, GroupState, Role

PHASE_FORGET = 1
PHASE_HOLDINGS = 2


def begin(group: GroupState, known_index: int, now_ms: int) -> None:
    """`known_index`: the index as of which this replica knows its membership, also where its log is gone."""
    group.doubt = Doubt(group.around.random.getrandbits(63))
    group.counts = False
    learn(group.doubt, ((known_index, group.members.at(known_index).voters),))
    ask(group, now_ms)


def ask(group: GroupState, now_ms: int) -> None:
    """Ask all who have not answered the phase, now and until they do. The next one follows when all have."""
    doubt = group.doubt
    assert doubt is not None, group.group
    learn(doubt, group.members.electorates(group.commit_index))
    voters = voters_to_ask(group, doubt)
    if any(voter not in doubt.forgot for voter in voters):
        doubt.phase = PHASE_FORGET
        doubt.answers = {}
        missing = [voter for voter in voters if voter not in doubt.forgot]
    else:
        doubt.phase = PHASE_HOLDINGS
        missing = [voter for voter in voters if voter not in doubt.answers]
    if not missing:
        close(group)
        return
    for voter in missing:
        group.send(
            DoubtRequest(group.group, group.term, group.member, voter, doubt.round_number, doubt.phase)
        )
    group.arm(min(group.deadline_ms, now_ms + group.config.beat_interval_ms))


def learn(doubt: Doubt, electorates: tuple[tuple[int, tuple[int, ...]], ...]) -> None:
    """Take what somebody says of who votes. What is known as of a newer commit index makes older voters
    irrelevant: all that was committed by then is on the disks of the newer ones."""
    if not electorates:
        return
    commit_index = electorates[0][0]
    if commit_index > doubt.electorates_index:
        doubt.electorates_index = commit_index
        doubt.electorates = {i: voters for i, voters in doubt.electorates.items() if i > commit_index}
    doubt.electorates.update((i, voters) for i, voters in electorates if i >= doubt.electorates_index)


def voters_to_ask(group: GroupState, doubt: Doubt) -> list[int]:
    """Those who hold nothing of the group any more, or are gone for good, are not waited for, unless they
    stand in the newest electorate known: then there is a newer one, and who knows of it must be found."""
    newest = doubt.electorates[max(doubt.electorates)]
    voters = dict.fromkeys(voter for electorate in doubt.electorates.values() for voter in electorate)
    return [
        voter
        for voter in voters
        if voter != group.member
        and (voter in newest or not (voter in group.peers.gone or voter in doubt.without_replica))
    ]


def on_doubt_request(group: GroupState, request: DoubtRequest) -> None:
    """Answer what is durable here. A newer term of the asker is not entered: it claims nothing."""
    follower = group.progress.get(request.sender)
    if follower is not None and request.phase == PHASE_FORGET:
        follower.forget_promises()
        group.outbox.dirty[group.group] = None
    log = group.log
    group.promise(
        DoubtReply(
            group.group,
            group.term,
            group.member,
            request.sender,
            request.round_number,
            request.phase,
            log.last_index,
            log.last_term,
            group.members.electorates(group.commit_index),
        )
    )


def unheld(request: DoubtRequest) -> DoubtReply:
    """The answer of a member that holds nothing of the group: it never promised anything, or a committed
    change removed it, and then what it promised is held by those who vote instead."""
    return DoubtReply(
        request.group, 0, request.receiver, request.sender, request.round_number, request.phase, 0, 0, ()
    )


def on_doubt_reply(group: GroupState, reply: DoubtReply, now_ms: int) -> None:
    doubt = group.doubt
    if doubt is None or not doubt.is_open:
        return
    if reply.round_number != doubt.round_number or reply.phase != doubt.phase:
        return
    doubt.term = max(doubt.term, reply.term)
    voters_before = voters_to_ask(group, doubt)
    if not reply.electorates:
        doubt.without_replica[reply.sender] = None
    elif doubt.phase == PHASE_FORGET:
        doubt.forgot[reply.sender] = None
    else:
        doubt.answers[reply.sender] = None
        doubt.floor = max(doubt.floor, (reply.last_term, reply.last_index))
    learn(doubt, reply.electorates)
    voters = voters_to_ask(group, doubt)
    answered = doubt.forgot if doubt.phase == PHASE_FORGET else doubt.answers
    if voters != voters_before or all(voter in answered for voter in voters):
        ask(group, now_ms)


def close(group: GroupState) -> None:
    """All have answered: enter the newest term with the vote spent, and count again."""
    doubt = group.doubt
    assert doubt is not None, group.group
    assert group.role is Role.FOLLOWER, (group.group, group.role)
    doubt.is_open = False
    if doubt.term > group.term:
        group.leader = 0
        group.save_hard_state(doubt.term, group.member)
        group.around.leaders.learn(group.group, 0, group.term)
    elif not group.vote:
        group.save_hard_state(group.term, group.member)
    group.outbox.changed[group.group] = None
    recount(group)
    settle(group)


def recount(group: GroupState) -> None:
    group.counts = not group.damaged and not group.doubtful


def settle(group: GroupState) -> None:
    """With all on disk that may ever have been promised, the replica is as good as any other."""
    doubt = group.doubt
    if doubt is None or doubt.is_open or group.damaged or group.installing:
        return
    if (group.log.term_at(group.durable_index), group.durable_index) >= doubt.floor:
        group.doubt = None
        group.outbox.settled[group.group] = None
