"""What brokers say to each other besides Raft, and how a frame tells which it is.

Its one rule: a frame that cannot be read is the peer's fault and ends its connection, never this broker. It
must not know what is done about a message. Tests: tests/node/test_messages.py

A frame's body is one byte for its kind, then
    0 RAFT     messages of the raft room (raft/wire.py)
    1 PROPOSE  16 proposal id | command: have it appended to the metadata group's log, if you lead it
    2 ASK      u64 context | u64 index | u32 per group: tell me when you have applied the metadata up to
               the index and know a leader of each group
    3 SETTLED  u64 context: the answer
    4 PING     u64 context: are you there?
    5 PONG     u64 context: the answer
    6 REFUSED  16 proposal id | i16 error code | text: the answer to a proposal of one who is no member of the
               metadata group, so that it will not see what came of it in its log; an id of zeros stands for
               all that the receiver may propose
    7 STOPPING nothing: I hand my leaderships over, do not give them back
All numbers are little endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tidings.protocol.errors import ErrorCode

RAFT = b"\x00"
_PROPOSE = b"\x01"
_ASK = b"\x02"
_SETTLED = b"\x03"
_PING = b"\x04"
_PONG = b"\x05"
_REFUSED = b"\x06"
_STOPPING = b"\x07"
PROPOSAL_ID_BYTES = 16
EVERY_PROPOSAL = bytes(PROPOSAL_ID_BYTES)
_ASK_HEAD = struct.Struct("<QQ")
_CONTEXT = struct.Struct("<Q")
_CODE = struct.Struct("<h")
_GROUP = struct.Struct("<I")


class PeerMessageError(Exception):
    """A frame that no broker of this format sends."""


@dataclass(frozen=True, slots=True)
class Propose:
    proposal: bytes
    command: bytes

    def encode(self) -> bytes:
        return _PROPOSE + self.proposal + self.command


@dataclass(frozen=True, slots=True)
class Ask:
    context: int
    index: int
    groups: tuple[int, ...]

    def encode(self) -> bytes:
        return _ASK + _ASK_HEAD.pack(self.context, self.index) + b"".join(map(_GROUP.pack, self.groups))


@dataclass(frozen=True, slots=True)
class Settled:
    context: int

    def encode(self) -> bytes:
        return _SETTLED + _CONTEXT.pack(self.context)


@dataclass(frozen=True, slots=True)
class Ping:
    context: int

    def encode(self) -> bytes:
        return _PING + _CONTEXT.pack(self.context)


@dataclass(frozen=True, slots=True)
class Pong:
    context: int

    def encode(self) -> bytes:
        return _PONG + _CONTEXT.pack(self.context)


@dataclass(frozen=True, slots=True)
class Refused:
    proposal: bytes
    code: ErrorCode
    message: str

    def encode(self) -> bytes:
        return _REFUSED + self.proposal + _CODE.pack(self.code) + self.message.encode()


@dataclass(frozen=True, slots=True)
class Stopping:
    def encode(self) -> bytes:
        return _STOPPING


PeerMessage = Propose | Ask | Settled | Ping | Pong | Refused | Stopping


def decode(frame: bytes) -> PeerMessage:
    """The message in a frame that is not of kind RAFT."""
    kind, body = frame[:1], frame[1:]
    try:
        if kind == _PROPOSE and len(body) > PROPOSAL_ID_BYTES:
            return Propose(body[:PROPOSAL_ID_BYTES], body[PROPOSAL_ID_BYTES:])
        if kind == _ASK:
            context, index = _ASK_HEAD.unpack_from(body)
            groups = tuple(group for (group,) in _GROUP.iter_unpack(body[_ASK_HEAD.size :]))
            return Ask(context, index, groups)
        if kind == _SETTLED:
            return Settled(*_CONTEXT.unpack(body))
        if kind == _STOPPING and not body:
            return Stopping()
        if kind == _PING:
            return Ping(*_CONTEXT.unpack(body))
        if kind == _PONG:
            return Pong(*_CONTEXT.unpack(body))
        if kind == _REFUSED:
            (code,) = _CODE.unpack_from(body, PROPOSAL_ID_BYTES)
            text = body[PROPOSAL_ID_BYTES + _CODE.size :].decode()
            return Refused(body[:PROPOSAL_ID_BYTES], ErrorCode(code), text)
    except (struct.error, ValueError) as error:
        raise PeerMessageError(f"a frame of kind {kind.hex()} and {len(body)} bytes: {error}") from error
    raise PeerMessageError(f"a frame of the unknown kind {kind.hex() or 'missing'}")
