"""The bytes of the messages that are not on the hot path: elections, start states, doubts, beats. wire.py
draws the rest.

The one rule: a kind's fields are in the order of its struct; flags are one byte. An encoder appends to the
small parts of a frame, a decoder returns the message and where the next one begins. Tests:
tests/raft/test_wire.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tidings.raft.errors import WireError
from tidings.raft.messages import (
    Beat,
    BeatReply,
    DoubtReply,
    DoubtRequest,
    InstallReply,
    InstallStart,
    Led,
    LedReply,
    Message,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)

# Every kind: u8 kind, u32 group, u64 term, then its own fields.
_VOTE_REQUEST = struct.Struct("<BIQ QQB")  # last index, last term, flags
_VOTE_REPLY = struct.Struct("<BIQ QB")  # asked term, flags
TIMEOUT_NOW = struct.Struct("<BIQ")
_INSTALL_START = struct.Struct("<BIQ QQIIII")  # index, term, piece offset, total bytes, session, piece bytes
_INSTALL_REPLY = struct.Struct("<BIQ QIIB")  # start index, next offset, session, flags
_DOUBT_REQUEST = struct.Struct("<BIQ QB")  # round, phase
# round, phase, last index, last term, electorate count; each: u64 index | u16 voter count | u64 per voter
_DOUBT_REPLY = struct.Struct("<BIQ QBQQH")
_ELECTORATE = struct.Struct("<QH")
_BEAT = struct.Struct("<BIQ QQ")  # sent ms, digest
_BEAT_REPLY = struct.Struct("<BIQ QB")  # sent ms, flags
_LED = struct.Struct("<BIQ QBI")  # sent ms, flags, count; then u32 group | u64 term each
_LED_REPLY = struct.Struct("<BIQ QI")  # sent ms, count; then as above

_LEAD = struct.Struct("<IQ")
_VOTE_FLAG_PRE, _VOTE_FLAG_GRANTED, _VOTE_FLAG_TRANSFER = 1, 2, 4


def _encode_vote_request(m: VoteRequest, small: list[bytes]) -> None:
    flags = m.pre * _VOTE_FLAG_PRE | m.is_transfer * _VOTE_FLAG_TRANSFER
    small.append(_VOTE_REQUEST.pack(2, m.group, m.term, m.last_index, m.last_term, flags))


def _encode_vote_reply(m: VoteReply, small: list[bytes]) -> None:
    flags = m.pre * _VOTE_FLAG_PRE | m.granted * _VOTE_FLAG_GRANTED
    small.append(_VOTE_REPLY.pack(3, m.group, m.term, m.asked_term, flags))


def _encode_timeout_now(m: TimeoutNow, small: list[bytes]) -> None:
    small.append(TIMEOUT_NOW.pack(4, m.group, m.term))


def _encode_install_start(m: InstallStart, small: list[bytes]) -> None:
    small.append(
        _INSTALL_START.pack(
            5,
            m.group,
            m.term,
            m.start_index,
            m.start_term,
            m.piece_offset,
            m.total_bytes,
            m.session,
            len(m.piece),
        )
    )
    small.append(m.piece)


def _encode_install_reply(m: InstallReply, small: list[bytes]) -> None:
    small.append(
        _INSTALL_REPLY.pack(6, m.group, m.term, m.start_index, m.next_offset, m.session, m.installed)
    )


def _encode_doubt_request(m: DoubtRequest, small: list[bytes]) -> None:
    small.append(_DOUBT_REQUEST.pack(7, m.group, m.term, m.round_number, m.phase))


def _encode_doubt_reply(m: DoubtReply, small: list[bytes]) -> None:
    count = len(m.electorates)
    small.append(
        _DOUBT_REPLY.pack(8, m.group, m.term, m.round_number, m.phase, m.last_index, m.last_term, count)
    )
    for index, voters in m.electorates:
        small.append(_ELECTORATE.pack(index, len(voters)) + struct.pack(f"<{len(voters)}Q", *voters))


def _encode_beat(m: Beat, small: list[bytes]) -> None:
    small.append(_BEAT.pack(9, m.group, m.term, m.sent_ms, m.digest))


def _encode_beat_reply(m: BeatReply, small: list[bytes]) -> None:
    small.append(_BEAT_REPLY.pack(10, m.group, m.term, m.sent_ms, m.matches))


def _encode_led(m: Led, small: list[bytes]) -> None:
    small.append(_LED.pack(11, m.group, m.term, m.sent_ms, m.is_complete, len(m.leads)))
    small.extend(_LEAD.pack(group, term) for group, term in m.leads)


def _encode_led_reply(m: LedReply, small: list[bytes]) -> None:
    small.append(_LED_REPLY.pack(12, m.group, m.term, m.sent_ms, len(m.outdated)))
    small.extend(_LEAD.pack(group, term) for group, term in m.outdated)


def _decode_vote_request(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, last_index, last_term, flags = _VOTE_REQUEST.unpack_from(frame, at)
    pre, is_transfer = flags & _VOTE_FLAG_PRE != 0, flags & _VOTE_FLAG_TRANSFER != 0
    request = VoteRequest(group, term, sender, receiver, pre, last_index, last_term, is_transfer)
    return request, at + _VOTE_REQUEST.size


def _decode_vote_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, asked_term, flags = _VOTE_REPLY.unpack_from(frame, at)
    pre, granted = flags & _VOTE_FLAG_PRE != 0, flags & _VOTE_FLAG_GRANTED != 0
    return VoteReply(group, term, sender, receiver, pre, granted, asked_term), at + _VOTE_REPLY.size


def _decode_timeout_now(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term = TIMEOUT_NOW.unpack_from(frame, at)
    return TimeoutNow(group, term, sender, receiver), at + TIMEOUT_NOW.size


def _decode_install_start(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, start_index, start_term, piece_offset, total_bytes, session, piece_bytes = (
        _INSTALL_START.unpack_from(frame, at)
    )
    at += _INSTALL_START.size
    end = at + piece_bytes
    if end > len(frame) or piece_offset + piece_bytes > total_bytes:
        raise WireError(
            f"piece of {piece_bytes} bytes at {piece_offset} of a start state of {total_bytes} bytes"
        )
    message = InstallStart(
        group,
        term,
        sender,
        receiver,
        start_index,
        start_term,
        piece_offset,
        total_bytes,
        frame[at:end],
        session,
    )
    return message, end


def _decode_install_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, start_index, next_offset, session, flags = _INSTALL_REPLY.unpack_from(frame, at)
    reply = InstallReply(group, term, sender, receiver, start_index, next_offset, flags != 0, session)
    return reply, at + _INSTALL_REPLY.size


def _decode_doubt_request(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, round_number, phase = _DOUBT_REQUEST.unpack_from(frame, at)
    return DoubtRequest(group, term, sender, receiver, round_number, phase), at + _DOUBT_REQUEST.size


def _decode_doubt_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, round_number, phase, last_index, last_term, count = _DOUBT_REPLY.unpack_from(frame, at)
    at += _DOUBT_REPLY.size
    electorates: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(count):
        index, voter_count = _ELECTORATE.unpack_from(frame, at)
        at += _ELECTORATE.size
        electorates.append((index, struct.unpack_from(f"<{voter_count}Q", frame, at)))
        at += 8 * voter_count
    reply = DoubtReply(
        group,
        term,
        sender,
        receiver,
        round_number,
        phase,
        last_index,
        last_term,
        tuple(electorates),
    )
    return reply, at


def _decode_beat(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, sent_ms, digest = _BEAT.unpack_from(frame, at)
    return Beat(group, term, sender, receiver, sent_ms, digest), at + _BEAT.size


def _decode_beat_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, sent_ms, flags = _BEAT_REPLY.unpack_from(frame, at)
    return BeatReply(group, term, sender, receiver, sent_ms, flags != 0), at + _BEAT_REPLY.size


def _decode_led(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, sent_ms, flags, count = _LED.unpack_from(frame, at)
    leads, at = _decode_leads(frame, at + _LED.size, count)
    return Led(group, term, sender, receiver, sent_ms, flags != 0, leads), at


def _decode_led_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, sent_ms, count = _LED_REPLY.unpack_from(frame, at)
    outdated, at = _decode_leads(frame, at + _LED_REPLY.size, count)
    return LedReply(group, term, sender, receiver, sent_ms, outdated), at


def _decode_leads(frame: bytes, at: int, count: int) -> tuple[list[tuple[int, int]], int]:
    end = at + count * _LEAD.size
    if end > len(frame):
        raise WireError(f"{count} leaderships do not fit into {len(frame) - at} bytes")
    return [(group, term) for group, term in _LEAD.iter_unpack(frame[at:end])], end


ENCODERS: dict[type[Message], Callable[..., None]] = {
    VoteRequest: _encode_vote_request,
    VoteReply: _encode_vote_reply,
    TimeoutNow: _encode_timeout_now,
    InstallStart: _encode_install_start,
    InstallReply: _encode_install_reply,
    DoubtRequest: _encode_doubt_request,
    DoubtReply: _encode_doubt_reply,
    Beat: _encode_beat,
    BeatReply: _encode_beat_reply,
    Led: _encode_led,
    LedReply: _encode_led_reply,
}


# By kind, from 2 on.
DECODERS = (
    _decode_vote_request,
    _decode_vote_reply,
    _decode_timeout_now,
    _decode_install_start,
    _decode_install_reply,
    _decode_doubt_request,
    _decode_doubt_reply,
    _decode_beat,
    _decode_beat_reply,
    _decode_led,
    _decode_led_reply,
)
