"""Election: who may stand, who gets a vote, when a candidate has won, when a leader steps down for another.

The one rule: one vote per term, saved before it is told, and only for a log at least as new as one's own.
Everything else here (pre-vote, the leader's lease on its voters, haste) keeps elections rare and quick and
may be wrong without harm. It must not know how entries are replicated. Tests: tests/raft/test_election.py

    FOLLOWER       -- nothing heard for a timeout       --> PRE_CANDIDATE
    PRE_CANDIDATE  -- a majority would vote             --> CANDIDATE, in the next term
    CANDIDATE      -- a majority voted                  --> LEADER
    any of them    -- a leader or a newer term is heard --> FOLLOWER
"""

from __future__ import annotations

from tidings.raft.leading import send_notice, start_leading
from tidings.raft.membership import majority
from tidings.raft.messages import TimeoutNow, VoteReply, VoteRequest
from tidings.raft.roles import become_follower, wait_for_leader
from tidings.raft.state import GroupState, Role

# The first pause of a candidate in haste; it doubles until it is an ordinary timeout.
HURRY_MS_MIN = 25
# Between the attempts of two voters that lost their leader at the same moment.
RANK_PAUSE_MS = 30
JITTER_MS = 10


def first_attempt(group: GroupState, now_ms: int) -> None:
    """A replica begins. A single voter leads at once; the first voter of a new group stands at once, the
    others wait."""
    voters = group.membership.voters
    is_new = group.term == 0 and group.log.last_index == 0
    if voters == (group.member,):
        campaign(group, now_ms)
    elif is_new and voters and voters[0] == group.member:
        hurry(group, now_ms)


def hurry(group: GroupState, at_ms: int) -> None:
    """Stand for election at a moment, not after a timeout: the leader is known to be gone, or never was
    one."""
    group.campaign_at_ms = at_ms
    group.hurry_ms = HURRY_MS_MIN
    group.arm(min(at_ms, group.deadline_ms))


def leader_lost(group: GroupState, now_ms: int) -> None:
    """The leader's host cannot be reached. The voters stand one after the other, so that the first one wins
    alone."""
    rivals = [voter for voter in group.membership.voters if voter != group.leader]
    if group.member in rivals:
        pause_ms = RANK_PAUSE_MS * rivals.index(group.member)
        hurry(group, now_ms + pause_ms + group.around.random.randint(0, JITTER_MS))


def tick(group: GroupState, now_ms: int) -> None:
    """The deadline of a replica that does not lead."""
    leader = group.leader
    in_haste = group.campaign_at_ms is not None and now_ms >= group.campaign_at_ms
    if in_haste and (not leader or leader in group.peers.down):
        campaign(group, now_ms)
        return
    if in_haste:
        group.campaign_at_ms = None
    due_ms = max(group.contact_ms() + group.timeout_ms, group.peers.excused_until_ms)
    if now_ms < due_ms:
        group.arm(due_ms if group.campaign_at_ms is None else min(due_ms, group.campaign_at_ms))
    elif not follows_announced_leader(group, now_ms):
        campaign(group, now_ms)


def follows_announced_leader(group: GroupState, now_ms: int) -> bool:
    """A replica that gave its leader up follows it again if the beats say that it still leads in this
    term."""
    leader, term = group.around.leaders.table.get(group.group, (0, 0))
    if (
        not leader
        or leader in (group.leader, group.member)
        or term != group.term
        or leader in group.peers.down
    ):
        return False
    if now_ms - group.peers.heard_ms.get(leader, 0) >= group.config.election_timeout_ms_min:
        return False
    become_follower(group, term, leader, now_ms)
    return True


def can_stand(group: GroupState) -> bool:
    """Only a voter may lead, and only with all that it ever acknowledged in its log. One that was removed
    stands too: the others may not know of it yet, and need its log (Raft dissertation 4.2.2)."""
    if group.damaged or group.installing or group.doubtful:
        return False
    if not group.members.has_voted(group.member):
        return False
    return group.doubt is None or own_position(group) >= group.doubt.floor


def campaign(group: GroupState, now_ms: int) -> None:
    """Ask the voters whether they would vote; a single voter need not ask."""
    group.campaign_at_ms = None
    if not can_stand(group):
        wait_for_leader(group, now_ms)
    elif group.membership.voters == (group.member,):
        run_for_leader(group, now_ms, is_transfer=False)
    else:
        group.change_role(Role.PRE_CANDIDATE)
        ask_for_votes(group, now_ms, is_transfer=False)


def run_for_leader(group: GroupState, now_ms: int, *, is_transfer: bool) -> None:
    """Enter a new term, vote for oneself and ask the others. The requests wait until term and vote are
    durable."""
    group.change_role(Role.CANDIDATE)
    group.save_hard_state(group.term + 1, group.member)
    ask_for_votes(group, now_ms, is_transfer=is_transfer)


def ask_for_votes(group: GroupState, now_ms: int, *, is_transfer: bool) -> None:
    pre = group.role is Role.PRE_CANDIDATE
    group.leader = 0
    group.around.leaders.learn(group.group, 0, group.term)
    group.votes = {group.member: True}
    group.last_contact_ms = now_ms
    group.campaign_at_ms = None
    if pre:
        plan_next_attempt(group, now_ms)
    else:
        wait_for_leader(group, now_ms)  # votes need two disks: haste would only start over again and again
    log = group.log
    for voter in group.other_voters():
        group.send(
            VoteRequest(
                group.group, group.term, group.member, voter, pre, log.last_index, log.last_term, is_transfer
            )
        )
    count_votes(group, now_ms)


def plan_next_attempt(group: GroupState, now_ms: int) -> None:
    """In haste the next attempt comes soon, each time later; else after a timeout."""
    if 0 < group.hurry_ms < group.config.election_timeout_ms_min:
        group.campaign_at_ms = now_ms + group.hurry_ms + group.around.random.randint(0, JITTER_MS)
        group.hurry_ms *= 2
    wait_for_leader(group, now_ms)


def on_vote_request(group: GroupState, request: VoteRequest, now_ms: int) -> None:
    if not request.pre and request.term > group.term:
        if not request.is_transfer and leader_is_alive(group, request.sender, now_ms):
            return  # a removed or cut-off member must not unseat a leader that others hear (Raft 6)
        become_follower(group, request.term, 0, now_ms)
    granted = request.term >= group.term and may_grant(group, request, now_ms)
    if granted and not request.pre and not group.vote:
        group.save_hard_state(group.term, request.sender)
        group.last_contact_ms = now_ms
    elif granted and request.pre and group.role is Role.PRE_CANDIDATE and has_better_claim(group, request):
        give_up(group)
    group.send(
        VoteReply(
            group.group, group.term, group.member, request.sender, request.pre, granted, request.asked_term
        )
    )
    if request.pre and group.role is Role.LEADER and request.sender in group.progress:
        # The asker lost sight of this leader, or is stuck in a newer term: an append brings out which.
        send_notice(group, group.progress[request.sender], now_ms, read_context=0)


def may_grant(group: GroupState, request: VoteRequest, now_ms: int) -> bool:
    """Whether a request of this term (a pre-vote: for a newer one) gets the vote."""
    if group.doubtful:
        return False
    if (request.last_term, request.last_index) < trusted_position(group):
        return False
    if request.pre:
        return not leader_is_alive(group, request.sender, now_ms)
    return group.vote == request.sender or (not group.vote and not group.leader)


def has_better_claim(group: GroupState, request: VoteRequest) -> bool:
    """Of two that ask at the same moment one gives way, so that they do not split the vote: see it alike on
    both sides."""
    theirs, own = (request.last_term, request.last_index), own_position(group)
    voters = group.membership.voters
    if theirs != own or request.sender not in voters:
        return theirs > own
    return voters.index(request.sender) < voters.index(group.member)


def own_position(group: GroupState) -> tuple[int, int]:
    return (group.log.last_term, group.log.last_index)


def trusted_position(group: GroupState) -> tuple[int, int]:
    """How new a candidate's log must be: as this one, and as the one this replica may have had (doubt.py)."""
    own = own_position(group)
    return own if group.doubt is None else max(own, group.doubt.floor)


def leader_is_alive(group: GroupState, asker: int, now_ms: int) -> bool:
    """Whether this replica heard of its leader within the shortest timeout. A leader that asks for votes is
    none."""
    if group.role is Role.LEADER:
        return True
    if not group.leader or group.leader == asker or group.leader in group.peers.down:
        return False
    return now_ms - group.contact_ms() < group.config.election_timeout_ms_min


def on_vote_reply(group: GroupState, reply: VoteReply, now_ms: int) -> None:
    if reply.term > group.term:
        become_follower(group, reply.term, 0, now_ms)
        return
    asked_role, asked_term = Role.CANDIDATE, group.term
    if reply.pre:
        asked_role, asked_term = Role.PRE_CANDIDATE, group.term + 1
    if group.role is asked_role and reply.asked_term == asked_term:
        group.votes[reply.sender] = reply.granted or group.votes.get(reply.sender, False)
        count_votes(group, now_ms)


def count_votes(group: GroupState, now_ms: int) -> None:
    """Win with a majority; give up when a majority has refused. Only voters count, whoever answers."""
    voters = group.membership.voters
    needed = majority(len(voters))
    granted = sum(1 for voter in voters if group.votes.get(voter) is True)
    refused = sum(1 for voter in voters if group.votes.get(voter) is False)
    if granted >= needed:
        if group.role is Role.PRE_CANDIDATE:
            run_for_leader(group, now_ms, is_transfer=False)
        else:
            start_leading(group, now_ms)
    elif refused >= needed:
        give_up(group)
        if group.hurry_ms and group.campaign_at_ms is None:
            plan_next_attempt(group, now_ms)


def give_up(group: GroupState) -> None:
    """Stop standing for election; the deadline that was set then stays."""
    group.change_role(Role.FOLLOWER)
    group.votes = {}


def on_timeout_now(group: GroupState, message: TimeoutNow, now_ms: int) -> None:
    """The leader hands over: stand at once, without a pre-vote, which its being alive would spoil."""
    if message.term > group.term:
        become_follower(group, message.term, message.sender, now_ms)
    is_ours = message.term == group.term and message.sender == group.leader and group.role is Role.FOLLOWER
    if is_ours and can_stand(group):
        run_for_leader(group, now_ms, is_transfer=True)
