"""How a turn's messages are packed into frames."""

from __future__ import annotations

from tidings.node.messages import RAFT
from tidings.node.turn import FRAME_BYTES, pack
from tidings.raft import wire
from tidings.raft.entries import Entry, EntryKind
from tidings.raft.messages import Append, Message, TimeoutNow


def append(receiver: int, payload_bytes: int) -> Append:
    entry = Entry(1, 1, EntryKind.RECORDS, 0, 1, bytes(payload_bytes))
    return Append(1, 1, 7, receiver, 0, 0, 0, [entry], 0, 0)


def unpacked(buffers: object) -> list[Message]:
    assert isinstance(buffers, list)
    return wire.decode(b"".join(map(bytes, buffers)), len(RAFT))


def test_nothing_to_say_makes_no_frame() -> None:
    assert pack([]) == []


def test_all_messages_for_one_peer_share_a_frame_in_their_order() -> None:
    messages = [TimeoutNow(1, 1, 7, 8), TimeoutNow(2, 1, 7, 9), TimeoutNow(3, 1, 7, 8)]

    frames = pack(messages)

    assert [receiver for receiver, _ in frames] == [8, 9]
    assert unpacked(frames[0][1]) == [messages[0], messages[2]]


def test_a_frame_is_closed_when_it_holds_enough() -> None:
    big = append(8, FRAME_BYTES + 1)
    beat_behind_it = TimeoutNow(2, 1, 7, 8)

    frames = pack([big, beat_behind_it])

    assert [unpacked(buffers) for _, buffers in frames] == [[big], [beat_behind_it]]
