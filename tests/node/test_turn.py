"""How a turn's messages are packed into frames."""

from __future__ import annotations

from tidings.node.messages import RAFT
from tidings.node.turn import FRAME_BYTES, pack
from tidings.raft import wire
from tidings.raft.entries import Entry, EntryKind
from tidings.raft.messages import Append, AppendReply, Message, TimeoutNow


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


def test_a_frame_is_closed_before_it_holds_too_much() -> None:
    half = FRAME_BYTES // 2
    messages = [append(8, half), append(8, half), TimeoutNow(2, 1, 7, 8)]

    frames = pack(messages)

    assert [unpacked(buffers) for _, buffers in frames] == [[messages[0]], messages[1:]]
    assert all(sum(map(len, buffers)) <= FRAME_BYTES for _, buffers in frames)


def test_many_small_messages_are_split_too() -> None:
    answers: list[Message] = [
        AppendReply(group, 1, 7, 8, True, 1, 1, 1, 1, 1, False, True, 0, 0) for group in range(40_000)
    ]

    frames = pack(answers)

    assert [message for _, buffers in frames for message in unpacked(buffers)] == answers
    assert all(sum(map(len, buffers)) <= FRAME_BYTES for _, buffers in frames)
    assert len(frames) > 1
