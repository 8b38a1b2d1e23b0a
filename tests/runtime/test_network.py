"""All connections of one broker: one way to each peer, and nobody who is not of the cluster."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tests.runtime.loops import run, until
from tests.runtime.sides import RawPeer, Side, config, hello, listening, raw_listener
from tidings.config.address import Address


def connected(one: Side, other: Side) -> bool:
    return one.count("up", other.hello.broker_id) == 1 and other.count("up", one.hello.broker_id) == 1


def test_brokers_that_dial_each_other_have_a_way_in_both_directions() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            one.network.dial([two.address])
            two.network.dial([one.address])
            await until(lambda: connected(one, two), "the links")

            one.network.send([(2, [b"to two"])])
            two.network.send([(1, [b"to one"])])
            await until(lambda: bool(one.frames() and two.frames()), "the frames")

            assert (one.frames(), two.frames()) == ([b"to one"], [b"to two"])

    run(work())


def test_who_is_dialled_dials_back() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            one.network.dial([two.address])

            await until(lambda: connected(one, two), "the link that two was not told to make")

    run(work())


def test_a_frame_to_nobody_is_lost_without_harm() -> None:
    async def work() -> None:
        one = Side(1)
        async with listening(one):
            one.network.send([(2, [b"x"])])

            assert one.told == []

    run(work())


def test_the_owner_is_told_again_of_who_was_connected_before_it_began() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        await one.listen()
        async with listening(two):
            one.network.dial([two.address])
            await until(lambda: one.count("up", 2) == 1, "the link")
            one.hello = hello(1, peer=one.hello.peer, founders=((2, 2),))

            one.network.begin()

            assert one.count("up", 2) == 2
            await one.network.close()

    run(work())


def test_a_broker_does_not_link_to_itself_under_another_name() -> None:
    async def work() -> None:
        one = Side(1)
        async with listening(one):
            alias = Address("localhost", one.address.port)

            one.network.dial([one.address, alias])
            await until(lambda: alias in one.network._own, "the discovery")
            one.network.dial([alias])

            assert one.told == []
            assert not one.network._links

    run(work())


def test_two_addresses_of_one_peer_make_one_link() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            alias = Address("localhost", two.address.port)

            one.network.dial([two.address, alias])
            await until(lambda: connected(one, two), "the links")
            for number in range(20):
                one.network.send([(2, [b"%d" % number])])
                await asyncio.sleep(0.002)  # the other link goes on trying meanwhile
            await until(lambda: len(two.frames()) == 20, "the frames")

            assert two.frames() == [b"%d" % number for number in range(20)]
            assert one.count("down") == 0

    run(work())


def test_the_other_address_takes_over_when_the_link_is_lost() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            alias = Address("localhost", two.address.port)
            one.network.dial([two.address, alias])
            await until(lambda: connected(one, two), "the links")

            two.network.drop(one.hello)
            await until(lambda: one.count("up", 2) == 2, "a link again")

            assert one.count("gone") == 0

    run(work())


def test_a_peer_that_reconnects_replaces_its_old_connection() -> None:
    async def work() -> None:
        one = Side(1)
        async with listening(one):
            old = await RawPeer.dial(one.address)
            await old.shake_as_dialler(hello(2))
            await until(lambda: one.count("seen", 2) == 1, "the first connection")

            new = await RawPeer.dial(one.address)
            await new.shake_as_dialler(hello(2))

            assert await old.is_closed()
            assert len(one.network._accepted) == 1
            old.close()
            new.close()

    run(work())


def test_a_peer_that_sends_what_no_broker_sends_is_dropped_with_all_that_followed() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            one.network.dial([two.address])
            await until(lambda: one.count("up", 2) == 1, "the link")
            two.drops_senders = True

            one.network.send([(2, [b"wrong"]), (2, [b"behind it"])])
            await until(lambda: one.count("down", 2) == 1, "the end of the link")

            assert two.frames() == [b"wrong"]

    run(work())


# Whose cluster


def test_brokers_of_two_clusters_refuse_each_other() -> None:
    async def work() -> None:
        one, two = Side(1, cluster_id="a"), Side(2, cluster_id="b")
        async with listening(one, two):
            one.network.dial([two.address])

            await until(lambda: one.count("refused") == 1, "the refusal")
            assert "belongs to the cluster b, this one to a" in str(one.told[0][2])
            assert one.count("up") == 0
            assert two.count("seen") == 0

    run(work())


def test_who_has_joined_another_cluster_meanwhile_has_to_say_so() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        await one.listen()
        await two.listen()
        one.network.dial([two.address])
        await until(lambda: connected(one, two), "the links of two that belong nowhere")
        one.hello = hello(1, cluster_id="a", peer=one.hello.peer)
        two.hello = hello(2, cluster_id="b", peer=two.hello.peer)

        one.network.begin()
        two.network.begin()

        await until(lambda: one.count("refused") == 1, "the refusal")
        assert one.frames() == two.frames() == []
        await one.network.close()
        await two.network.close()

    run(work())


def test_founders_that_were_blank_when_they_met_keep_their_links() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        await one.listen()
        await two.listen()
        one.network.dial([two.address])
        await until(lambda: connected(one, two), "the links")
        founders = ((1, 1), (2, 2))
        one.hello = hello(1, cluster_id="a", peer=one.hello.peer, founders=founders)
        two.hello = hello(2, cluster_id="a", peer=two.hello.peer, founders=founders)

        one.network.begin()
        two.network.begin()
        one.network.send([(2, [b"x"])])
        await until(lambda: two.frames() == [b"x"], "the frame")

        assert one.count("down") == two.count("down") == 0
        await one.network.close()
        await two.network.close()

    run(work())


# Limits


def test_strangers_do_not_use_up_the_files_of_the_broker() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            strangers = [await RawPeer.dial(one.address) for _ in range(80)]
            await until(lambda: len(one.network._accepted) == 64, "the oldest to go")

            assert await strangers[0].is_closed()
            two.network.dial([one.address])
            await until(lambda: two.count("up", 1) == 1, "a peer among strangers")
            for stranger in strangers:
                stranger.close()

    run(work())


def test_an_address_that_is_no_longer_wanted_is_given_up_when_nobody_is_there() -> None:
    async def work() -> None:
        one, two = Side(1), Side(2)
        async with listening(one, two):
            async with raw_listener() as (nobody, _):
                pass
            one.network.dial([two.address, nobody])
            await until(lambda: connected(one, two), "the links")

            one.network.dial([])

            assert list(one.network._links) == [two.address]

    run(work())


def test_a_full_link_that_is_lost_is_not_full_any_more() -> None:
    async def work() -> None:
        one = Side(1, options=config(peer_buffer_bytes_max=64 * 1024))
        async with listening(one), raw_listener() as (address, arrived):
            one.network.dial([address])
            peer = await arrived.get()
            await peer.shake_as_acceptor(hello(2))
            await until(lambda: one.count("up", 2) == 1, "the link")
            for _ in range(50):
                one.network.send([(2, [bytes(256 * 1024)])])
                await asyncio.sleep(0)

            peer.close()
            await until(lambda: one.count("down", 2) == 1, "the end of the link")

            assert one.told[-3:] == [("paused", 2, True), ("paused", 2, False), ("down", 2)]

    run(work())


# Standing still


def test_while_it_stands_still_it_reads_nothing_and_dials_nobody() -> None:
    async def work() -> None:
        one, two, three = Side(1), Side(2), Side(3)
        async with listening(one, two, three):
            two.network.dial([one.address])
            await until(lambda: connected(one, two), "the links")
            one.network.pause()
            told = list(one.told)

            two.network.send([(1, [b"meanwhile"])])
            one.network.dial([three.address])
            async with AsyncExitStack() as closing:
                late = await RawPeer.dial(one.address)
                closing.callback(late.close)
                await asyncio.sleep(0.05)
                assert one.told == told
                one.network.resume()
                await late.shake_as_dialler(hello(4))

            await until(lambda: one.frames() == [b"meanwhile"], "what was sent meanwhile")
            await until(lambda: one.count("up", 3) == 1, "the new link")

    run(work())


def test_a_mistake_in_what_the_owner_does_surfaces_on_the_loop() -> None:
    async def work() -> None:
        surfaced: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: surfaced.append(context["exception"]))
        one, two = Side(1), Side(2)
        one.mistake = AssertionError("a mistake")
        async with listening(one, two):
            one.network.dial([two.address])

            await until(lambda: surfaced == [one.mistake], "the mistake")

    run(work())


def test_the_end_leaves_no_task_and_no_socket() -> None:
    async def work() -> None:
        tasks = asyncio.all_tasks()
        one, two = Side(1), Side(2)
        async with listening(one, two):
            one.network.dial([two.address])
            await until(lambda: connected(one, two), "the links")

        await until(lambda: not one.network._accepted and not two.network._accepted, "the sockets")
        assert asyncio.all_tasks() == tasks

    run(work())
