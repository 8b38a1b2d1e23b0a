"""Messages and replicas in one short line each, for the reader of a trace.

Its one rule: the same value reads the same in every run. Tests: tests/sim/test_describe.py
"""

from __future__ import annotations

from tidings.raft.entries import Entry
from tidings.raft.group import Group
from tidings.raft.messages import Message

_HEAD = ("group", "term", "sender", "receiver")


def describe_message(message: Message) -> str:
    """`Append group=1 term=3 prev_index=7 ... entries=8:3..9:3`; flags only when they are set."""
    parts = [type(message).__name__, f"group={message.group}", f"term={message.term}"]
    for name, value in message.fields().items():
        if name in _HEAD or value is False:
            continue
        if value is True:
            parts.append(name)
        elif isinstance(value, bytes | bytearray | memoryview):
            parts.append(f"{name}={len(value)}B")
        elif name == "entries" and isinstance(value, list):
            parts.append(f"entries={describe_entries(value)}")
        else:
            parts.append(f"{name}={value}")
    return " ".join(parts)


def describe_entries(entries: list[Entry]) -> str:
    """First and last entry as index:term."""
    if not entries:
        return "-"
    first, last = entries[0], entries[-1]
    return f"{first.index}:{first.term}" + (f"..{last.index}:{last.term}" if len(entries) > 1 else "")


def describe_replica(group: Group) -> str:
    """Role, term, vote and the marks of the log."""
    log = group.log
    marks = [mark for mark in ("doubtful", "damaged") if getattr(group, mark)]
    listeners = f" learners {group.membership.learners}" if group.membership.learners else ""
    return (
        f"{group.role.name.lower()} term {group.term} vote {group.vote} leader {group.leader} "
        f"log {log.start_index}..{log.last_index}:{log.last_term} durable {group.durable_index} "
        f"commit {group.commit_index} voters {group.membership.voters}{listeners}{' '.join(['', *marks])}"
    )
