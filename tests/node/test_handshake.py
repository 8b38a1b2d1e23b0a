"""Two brokers prove that they hold the same secret; whatever else comes is refused, in few bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.node.handshake import (
    HELLO_BYTES_MAX,
    MAGIC,
    PEER_FORMAT,
    PROOF_BYTES,
    Acceptor,
    Dialler,
    HandshakeError,
    Hello,
    check_cluster,
    member_of,
)

SECRET = b"s" * 32
OPENING = struct.Struct(">4sHH32s")


def hello(broker_id: int = 1, **changes: object) -> Hello:
    known = Hello(
        cluster_id="",
        broker_id=broker_id,
        directory=f"{broker_id:032x}",
        seeds=("127.0.0.1:1", "127.0.0.1:2"),
        peer=f"127.0.0.1:{broker_id}",
        kafka=f"127.0.0.1:{9_000 + broker_id}",
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # names and types are the tests' own


def dialler(secret: bytes = SECRET) -> Dialler:
    return Dialler(secret=secret, hello=hello(1), nonce=b"d" * 32)


def acceptor(secret: bytes = SECRET) -> Acceptor:
    return Acceptor(secret=secret, hello=hello(2, rack="r"), nonce=b"a" * 32)


def opening(payload: bytes, *, magic: bytes = MAGIC, peer_format: int = PEER_FORMAT) -> bytes:
    return OPENING.pack(magic, peer_format, len(payload), b"n" * 32) + payload


def answer_of(accepting: Acceptor, given_bytes: bytes) -> bytes:
    answer = accepting.receive(given_bytes)
    assert answer is not None
    return answer


# As it should be


def test_both_sides_learn_who_the_other_is() -> None:
    dialling, accepting = dialler(), acceptor()

    proof = dialling.receive(answer_of(accepting, dialling.opening))
    assert proof is not None
    assert accepting.peer is None
    accepting.receive(proof)

    assert dialling.peer == hello(2, rack="r")
    assert accepting.peer == hello(1)
    assert accepting.rest == b""


def test_bytes_may_come_one_by_one() -> None:
    dialling, accepting = dialler(), acceptor()

    answers = [accepting.receive(bytes([byte])) for byte in dialling.opening]
    assert answers[:-1] == [None] * (len(answers) - 1)
    assert answers[-1] is not None
    proofs = [dialling.receive(bytes([byte])) for byte in answers[-1]]
    assert proofs[-1] is not None
    for byte in proofs[-1]:
        accepting.receive(bytes([byte]))

    assert accepting.peer == hello(1)


def test_frames_behind_the_proof_are_kept() -> None:
    dialling, accepting = dialler(), acceptor()
    proof = dialling.receive(answer_of(accepting, dialling.opening))
    assert proof is not None

    accepting.receive(proof + b"frames")

    assert accepting.rest == b"frames"


def test_a_hello_survives_its_encoding() -> None:
    full = hello(7, cluster_id="c", rack="r", founders=((1, 2**64 - 1), (7, 5)))

    assert Hello.decode(full.encode()) == full


def test_a_member_is_drawn_from_the_directory_and_never_0() -> None:
    assert member_of("0000000000000005" + "f" * 16) == 5
    assert member_of("0" * 32) == 1


# Who does not hold the secret


def test_a_dialler_refuses_an_acceptor_without_the_secret() -> None:
    dialling, accepting = dialler(), acceptor(secret=b"x" * 32)

    with pytest.raises(HandshakeError, match="does not hold this cluster's secret"):
        dialling.receive(answer_of(accepting, dialling.opening))

    assert dialling.peer is None


def test_an_acceptor_refuses_a_dialler_without_the_secret() -> None:
    dialling, accepting = dialler(), acceptor()
    accepting.receive(dialling.opening)

    with pytest.raises(HandshakeError, match="does not hold this cluster's secret"):
        accepting.receive(b"p" * PROOF_BYTES)

    assert accepting.peer is None


def test_a_proof_of_one_side_is_none_of_the_other() -> None:
    dialling, accepting = dialler(), acceptor()
    answer = answer_of(accepting, dialling.opening)

    with pytest.raises(HandshakeError, match="secret"):
        accepting.receive(answer[-PROOF_BYTES:])


def test_a_proof_fits_one_connection_only() -> None:
    dialling, first, second = dialler(), acceptor(), acceptor()
    proof = dialling.receive(answer_of(first, dialling.opening))
    assert proof is not None
    other = Dialler(secret=SECRET, hello=hello(1), nonce=b"e" * 32)
    second.receive(other.opening)

    with pytest.raises(HandshakeError, match="secret"):
        second.receive(proof)


# Who speaks something else


@pytest.mark.parametrize("side", [dialler, acceptor])
@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00", b"\0\0\0\x14", b"T!"])
def test_other_protocols_are_refused_at_their_first_bytes(
    side: Callable[[], Dialler | Acceptor], first: bytes
) -> None:
    with pytest.raises(HandshakeError, match="not a Tidings peer"):
        side().receive(first)


@pytest.mark.parametrize("side", [dialler, acceptor])
def test_a_newer_format_is_refused_with_who_has_to_be_upgraded(
    side: Callable[[], Dialler | Acceptor],
) -> None:
    with pytest.raises(HandshakeError, match=rf"speaks format {PEER_FORMAT + 1}.*upgrade this broker"):
        side().receive(opening(hello().encode(), peer_format=PEER_FORMAT + 1))


@pytest.mark.parametrize("side", [dialler, acceptor])
def test_a_hello_that_is_too_long_is_refused_before_it_is_there(
    side: Callable[[], Dialler | Acceptor],
) -> None:
    head = OPENING.pack(MAGIC, PEER_FORMAT, HELLO_BYTES_MAX + 1, b"n" * 32)

    with pytest.raises(HandshakeError, match="4097 bytes is over the limit of 4096"):
        side().receive(head)


@pytest.mark.parametrize(
    "changes",
    [
        {"directory": ""},
        {"directory": "zz" * 16},
        {"directory": 5},
        {"broker_id": "one"},
        {"broker_id": float("inf")},
        {"peer": "nowhere"},
        {"kafka": 9_092},
        {"founders": [[1]]},
        {"seeds": None},
    ],
)
def test_a_hello_with_a_wrong_field_is_refused(changes: dict[str, object]) -> None:
    payload = json.dumps(asdict(hello()) | changes).encode()

    with pytest.raises(HandshakeError, match="cannot be read"):
        acceptor().receive(opening(payload))


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 4_000, b"{}"])
def test_a_hello_that_is_none_is_refused(payload: bytes) -> None:
    with pytest.raises(HandshakeError, match="cannot be read"):
        acceptor().receive(opening(payload))


def test_a_dialler_that_does_not_wait_is_refused() -> None:
    with pytest.raises(HandshakeError, match="did not wait"):
        acceptor().receive(dialler().opening + b"x")


def test_an_acceptor_that_goes_on_talking_is_refused() -> None:
    dialling = dialler()
    answer = answer_of(acceptor(), dialling.opening)

    with pytest.raises(HandshakeError, match="more than its answer"):
        dialling.receive(answer + b"x")


@given(st.binary(max_size=300))
def test_random_bytes_end_in_a_refusal_or_in_waiting_for_more(received: bytes) -> None:
    for side in (dialler(), acceptor()):
        try:
            side.receive(received)
        except HandshakeError:
            continue
        assert side.peer is None


# Whose cluster


def test_brokers_of_different_clusters_have_nothing_to_say_to_each_other() -> None:
    with pytest.raises(HandshakeError, match=r"broker 2 at .* belongs to the cluster b, this one to a"):
        check_cluster(hello(1, cluster_id="a"), hello(2, cluster_id="b"))


@pytest.mark.parametrize(("own", "other"), [("a", "a"), ("", "a"), ("a", ""), ("", "")])
def test_who_is_of_no_cluster_yet_may_talk_to_anybody(own: str, other: str) -> None:
    check_cluster(hello(1, cluster_id=own), hello(2, cluster_id=other))
