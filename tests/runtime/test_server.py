"""One broker in this process: it finds its cluster, serves, hands over, and says why it ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients import wire
from tests.runtime.loops import run, until
from tests.runtime.servers import Running, Servers, servers
from tidings.config.exits import Exit
from tidings.runtime.data import DataFolder
from tidings.runtime.server import BrokerStopped

COUNT_MAX = 4


def with_servers(
    folder: Path,
    work: Callable[[Servers], Coroutine[Any, Any, None]],  # any: what a coroutine yields is the loop's matter
) -> None:
    async def whole() -> None:
        async with servers(folder, count_max=COUNT_MAX) as made:
            await work(made)

    run(whole())


async def api_keys(broker: Running) -> int:
    """How many APIs the broker says it serves."""
    address = broker.server.kafka_address
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(wire.frame(wire.API_VERSIONS, 0, b""))
    length = int.from_bytes(await reader.readexactly(4), "big")
    answer = wire.Fields(await reader.readexactly(length))
    writer.close()
    assert (answer.int32(), answer.int16()) == (1, 0)
    return len(answer.count())


async def stopped_at_start(broker: Running) -> BrokerStopped:
    with pytest.raises(BrokerStopped) as caught:
        await broker.server.start()
    return caught.value


# The start


def test_a_broker_alone_forms_its_cluster_and_serves(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        (one,) = await made.start(1)

        assert await api_keys(one) > 10
        assert one.told("cluster_joined") == 1
        assert one.told("leader_elected", log="metadata", epoch=1) == 1
        assert one.told("broker_serving", kafka=str(one.server.kafka_address)) == 1

    with_servers(tmp_path, work)


def test_a_broker_that_comes_back_is_the_same_member_of_the_same_cluster(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        (before,) = await made.start(1)
        hello = before.server.own_hello()
        await before.server.kill()

        (after,) = await made.start(1)

        assert after.server.own_hello().cluster_id == hello.cluster_id
        assert after.server.own_hello().member == hello.member
        assert after.told("cluster_joined") == 0
        assert after.told("leader_elected", log="metadata", epoch=2) == 1

    with_servers(tmp_path, work)


def test_three_brokers_form_one_cluster(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        brokers = await made.start(1, 2, 3)

        assert len({each.server.own_hello().cluster_id for each in brokers}) == 1
        assert sum(each.told("leader_elected", log="metadata") for each in brokers) == 1

    with_servers(tmp_path, work)


def test_a_broker_waits_for_its_seeds_and_says_for_whom_once(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        one = made.make(1, seeds=(1, 2))
        starting = asyncio.create_task(one.server.start())
        await until(lambda: one.told("waiting_for_cluster") == 1, "the reason")

        two = made.make(2, seeds=(1, 2))
        await asyncio.gather(starting, two.server.start())

        assert one.told("waiting_for_cluster", reason=f"no answer yet from {made.address(2)}") == 1

    with_servers(tmp_path, work)


def test_a_blank_broker_that_is_no_seed_joins_the_cluster_that_it_finds(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        (one,) = await made.start(1)
        newcomer = made.make(4, seeds=(1,))

        await newcomer.server.start()

        assert newcomer.server.own_hello().cluster_id == one.server.own_hello().cluster_id
        assert await api_keys(newcomer) > 10

    with_servers(tmp_path, work)


def test_a_start_that_is_given_up_leaves_the_folder_free(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        one = made.make(1, seeds=(1, 2))
        starting = asyncio.create_task(one.server.start())
        await until(lambda: one.told("waiting_for_cluster") == 1, "the reason")

        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await one.server.kill()

        DataFolder.take(one.server.config).release()

    with_servers(tmp_path, work)


# What is refused


def test_a_wiped_disk_is_not_taken_for_the_broker_that_had_it(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        *_, three = await made.start(1, 2, 3)
        await three.server.kill()
        shutil.rmtree(tmp_path / "broker-3")

        stopped = await stopped_at_start(made.make(3, seeds=(1, 2, 3)))

        assert stopped.code is Exit.IDENTITY
        assert "tidings broker --replace 3" in stopped.reason

    with_servers(tmp_path, work)


def test_a_wiped_disk_takes_the_place_of_the_old_one_when_it_is_told_to(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        *_, three = await made.start(1, 2, 3)
        await three.server.kill()
        shutil.rmtree(tmp_path / "broker-3")
        replacement = made.make(3, seeds=(1, 2, 3), replace=True)

        await replacement.server.start()

        assert await api_keys(replacement) > 10

    with_servers(tmp_path, work)


def test_a_second_broker_with_the_same_id_is_refused(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        await made.start(1)
        two = made.make(2)
        await two.server.start()

        stopped = await stopped_at_start(made.make(2, folder="impostor", port_of=3))

        assert stopped.code is Exit.IDENTITY
        assert "the cluster knows broker 2 with another disk" in stopped.reason
        assert await api_keys(two) > 10

    with_servers(tmp_path, work)


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        await made.start(1)

        stopped = await stopped_at_start(made.make(2, port_of=1))

        assert stopped.code is Exit.PORT_IN_USE

    with_servers(tmp_path, work)


def test_a_broker_that_has_too_much_to_say_about_itself_is_refused(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        one = made.make(1)
        one.server.config = replace(one.server.config, rack="r" * 4_000)

        stopped = await stopped_at_start(one)

        assert stopped.code is Exit.CONFIG
        assert "too long to tell a peer" in stopped.reason

    with_servers(tmp_path, work)


# The end


def test_leadership_is_handed_over_before_a_broker_stops(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        brokers = await made.start(1, 2, 3)
        (leader,) = (each for each in brokers if each.told("leader_elected", log="metadata"))
        others = [each for each in brokers if each is not leader]

        await leader.server.stop()

        assert [each.told("leader_elected", log="metadata", epoch=2) for each in others].count(1) == 1

    with_servers(tmp_path, work)


def test_a_broker_that_is_killed_hands_nothing_over_and_the_others_notice(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        brokers = await made.start(1, 2, 3)
        (leader,) = (each for each in brokers if each.told("leader_elected", log="metadata"))
        others = [each for each in brokers if each is not leader]

        await leader.server.kill()
        assert not any(each.told("leader_elected") for each in others)
        await until(
            lambda: any(each.told("leader_elected", log="metadata", epoch=2) for each in others),
            "another leader",
        )

    with_servers(tmp_path, work)


def test_a_mistake_that_surfaces_ends_the_broker_with_its_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(made: Servers) -> None:
        (one,) = await made.start(1)
        address = one.server.kafka_address
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(wire.frame(wire.API_VERSIONS, 0, b""))
        await reader.readexactly(4)

        one.server.failed({"message": "a callback raised", "exception": ZeroDivisionError("no")})

        stopped = await one.server.stopped
        assert stopped.code is Exit.FAILED
        assert one.told("broker_failed") == 1
        await reader.read()
        writer.close()
        one.server.failed({"message": "and another"})
        assert one.told("broker_failed") == 1

    with_servers(tmp_path, work)
    assert "ZeroDivisionError: no" in capsys.readouterr().err


def test_a_broker_that_fails_while_it_waits_for_its_cluster_does_not_wait_on(tmp_path: Path) -> None:
    async def work(made: Servers) -> None:
        one = made.make(1, seeds=(1, 2))
        starting = asyncio.create_task(one.server.start())
        await until(lambda: one.told("waiting_for_cluster") == 1, "the reason")

        one.server.failed({"message": "a callback raised"})

        with pytest.raises(BrokerStopped, match="a callback raised"):
            await starting

    with_servers(tmp_path, work)
