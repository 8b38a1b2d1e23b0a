"""Turn: the work that a broker hands out once per turn of the event loop.

Its one rule: values for who does the work; a frame holds what one peer is told in one turn, in order.
It must not know why there is work. Tests: tests/node/test_turn.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidings.config.options import SHARED_FRAME_BYTES
from tidings.node.jobs import ReadJob, StorageJob
from tidings.node.messages import RAFT
from tidings.raft import wire
from tidings.raft.messages import Append, InstallStart, Led, Message
from tidings.raft.outbox import Flush

# A frame to a peer holds no more, unless it is one message alone: a beat must not wait behind all of it.
FRAME_BYTES = SHARED_FRAME_BYTES
_MESSAGE_BYTES = 128  # no message is larger, but for what it carries
_ENTRY_BYTES = 64  # as above
_LEAD_BYTES = 12

Frame = tuple[int, Sequence[bytes | memoryview]]  # the receiving member, and the buffers


@dataclass(slots=True)
class Turn:
    """The work of one turn. `frames` are (member, buffers); what cannot be sent is lost, as on any
    network."""

    flush: Flush | None = None
    frames: list[Frame] = field(default_factory=list)
    storage_jobs: list[StorageJob] = field(default_factory=list)
    reads: list[tuple[ReadJob, Callable[[Any], None]]] = field(default_factory=list)  # any: the job's result
    cut_below_file: int | None = None
    damaged: list[tuple[int, str]] = field(default_factory=list)  # (group, reason): a restart has to know
    settled: list[int] = field(default_factory=list)  # groups whose damage or doubt is over
    events: list[tuple[str, dict[str, str | int]]] = field(default_factory=list)  # (name, facts) for people


class Place(Protocol):
    """Where a flush stands in the write-ahead log."""

    @property
    def file_number(self) -> int: ...
    @property
    def sequence(self) -> int: ...


def pack(messages: Sequence[Message]) -> list[Frame]:
    """All messages for one peer in one frame, or in a few where they are many."""
    by_receiver: dict[int, list[Message]] = {}
    for message in messages:
        by_receiver.setdefault(message.receiver, []).append(message)
    return [
        (receiver, [RAFT, *wire.encode(part)])
        for receiver, batch in by_receiver.items()
        for part in _in_frames(batch)
    ]


def _in_frames(messages: list[Message]) -> list[list[Message]]:
    """The messages in order, in as many frames as their sizes ask for."""
    frames: list[list[Message]] = [[]]
    frame_bytes = 0
    for message in messages:
        message_bytes = _size_of(message)
        if frame_bytes + message_bytes > FRAME_BYTES and frames[-1]:
            frames.append([])
            frame_bytes = 0
        frames[-1].append(message)
        frame_bytes += message_bytes
    return frames


def _size_of(message: Message) -> int:
    """In a frame, at most."""
    size_bytes = _MESSAGE_BYTES
    if isinstance(message, Append):
        for entry in message.entries:
            size_bytes += _ENTRY_BYTES + len(entry.payload)
    elif isinstance(message, InstallStart):
        size_bytes += len(message.piece)
    elif isinstance(message, Led):
        size_bytes += _LEAD_BYTES * len(message.leads)
    return size_bytes
