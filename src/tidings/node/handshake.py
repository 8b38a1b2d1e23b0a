"""The peer handshake: two brokers prove to each other that they hold the cluster's secret, and say who they
are.

Its one rule: nothing but these three bounded messages is looked at before the other side has proved itself.
No socket and no randomness: bytes in, bytes out, nonces are arguments. Tests: tests/node/test_handshake.py

    dialler                                   acceptor
      | -- magic, format, nonce D, hello D ----> |
      | <- magic, format, nonce A, hello A, ---- |    proof A = HMAC-SHA-256(secret, "acceptor" + transcript)
      |    proof A                               |
      | -- proof D ----------------------------> |    proof D = HMAC-SHA-256(secret, "dialler" + transcript)

The transcript is both openings, nonces included, so a proof fits one connection and one direction only. An
opening is
    4 magic "TDPR" | u16 format version | u16 hello bytes | 32 nonce | hello (JSON, at most 4 KiB)
After it the dialler sends frames; the acceptor sends none (each pair of brokers has a connection either way).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from dataclasses import asdict, dataclass

from tidings.config.address import Address

MAGIC = b"TDPR"
PEER_FORMAT = (
    1  # raised whenever a peer frame changes; a newer peer is refused, so the older side is upgraded first
)
NONCE_BYTES = 32
PROOF_BYTES = 32
HELLO_BYTES_MAX = 4096
FOUNDERS_BYTES_MAX = 1024  # of them, for what a broker tells only once it is in a cluster
_OPENING = struct.Struct(">4sHH32s")
_DIRECTORY_BYTES = 16
# What reading the fields of a hello can end in, whatever stands there.
_NOT_A_HELLO = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class HandshakeError(Exception):
    """The other side is not a broker of this cluster, or of a newer release; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who a broker is, as it tells its peers. `cluster_id` is empty while it has never been in a cluster."""

    cluster_id: str
    broker_id: int
    directory: str  # hex of the directory uuid: a wiped disk has another
    seeds: tuple[str, ...]  # the --join list, sorted
    peer: str  # HOST:PORT of the peer listener
    kafka: str  # HOST:PORT that clients are told
    rack: str = ""
    founders: tuple[tuple[int, int], ...] = ()  # (broker id, member) of those who formed the cluster

    @property
    def is_blank(self) -> bool:
        return not self.cluster_id

    @property
    def member(self) -> int:
        return member_of(self.directory)

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @staticmethod
    def decode(payload: bytes) -> Hello:
        try:
            fields = json.loads(payload)
            directory = bytes.fromhex(fields["directory"])
            if len(directory) != _DIRECTORY_BYTES:
                raise ValueError(f"a directory id of {len(directory)} bytes")
            return Hello(
                cluster_id=str(fields["cluster_id"]),
                broker_id=int(fields["broker_id"]),
                directory=directory.hex(),
                seeds=tuple(map(str, fields["seeds"])),
                peer=str(Address.parse(fields["peer"])),
                kafka=str(Address.parse(fields["kafka"])),
                rack=str(fields["rack"]),
                founders=tuple((int(broker_id), int(member)) for broker_id, member in fields["founders"]),
            )
        except _NOT_A_HELLO as error:
            raise HandshakeError(f"the peer's hello cannot be read: {error!r}") from error


def check_cluster(own: Hello, peer: Hello) -> None:
    """Two brokers that belong to different clusters have nothing to say to each other, whatever secret they
    share."""
    if not own.is_blank and not peer.is_blank and own.cluster_id != peer.cluster_id:
        raise HandshakeError(
            f"broker {peer.broker_id} at {peer.peer} belongs to the cluster {peer.cluster_id}, "
            f"this one to {own.cluster_id}"
        )


def member_of(directory: str) -> int:
    """The Raft member number of a directory: the first eight bytes of its uuid; never 0, which means no
    member."""
    return int(directory[:16], 16) or 1


class Dialler:
    """The side that connects. `opening` goes out first; `receive` takes what comes back."""

    def __init__(self, *, secret: bytes, hello: Hello, nonce: bytes) -> None:
        self.opening = _opening(hello, nonce)
        self.peer: Hello | None = None
        self._secret = secret
        self._received = b""

    def receive(self, chunk: bytes) -> bytes | None:
        """The proof to send once the acceptor's answer is complete and right; None while more is needed."""
        self._received += chunk
        opening = _whole_opening(self._received)
        if opening is None or len(self._received) < len(opening) + PROOF_BYTES:
            return None
        if len(self._received) > len(opening) + PROOF_BYTES:
            raise HandshakeError("the acceptor sent more than its answer")
        transcript = self.opening + opening
        _check_proof(self._secret, b"acceptor", transcript, self._received[len(opening) :])
        self.peer = _hello_in(opening)
        return _proof(self._secret, b"dialler", transcript)


class Acceptor:
    """The side that was connected to."""

    def __init__(self, *, secret: bytes, hello: Hello, nonce: bytes) -> None:
        self.peer: Hello | None = None  # set when the dialler has proved itself
        self.rest = b""  # what followed the proof: the first frames
        self._secret = secret
        self._opening = _opening(hello, nonce)
        self._received = b""
        self._transcript = b""

    def receive(self, chunk: bytes) -> bytes | None:
        """The answer to send once the dialler's opening is complete; afterwards `peer` is set when its proof
        is right."""
        self._received += chunk
        if not self._transcript:
            opening = _whole_opening(self._received)
            if opening is None:
                return None
            if len(self._received) > len(opening):
                raise HandshakeError("the dialler did not wait for an answer")
            _hello_in(opening)
            self._transcript = opening + self._opening
            self._received = b""
            return self._opening + _proof(self._secret, b"acceptor", self._transcript)
        if len(self._received) >= PROOF_BYTES:
            _check_proof(self._secret, b"dialler", self._transcript, self._received[:PROOF_BYTES])
            self.peer = _hello_in(self._transcript)
            self.rest = self._received[PROOF_BYTES:]
        return None


def _opening(hello: Hello, nonce: bytes) -> bytes:
    assert len(nonce) == NONCE_BYTES, len(nonce)
    payload = hello.encode()
    assert len(payload) <= HELLO_BYTES_MAX, len(payload)
    return _OPENING.pack(MAGIC, PEER_FORMAT, len(payload), nonce) + payload


def _whole_opening(received: bytes) -> bytes | None:
    """The opening at the start of what was received, or None while it is incomplete. Refuses as early as it
    can."""
    if not MAGIC.startswith(received[:4]) and not received.startswith(MAGIC):
        raise HandshakeError("not a Tidings peer: wrong first bytes")
    if len(received) < _OPENING.size:
        return None
    _, peer_format, hello_bytes, _ = _OPENING.unpack_from(received)
    if peer_format > PEER_FORMAT:
        raise HandshakeError(
            f"the peer speaks format {peer_format}, this release {PEER_FORMAT}: upgrade this broker"
        )
    if hello_bytes > HELLO_BYTES_MAX:
        raise HandshakeError(f"a hello of {hello_bytes} bytes is over the limit of {HELLO_BYTES_MAX}")
    end = _OPENING.size + hello_bytes
    return received[:end] if len(received) >= end else None


def _hello_in(transcript: bytes) -> Hello:
    _, _, hello_bytes, _ = _OPENING.unpack_from(transcript)
    return Hello.decode(transcript[_OPENING.size : _OPENING.size + hello_bytes])


def _proof(secret: bytes, side: bytes, transcript: bytes) -> bytes:
    return hmac.new(secret, side + transcript, hashlib.sha256).digest()


def _check_proof(secret: bytes, side: bytes, transcript: bytes, proof: bytes) -> None:
    if not hmac.compare_digest(_proof(secret, side, transcript), proof):
        raise HandshakeError("the peer does not hold this cluster's secret")
