"""Messages as bytes: what comes back is what was sent, and anything else is a WireError."""

from __future__ import annotations

from random import Random

import pytest

from tidings.raft import wire
from tidings.raft.entries import Entry, EntryKind, Membership, StartState, TermStart
from tidings.raft.errors import WireError
from tidings.raft.messages import (
    Append,
    AppendReply,
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
from tidings.raft.start_codec import decode_start, encode_start

HUGE = 2**64 - 1
ENTRIES = [
    Entry(8, 3, EntryKind.TERM_START, 100, 0, b""),
    Entry(9, 3, EntryKind.RECORDS, 100, 7, b"first batch"),
    Entry(10, 3, EntryKind.MEMBERSHIP, 107, 0, Membership(voters=(1, 2)).encode()),
    Entry(11, 3, EntryKind.COMMAND, 107, 0, b"command"),
    Entry(12, 3, EntryKind.LOG_START, 107, 0, bytes(8)),
]
MESSAGES: list[Message] = [
    VoteRequest(7, 3, HUGE, 2, True, HUGE, 2, False),
    VoteRequest(7, 3, HUGE, 2, False, 4, 2, True),
    VoteReply(7, 3, HUGE, 2, True, False, 4),
    VoteReply(7, 3, HUGE, 2, False, True, 3),
    Append(7, 3, HUGE, 2, 7, 2, 5, ENTRIES, 0, 1),
    Append(7, 3, HUGE, 2, 7, 2, 5, [], HUGE, 0),
    AppendReply(7, 3, HUGE, 2, True, 7, 12, 12, 3, 5, False, True, 9, 1),
    AppendReply(7, 3, HUGE, 2, False, 7, 0, 6, 2, 5, True, False, 0, 4),
    TimeoutNow(7, 3, HUGE, 2),
    InstallStart(7, 3, HUGE, 2, 50, 2, 100, 110, b"0123456789", 1),
    InstallReply(7, 3, HUGE, 2, 50, 110, False, 1),
    InstallReply(7, 3, HUGE, 2, 50, 110, True, 1),
    DoubtRequest(7, 3, HUGE, 2, HUGE, 1),
    DoubtReply(7, 3, HUGE, 2, HUGE, 2, 12, 3, ((5, (1, HUGE)), (9, (1, 2, 3)))),
    DoubtReply(7, 3, HUGE, 2, HUGE, 1, 0, 0, ()),
    Beat(0, 0, HUGE, 2, 123456, HUGE),
    BeatReply(0, 0, HUGE, 2, 123456, True),
    Led(0, 0, HUGE, 2, 123456, True, [(1, 5), (2**32 - 1, HUGE)]),
    LedReply(0, 0, HUGE, 2, 123456, [(1, 6)]),
]
START = StartState(
    index=50,
    term=4,
    offset=900,
    membership=Membership(voters=(1, 2, 3), learners=(4,)),
    log_start_offset=17,
    terms=(TermStart(term=1, index=1, offset=0), TermStart(term=4, index=30, offset=500)),
    state=bytes(range(100)),
)


def frame_of(messages: list[Message]) -> bytes:
    return b"".join(wire.encode(messages))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was_sent(message: Message) -> None:
    assert wire.decode(frame_of([message])) == [message]


def test_all_messages_for_one_receiver_travel_in_one_frame() -> None:
    assert wire.decode(frame_of(MESSAGES)) == MESSAGES


def test_payloads_are_not_copied() -> None:
    payload = bytes(5000)
    append = Append(7, 3, 1, 2, 0, 0, 0, [Entry(1, 3, EntryKind.RECORDS, 0, 1, payload)], 0, 0)

    assert any(buffer is payload for buffer in wire.encode([append]))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_frame_cut_off_anywhere_is_refused(message: Message) -> None:
    frame = frame_of([message])

    for end in range(len(frame)):
        with pytest.raises(WireError):
            wire.decode(frame[:end])


def test_bytes_behind_the_last_message_are_refused() -> None:
    with pytest.raises(WireError):
        wire.decode(frame_of(MESSAGES) + b"\0")


def test_a_frame_of_another_version_is_refused() -> None:
    frame = bytearray(frame_of(MESSAGES))
    frame[0] += 1

    with pytest.raises(WireError, match="version"):
        wire.decode(bytes(frame))


def test_a_count_larger_than_the_frame_is_refused_before_anything_is_made() -> None:
    frame = bytearray(frame_of([Append(7, 3, 1, 2, 7, 2, 5, [], 0, 0)]))
    frame[-4:] = b"\xff\xff\xff\xff"

    with pytest.raises(WireError, match="entries do not fit"):
        wire.decode(bytes(frame))


@pytest.mark.parametrize(
    "entry",
    [
        Entry(10, 3, EntryKind.RECORDS, 0, 1, b"a"),
        Entry(8, 4, EntryKind.RECORDS, 0, 1, b"a"),
        Entry(8, 3, EntryKind.START, 0, 0, b""),
        Entry(8, 3, 99, 0, 0, b""),
        Entry(8, 3, EntryKind.MEMBERSHIP, 0, 0, b""),
        Entry(8, 3, EntryKind.MEMBERSHIP, 0, 0, Membership(voters=(1, 2)).encode() + b"?"),
        Entry(8, 3, EntryKind.MEMBERSHIP, 0, 0, Membership(voters=(), learners=(1,)).encode()),
        Entry(8, 3, EntryKind.LOG_START, 0, 0, bytes(7)),
    ],
    ids=[
        "gap",
        "newer term than its sender",
        "start is no entry",
        "unknown kind",
        "membership cut off",
        "membership with a tail",
        "membership without voters",
        "short log start",
    ],
)
def test_entries_that_no_leader_sends_are_refused(entry: Entry) -> None:
    with pytest.raises(WireError):
        wire.decode(frame_of([Append(7, 3, 1, 2, 7, 2, 5, [entry], 0, 0)]))


def test_mutated_frames_end_in_messages_or_a_wire_error() -> None:
    random = Random(7)
    whole = frame_of(MESSAGES)

    refused = 0
    for _ in range(5_000):
        frame = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            frame[random.randrange(len(frame))] = random.getrandbits(8)
        try:
            wire.decode(bytes(frame))
        except WireError:
            refused += 1

    assert refused > 1_000


def test_random_bytes_end_in_a_wire_error() -> None:
    random = Random(7)

    for _ in range(2_000):
        with pytest.raises(WireError):
            wire.decode(b"\x01" + random.randbytes(random.randint(0, 200)))


def test_a_start_state_comes_back_as_it_was() -> None:
    assert decode_start(encode_start(START)) == START


def test_a_start_state_cut_off_or_extended_is_refused() -> None:
    encoded = encode_start(START)

    for end in range(len(encoded)):
        with pytest.raises(WireError):
            decode_start(encoded[:end])
    with pytest.raises(WireError):
        decode_start(encoded + b"\0")


@pytest.mark.parametrize(
    "terms",
    [
        (TermStart(term=4, index=30, offset=500), TermStart(term=4, index=31, offset=500)),
        (TermStart(term=1, index=30, offset=500), TermStart(term=4, index=30, offset=500)),
        (TermStart(term=1, index=3, offset=501), TermStart(term=4, index=30, offset=500)),
        (TermStart(term=3, index=30, offset=500),),
        (TermStart(term=4, index=51, offset=500),),
    ],
    ids=["term twice", "index twice", "offset falls", "another last term", "behind the start"],
)
def test_a_start_state_with_an_impossible_epoch_table_is_refused(terms: tuple[TermStart, ...]) -> None:
    start = StartState(index=50, term=4, offset=900, membership=START.membership, terms=terms)

    with pytest.raises(WireError):
        decode_start(encode_start(start))


def test_a_mutated_start_state_ends_in_a_start_state_or_a_wire_error() -> None:
    random = Random(7)
    whole = encode_start(START)

    for _ in range(3_000):
        encoded = bytearray(whole)
        encoded[random.randrange(len(encoded))] = random.getrandbits(8)
        try:
            decode_start(bytes(encoded))
        except WireError:
            continue
