"""A cluster in this process does what one of processes does, and leaves nothing behind."""

from __future__ import annotations

import gc
import socket
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from bench.processes import wait_until
from tests.clients import wire
from tests.testing.plain_client import ANSWER_S_MAX, leader_of, read, write
from tidings.config.exits import Exit
from tidings.testing import Cluster, ClusterError

SILENCE_S = 0.2


def three_brokers() -> Cluster:
    """A pause is noticed sooner than users need."""
    return Cluster(brokers=3, election_timeout_ms_min=300, election_timeout_ms_max=600, beat_interval_ms=50)


def leader_id(cluster: Cluster, topic: str) -> int:
    address = leader_of(cluster.bootstrap.split(",")[0], topic)
    return next(facts.id for facts in cluster.brokers.values() if facts.kafka == address)


def api_versions() -> bytes:
    return wire.frame(wire.API_VERSIONS, 0, b"")


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


# What it does


def test_one_broker_takes_what_is_written_and_gives_it_back() -> None:
    with Cluster() as cluster:
        offsets = [write(cluster.bootstrap, "t", value) for value in (b"one", b"two")]

        assert offsets == [0, 1]
        assert b"one" in read(cluster.bootstrap, "t")


def test_three_brokers_go_on_when_the_leader_is_killed_and_take_it_back() -> None:
    with three_brokers() as cluster:
        write(cluster.bootstrap, "t", b"before")
        leader = leader_id(cluster, "t")

        cluster.kill(leader)
        write(cluster.bootstrap, "t", b"meanwhile")
        cluster.restart(leader)
        write(cluster.bootstrap, "t", b"after")

        records = read(cluster.bootstrap, "t")
        assert records.index(b"before") < records.index(b"meanwhile") < records.index(b"after")


def test_a_killed_broker_is_gone_with_its_connections_and_its_port() -> None:
    with Cluster() as cluster:
        address = cluster.brokers[1].kafka
        with wire.Connection(address) as connection:
            cluster.kill(1)

            assert connection.is_closed()
        assert not listens(address)


def test_what_was_acknowledged_is_there_after_all_brokers_were_killed() -> None:
    with three_brokers() as cluster:
        write(cluster.bootstrap, "t", b"kept")

        cluster.kill(1, 2, 3)
        cluster.restart(1, 2, 3)

        assert b"kept" in read(cluster.bootstrap, "t")


def test_a_paused_broker_says_nothing_until_it_is_resumed() -> None:
    with Cluster() as cluster, wire.Connection(cluster.brokers[1].kafka) as connection:
        cluster.pause(1)
        connection.socket.sendall(api_versions())
        connection.socket.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            connection.socket.recv(1)

        cluster.resume(1)
        connection.socket.settimeout(ANSWER_S_MAX)

        assert connection.read().int32() == 1


def test_a_paused_broker_takes_connections_as_a_stopped_process_does() -> None:
    with Cluster() as cluster:
        cluster.pause(1)

        with wire.Connection(cluster.brokers[1].kafka) as connection:
            connection.socket.sendall(api_versions())
            cluster.resume(1)

            assert connection.read().int32() == 1


def test_the_others_go_on_without_a_paused_leader_and_it_follows_when_resumed() -> None:
    with three_brokers() as cluster:
        write(cluster.bootstrap, "t", b"before")
        leader = leader_id(cluster, "t")
        old, *others = sorted(cluster.brokers.values(), key=lambda facts: facts.id != leader)

        cluster.pause(leader)
        wait_until(
            lambda: leader_of(others[0].kafka, "t") != old.kafka,
            seconds_max=ANSWER_S_MAX,
            what="another leader",
        )
        write(",".join(facts.kafka for facts in others), "t", b"meanwhile")
        cluster.resume(leader)

        write(cluster.bootstrap, "t", b"after")
        records = read(cluster.bootstrap, "t")
        assert records.index(b"before") < records.index(b"meanwhile") < records.index(b"after")


# What it is given


def test_a_folder_that_is_given_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    with Cluster(data=tmp_path / "kept") as cluster:
        write(cluster.bootstrap, "t", b"one")

    with Cluster(data=tmp_path / "kept") as cluster:
        assert write(cluster.bootstrap, "t", b"two") == 1
        assert cluster.brokers[1].data == tmp_path / "kept" / "broker-1"


def test_a_folder_of_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    with Cluster(data=tmp_path):
        pass

    with pytest.raises(ClusterError, match="holds a cluster of 1 broker, not 3"):
        Cluster(brokers=3, data=tmp_path).start()


def test_a_folder_that_is_in_use_is_refused_with_the_reason(tmp_path: Path) -> None:
    with Cluster(data=tmp_path), pytest.raises(ClusterError, match="is in use by process") as caught:
        Cluster(data=tmp_path).start()

    assert caught.value.code is Exit.FOLDER_LOCKED


def test_options_are_a_broker_s_options() -> None:
    with Cluster(auto_create_topics=False) as cluster, pytest.raises(Exception, match="no leader"):
        leader_of(cluster.bootstrap, "t")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"segment_byte": 1}, "unknown option 'segment_byte'; did you mean 'segment_bytes'"),
        ({"brokers": 0}, "brokers: 0 is not between 1 and 9"),
        ({"brokers": 1, "kafka_port": 9092}, "kafka_port is chosen by the cluster"),
    ],
)
def test_a_wrong_option_is_told_before_anything_starts(options: dict[str, int], reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        Cluster(**options)  # type: ignore[arg-type]  # wrong on purpose


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_BROKERS", "5")

    with Cluster() as cluster:
        assert list(cluster.brokers) == [1]


# What it refuses, and what it tells


def test_a_cluster_that_does_not_run_cannot_be_told_to_do_anything() -> None:
    cluster = Cluster()

    with pytest.raises(ClusterError, match="is not running"):
        cluster.kill(1)
    cluster.stop()


def test_a_broker_that_is_not_there_is_told() -> None:
    with Cluster() as cluster, pytest.raises(ClusterError, match="no broker 0: they are numbered from 1"):
        cluster.kill(0)


def test_what_is_not_done_in_time_is_given_up_with_the_newest_events() -> None:
    with Cluster(brokers=3, start_s_max=30.0) as cluster:
        cluster.kill(1, 2, 3)
        cluster._start_s_max = 0.5

        with pytest.raises(ClusterError, match=r"restarting broker 1 was not done within 0.5 s\n  {"):
            cluster.restart(1)


def fail(cluster: Cluster) -> None:
    """What happens when a callback on the cluster's loop raises."""

    async def surface() -> None:
        cluster._loop_failed({"message": "found out by a test"})

    assert cluster._thread is not None
    cluster._thread.call(surface(), timeout_s=ANSWER_S_MAX)


def test_a_broker_that_failed_by_itself_is_told_at_the_end() -> None:
    with pytest.raises(ClusterError, match="broker 1 failed: found out by a test"), Cluster() as cluster:
        fail(cluster)


def test_the_error_of_a_test_is_not_hidden_by_that_of_a_broker() -> None:
    def mistaken(cluster: Cluster) -> None:
        fail(cluster)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Cluster() as cluster:
        mistaken(cluster)


# What it leaves behind


@pytest.mark.serial
def test_a_hundred_clusters_leave_no_thread_no_open_file_no_port_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run(1)
    threads, files = threading.active_count(), psutil.Process().num_fds()

    addresses = [address for _ in range(100) for address in run(1)]
    addresses += [address for _ in range(5) for address in run(3)]

    gc.collect()  # sockets of this test's own client
    assert (threading.active_count(), psutil.Process().num_fds()) == (threads, files)
    assert list(tmp_path.iterdir()) == []
    assert not any(map(listens, addresses))


def run(brokers: int) -> list[str]:
    with Cluster(brokers=brokers) as cluster:
        write(cluster.bootstrap, "t", b"x")
        return cluster.bootstrap.split(",")
