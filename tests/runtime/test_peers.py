"""One connection between two brokers, on real sockets: proof first, then frames one way, or the end."""

from __future__ import annotations

import asyncio
import struct

import pytest

from tests.runtime.loops import run, until
from tests.runtime.sides import SECRET, RawPeer, Side, config, hello, listening, raw_listener
from tidings.config.options import Config
from tidings.node.handshake import HELLO_BYTES_MAX, MAGIC, PEER_FORMAT

OPENING = struct.Struct(">4sHH32s")


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


# The side that is connected to


def test_frames_of_a_peer_that_proved_itself_come_whole_and_in_order() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side):
            peer = await RawPeer.dial(side.address)
            await peer.shake_as_dialler(hello(2))

            stream = b"".join(frame(b"%d" % number) for number in range(100))
            for start in range(0, len(stream), 7):
                peer.writer.write(stream[start : start + 7])
            await until(lambda: len(side.frames()) == 100, "a hundred frames")

            assert side.frames() == [b"%d" % number for number in range(100)]
            assert side.count("seen", 2) == 1
            peer.close()

    run(work())


def test_a_peer_without_the_secret_is_refused_and_never_heard() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side):
            peer = await RawPeer.dial(side.address)
            peer.writer.write(OPENING.pack(MAGIC, PEER_FORMAT, len(hello(2).encode()), b"n" * 32))
            peer.writer.write(hello(2).encode())
            await peer.reader.readexactly(OPENING.size)
            peer.writer.write(b"p" * 32 + frame(b"x"))

            assert await peer.is_closed()
            assert side.told == [("refused", "127.0.0.1", "the peer does not hold this cluster's secret")]
            peer.close()

    run(work())


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not a Tidings peer"),
        (b"\x16\x03\x01\x02\x00", "not a Tidings peer"),
        (bytes(1_000), "not a Tidings peer"),
        (OPENING.pack(MAGIC, PEER_FORMAT + 1, 0, b"n" * 32), "upgrade this broker"),
        (OPENING.pack(MAGIC, PEER_FORMAT, HELLO_BYTES_MAX + 1, b"n" * 32), "over the limit"),
        (OPENING.pack(MAGIC, PEER_FORMAT, 2, b"n" * 32) + b"{}", "cannot be read"),
    ],
)
def test_whatever_else_speaks_is_refused_with_one_event(received: bytes, reason: str) -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side):
            peer = await RawPeer.dial(side.address)
            peer.writer.write(received)

            assert await peer.is_closed()
            ((what, _, why),) = side.told
            assert what == "refused"
            assert reason in str(why)
            peer.close()

    run(work())


def test_a_silent_stranger_is_cut_after_the_timeout_without_an_event() -> None:
    async def work() -> None:
        side = Side(1, options=config(peer_handshake_timeout_ms=20))
        async with listening(side):
            peer = await RawPeer.dial(side.address)

            assert await peer.is_closed()
            assert side.told == []
            peer.close()

    run(work())


def test_a_peer_that_proved_itself_may_be_silent_for_longer() -> None:
    async def work() -> None:
        side = Side(1, options=config(peer_handshake_timeout_ms=20))
        async with listening(side):
            peer = await RawPeer.dial(side.address)
            await peer.shake_as_dialler(hello(2))
            await until(lambda: side.count("seen", 2) == 1, "the peer")

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(peer.is_closed(), 0.1)
            peer.writer.write(frame(b"here"))
            await until(lambda: side.frames() == [b"here"], "its frame")
            peer.close()

    run(work())


@pytest.mark.parametrize("length", [0, 32 * 1024 * 1024 + 1, 2**32 - 1])
def test_a_frame_of_an_impossible_length_ends_the_connection(length: int) -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side):
            peer = await RawPeer.dial(side.address)
            await peer.shake_as_dialler(hello(2))
            peer.writer.write(struct.pack(">I", length))

            assert await peer.is_closed()
            assert side.count("refused", "127.0.0.1") == 1
            peer.close()

    run(work())


def test_frames_that_come_with_the_proof_wait_until_the_broker_has_begun() -> None:
    async def work() -> None:
        side = Side(1)
        await side.listen()
        peer = await RawPeer.dial(side.address)
        await peer.shake_as_dialler(hello(2))
        peer.writer.write(frame(b"early") + frame(b"and more"))
        await until(lambda: side.count("seen", 2) == 1, "the peer")
        assert side.frames() == []

        side.hello = hello(1, peer=side.hello.peer, founders=((2, 2),))
        side.network.begin()
        await until(lambda: len(side.frames()) == 2, "the frames that waited")

        assert side.frames() == [b"early", b"and more"]
        peer.close()
        await side.network.close()

    run(work())


# The side that connects


def test_a_link_is_up_when_the_other_side_has_proved_itself() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            peer = await arrived.get()
            assert side.told == []

            dialler = await peer.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 1, "the link")
            side.network.send([(2, [b"a", b"bc"])])

            assert await peer.reader.readexactly(7) == frame(b"abc")
            assert dialler.broker_id == 1
            assert side.told == [("seen", 2), ("up", 2)]

    run(work())


def test_an_acceptor_without_the_secret_gets_no_proof() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            peer = await arrived.get()

            with pytest.raises(ConnectionError):
                await peer.shake_as_acceptor(hello(2), secret=b"x" * 32)
            await until(lambda: side.count("refused") == 1, "the refusal")

            assert side.told == [("refused", str(address), "the peer does not hold this cluster's secret")]

    run(work())


def test_who_is_refused_again_and_again_is_told_of_once() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            for _ in range(5):
                (await arrived.get()).writer.write(b"HTTP/1.1 400 Bad Request\r\n")

            await arrived.get()
            assert side.count("refused") == 1

    run(work())


def test_an_acceptor_that_talks_after_the_handshake_is_cut() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            peer = await arrived.get()
            await peer.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 1, "the link")

            peer.writer.write(b"x")

            await until(lambda: side.count("down", 2) == 1, "the end of the link")

    run(work())


def test_an_acceptor_that_never_answers_is_given_up_in_time_and_dialled_again() -> None:
    async def work() -> None:
        side = Side(1, options=config(peer_handshake_timeout_ms=20))
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])

            silent = await arrived.get()
            again = await arrived.get()

            assert await silent.is_closed()
            await again.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 1, "the link")

    run(work())


def test_a_lost_link_is_dialled_again_and_tells_both() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            first = await arrived.get()
            await first.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 1, "the link")

            first.close()
            second = await arrived.get()
            await second.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 2, "the link again")

            assert side.told == [("seen", 2), ("up", 2), ("down", 2), ("seen", 2), ("up", 2)]

    run(work())


def test_a_peer_that_cannot_be_reached_again_is_gone() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side):
            async with raw_listener() as (address, arrived):
                side.network.dial([address])
                await (await arrived.get()).shake_as_acceptor(hello(2))
                await until(lambda: side.count("up", 2) == 1, "the link")

            await until(lambda: side.count("gone", 2) == 1, "the news of its end")
            assert side.told[-2:] == [("down", 2), ("gone", 2)]

    run(work())


def test_a_peer_that_dies_a_moment_after_it_came_back_is_gone_at_once() -> None:
    async def work() -> None:
        slow = Config(peer_port=0, peer_reconnect_ms_min=50, peer_reconnect_ms_max=600_000)
        side = Side(1, options=slow)
        async with listening(side):
            async with raw_listener() as (address, arrived):
                side.network.dial([address])
                await (await arrived.get()).shake_as_acceptor(hello(2))
                await until(lambda: side.count("up", 2) == 1, "the link")
            await until(lambda: side.count("gone", 2) == 1, "the news of its end")
            async with raw_listener(address) as (_, arrived):
                await (await arrived.get()).shake_as_acceptor(hello(2))
                await until(lambda: side.count("up", 2) == 2, "the link again")

            await until(lambda: side.count("gone", 2) == 2, "the news of its second end")

    run(work())


def test_a_peer_that_only_ever_reached_us_is_gone_when_it_cannot_be_reached() -> None:
    async def work() -> None:
        side = Side(
            1, options=Config(peer_port=0, peer_reconnect_ms_min=600_000, peer_reconnect_ms_max=600_000)
        )
        async with listening(side):
            async with raw_listener() as (address, _):
                pass  # nobody listens there any more
            peer = await RawPeer.dial(side.address)
            await peer.shake_as_dialler(hello(2, peer=str(address)))
            await until(lambda: side.count("seen", 2) == 1, "the peer")

            peer.close()

            await until(lambda: side.count("gone", 2) == 1, "the news of its end")

    run(work())


def test_a_link_that_takes_nothing_is_full_then_overfull_and_never_grows_further() -> None:
    async def work() -> None:
        side = Side(1, options=config(peer_buffer_bytes_max=64 * 1024))
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            peer = await arrived.get()
            await peer.shake_as_acceptor(hello(2))
            await until(lambda: side.count("up", 2) == 1, "the link")

            for _ in range(200):
                side.network.send([(2, [bytes(256 * 1024)])])
                await asyncio.sleep(0)
            assert side.count("paused", 2, True) == 1
            link = side.network._link_by_member[2]
            assert link._dialled is not None
            assert link._dialled.buffered_bytes() < 1024 * 1024
            drain = asyncio.create_task(peer.is_closed())
            await until(lambda: side.count("paused", 2, False) == 1, "room again")

            drain.cancel()

    run(work())


def test_the_secret_itself_is_never_sent() -> None:
    async def work() -> None:
        side = Side(1)
        async with listening(side), raw_listener() as (address, arrived):
            side.network.dial([address])
            peer = await arrived.get()

            assert SECRET not in await peer.reader.read(65_536)

    run(work())
