"""Roles: what every replica does to follow a leader, or to stop leading.

The one rule: a newer term always makes a follower, and nothing that a leader held back survives its
leadership. It must not know how one becomes a candidate or a leader. Tests: tests/raft/test_election.py
"""

from __future__ import annotations

from tidings.raft import reads
from tidings.raft.state import GroupState, Role


def become_follower(group: GroupState, term: int, leader: int, now_ms: int) -> None:
    """Follow a leader, or (0) wait for one, in the group's term or in a newer one."""
    if group.role is Role.LEADER:
        stop_leading(group)
    if term > group.term:
        group.save_hard_state(term, 0)
    assert term == group.term, (group.group, term, group.term)
    group.change_role(Role.FOLLOWER)
    group.leader = leader
    group.around.leaders.learn(group.group, leader, term)
    group.votes = {}
    group.last_contact_ms = now_ms
    if leader:
        group.campaign_at_ms = None
        group.hurry_ms = 0
    wait_for_leader(group, now_ms)


def stop_leading(group: GroupState) -> None:
    group.around.leaders.disown(group.group, group.member)
    reads.refuse_all(group)
    group.progress = {}
    group.voters = []
    group.transferee = 0
    group.term_start_committed = False


def wait_for_leader(group: GroupState, now_ms: int) -> None:
    """Draw a new timeout and be ticked when it ends, or when haste was asked for."""
    config = group.config
    group.timeout_ms = group.around.random.randint(
        config.election_timeout_ms_min, config.election_timeout_ms_max
    )
    due_ms = now_ms + group.timeout_ms
    group.arm(due_ms if group.campaign_at_ms is None else min(due_ms, group.campaign_at_ms))


def step_down(group: GroupState, now_ms: int) -> None:
    """Stop leading without having heard of another leader."""
    assert group.role is Role.LEADER, (group.group, group.role)
    become_follower(group, group.term, 0, now_ms)
