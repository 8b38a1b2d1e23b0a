"""The bytes of messages. All that one member has for another at a time travels in one frame. Little endian.

    frame    u8 format version | u64 sender | u64 receiver | u32 message count | messages
    message  u8 kind | u32 group | u64 term | the fields of its kind, as the structs below say
    entry    u64 index | u64 term | i64 base offset | u32 record count | u32 payload bytes | u8 kind | payload

The one rule: decode() takes bytes from anybody and ends in messages or WireError; counts and lengths are held
against the bytes that are there before anything is made of them. It must not know what a message means.
Tests: tests/raft/test_wire.py
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from tidings.raft.entries import LOG_START_BYTES, Entry, EntryKind, Membership
from tidings.raft.errors import WireError
from tidings.raft.messages import Append, AppendReply, Message
from tidings.raft.wire_kinds import DECODERS, ENCODERS, TIMEOUT_NOW

FORMAT_VERSION = 1
_FRAME = struct.Struct("<BQQI")
_ENTRY = struct.Struct("<QQqIIB")
_ENTRY_BYTES = _ENTRY.size
_RECORDS = EntryKind.RECORDS
_ENTRY_KIND_MAX = EntryKind.COMMAND
# Every kind: u8 kind, u32 group, u64 term, then its own fields.
_APPEND = struct.Struct(
    "<BIQ QQQQII"
)  # prev index, prev term, commit index, read context, session, entry count
_APPEND_REPLY = struct.Struct(
    "<BIQ QQQQQQIB"
)  # prev, match, hint index, hint term, commit, read, session, flags
_REPLY_FLAG_ACCEPTED, _REPLY_FLAG_NEEDS_START, _REPLY_FLAG_COUNTS = 1, 2, 4


def encode(messages: Sequence[Message]) -> list[bytes]:
    """A frame for one receiver, as buffers to be written one after the other. Payloads are not copied."""
    first = messages[0]
    buffers: list[bytes] = []
    small = [_FRAME.pack(FORMAT_VERSION, first.sender, first.receiver, len(messages))]
    for message in messages:
        assert message.receiver == first.receiver, (first, message)
        if message.__class__ is Append:
            _encode_append(message, small, buffers)
        else:
            _ENCODERS[message.__class__](message, small)
    if small:
        buffers.append(b"".join(small))
    return buffers


def _encode_append(message: Message, small: list[bytes], buffers: list[bytes]) -> None:
    assert isinstance(message, Append)
    entries = message.entries
    small.append(
        _APPEND.pack(
            0,
            message.group,
            message.term,
            message.prev_index,
            message.prev_term,
            message.commit_index,
            message.read_context,
            message.session,
            len(entries),
        )
    )
    pack = _ENTRY.pack
    for entry in entries:
        payload = entry.payload
        small.append(
            pack(entry.index, entry.term, entry.base_offset, entry.record_count, len(payload), entry.kind)
        )
        if payload:
            buffers.append(b"".join(small))
            buffers.append(payload)
            small.clear()


def _encode_append_reply(m: AppendReply, small: list[bytes]) -> None:
    flags = (
        m.accepted * _REPLY_FLAG_ACCEPTED
        | m.needs_start * _REPLY_FLAG_NEEDS_START
        | m.counts * _REPLY_FLAG_COUNTS
    )
    small.append(
        _APPEND_REPLY.pack(
            1,
            m.group,
            m.term,
            m.prev_index,
            m.match_index,
            m.hint_index,
            m.hint_term,
            m.commit_index,
            m.read_context,
            m.session,
            flags,
        )
    )


def decode(frame: bytes, begin: int = 0) -> list[Message]:
    """The messages that a frame holds from `begin` on. Raises WireError for anything else."""
    try:
        version, sender, receiver, count = _FRAME.unpack_from(frame, begin)
        if version != FORMAT_VERSION:
            raise WireError(f"frame of format version {version}, this one reads {FORMAT_VERSION}")
        if count * TIMEOUT_NOW.size > len(frame):
            raise WireError(f"{count} messages do not fit into {len(frame)} bytes")
        messages: list[Message] = []
        at = begin + _FRAME.size
        for _ in range(count):
            message, at = _DECODERS[frame[at]](frame, at, sender, receiver)
            messages.append(message)
    except (struct.error, IndexError) as error:
        raise WireError(f"frame of {len(frame)} bytes: {error}") from error
    if at != len(frame):
        raise WireError(f"messages end at {at} in a frame of {len(frame)} bytes")
    return messages


def _decode_append(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    _, group, term, prev_index, prev_term, commit_index, read_context, session, count = _APPEND.unpack_from(
        frame, at
    )
    at += _APPEND.size
    if count * _ENTRY_BYTES > len(frame) - at:
        raise WireError(f"{count} entries do not fit into {len(frame) - at} bytes")
    entries: list[Entry] = []
    unpack_from = _ENTRY.unpack_from
    index = prev_index
    for _ in range(count):
        entry_index, entry_term, base_offset, record_count, payload_bytes, kind = unpack_from(frame, at)
        at += _ENTRY_BYTES
        end = at + payload_bytes
        index += 1
        if end > len(frame) or entry_index != index or entry_term > term or kind > _ENTRY_KIND_MAX:
            raise WireError(
                f"entry {entry_index} (term {entry_term}, kind {kind}, {payload_bytes} bytes) at {index}"
            )
        payload = frame[at:end]
        if kind != _RECORDS:
            _check_payload(kind, payload)
        entries.append(Entry(entry_index, entry_term, kind, base_offset, record_count, payload))
        at = end
    return (
        Append(
            group,
            term,
            sender,
            receiver,
            prev_index,
            prev_term,
            commit_index,
            entries,
            read_context,
            session,
        ),
        at,
    )


def _check_payload(kind: int, payload: bytes) -> None:
    """Of the kinds whose payload is this room's: an entry in the log can be refused no more."""
    if kind == EntryKind.MEMBERSHIP:
        try:
            membership = Membership.decode(payload)
        except ValueError as error:
            raise WireError(str(error)) from error
        if not membership.voters:
            raise WireError("a membership without voters")
    elif kind == EntryKind.LOG_START and len(payload) != LOG_START_BYTES:
        raise WireError(f"a log start of {len(payload)} bytes")


def _decode_append_reply(frame: bytes, at: int, sender: int, receiver: int) -> tuple[Message, int]:
    (
        _,
        group,
        term,
        prev_index,
        match_index,
        hint_index,
        hint_term,
        commit_index,
        read_context,
        session,
        flags,
    ) = _APPEND_REPLY.unpack_from(frame, at)
    reply = AppendReply(
        group,
        term,
        sender,
        receiver,
        flags & _REPLY_FLAG_ACCEPTED != 0,
        prev_index,
        match_index,
        hint_index,
        hint_term,
        commit_index,
        flags & _REPLY_FLAG_NEEDS_START != 0,
        flags & _REPLY_FLAG_COUNTS != 0,
        read_context,
        session,
    )
    return reply, at + _APPEND_REPLY.size


_ENCODERS: dict[type[Message], Callable[..., None]] = {AppendReply: _encode_append_reply, **ENCODERS}
_DECODERS = (_decode_append, _decode_append_reply, *DECODERS)
