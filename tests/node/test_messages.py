"""What brokers say besides Raft survives its encoding, and whatever else comes is the peer's fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.node.messages import (
    RAFT,
    Ask,
    PeerMessage,
    PeerMessageError,
    Ping,
    Pong,
    Propose,
    Refused,
    Settled,
    Stopping,
    decode,
)
from tidings.protocol.errors import ErrorCode

U64 = st.integers(0, 2**64 - 1)
MESSAGES: list[PeerMessage] = [
    Propose(b"p" * 16, b"command"),
    Ask(1, 2**64 - 1, (0, 5, 2**32 - 1)),
    Ask(1, 2, ()),
    Settled(7),
    Ping(8),
    Pong(9),
    Refused(b"p" * 16, ErrorCode.UNKNOWN_TOPIC_ID, "there is no such topic"),
    Refused(b"p" * 16, ErrorCode.NONE, ""),
    Stopping(),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_survives_its_encoding(message: PeerMessage) -> None:
    assert decode(message.encode()) == message


@given(U64, U64, st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_an_ask_of_any_numbers_survives_its_encoding(context: int, index: int, groups: list[int]) -> None:
    ask = Ask(context, index, tuple(groups))

    assert decode(ask.encode()) == ask


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "unknown kind missing"),
        (b"\x63", "unknown kind 63"),
        (RAFT + b"rest", "unknown kind 00"),
        (Propose(b"p" * 16, b"").encode(), "unknown kind 01"),
        (Ask(1, 2, (3,)).encode()[:-1], "kind 02"),
        (Ask(1, 2, ()).encode()[:-1], "kind 02"),
        (Settled(1).encode() + b"x", "kind 03"),
        (Ping(1).encode()[:-1], "kind 04"),
    ],
)
def test_a_frame_of_the_wrong_length_or_kind_is_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(PeerMessageError, match=reason):
        decode(frame)


@given(st.sampled_from(MESSAGES), st.data())
def test_any_mutation_ends_in_a_message_or_a_refusal(message: PeerMessage, chance: st.DataObject) -> None:
    frame = bytearray(message.encode())
    position = chance.draw(st.integers(0, len(frame) - 1))
    frame[position] = chance.draw(st.integers(0, 255))
    cut = chance.draw(st.integers(0, len(frame)))

    for mutated in (bytes(frame), bytes(frame[:cut]), bytes(frame) + b"\0"):
        try:
            assert isinstance(decode(mutated), PeerMessage)
        except PeerMessageError:
            continue


@given(st.binary(max_size=64))
def test_random_bytes_end_in_a_message_or_a_refusal(frame: bytes) -> None:
    try:
        assert isinstance(decode(frame), PeerMessage)
    except PeerMessageError:
        return
