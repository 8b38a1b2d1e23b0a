"""Which brokers answer is known within moments, whatever is behind their ports."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.kafka.conftest import MockCluster
from tidings.config.address import Address
from tidings.kafka import probe
from tidings.kafka.errors import NoMajority, Unreachable

SECONDS_MAX = 2 * probe.ANSWER_SECONDS_MAX + probe.CONTROLLER_SECONDS_MAX
Serve = Callable[[bytes], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Opens a port at which every question is answered with the same bytes; empty: with silence."""
    listeners: list[socket.socket] = []

    def accept(listener: socket.socket, answer: bytes) -> None:
        kept: list[socket.socket] = []
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                break
            kept.append(connection)
            if answer:
                connection.recv(1024)
                connection.sendall(answer)
        for connection in kept:
            connection.close()

    def start(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=accept, args=(listener, answer), daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def metadata(ports: list[int], *, controller: int = 1) -> bytes:
    host = struct.pack(">h9s", 9, b"127.0.0.1")
    brokers = b"".join(
        struct.pack(">i", number) + host + struct.pack(">ih", port, -1)
        for number, port in enumerate(ports, start=1)
    )
    body = struct.pack(">ii", 7, len(ports)) + brokers + struct.pack(">ii", controller, 0)
    return struct.pack(">i", len(body)) + body


def test_a_whole_cluster_has_its_majority(mock_cluster: MockCluster) -> None:
    probe.require_majority(mock_cluster.bootstrap)


def test_one_address_of_several_is_enough(mock_cluster: MockCluster, closed_port: int) -> None:
    probe.require_majority(f"127.0.0.1:{closed_port},{mock_cluster.bootstrap.split(',')[0]}")


def test_one_of_three_is_told_with_its_address(serve: Serve, closed_port: int) -> None:
    living = serve(metadata([1, 2, 3]))
    port = serve(metadata([living, closed_port, closed_port]))

    with pytest.raises(NoMajority) as caught:
        probe.require_majority(f"127.0.0.1:{port}")

    assert str(caught.value) == f"only 1 of 3 brokers answers (127.0.0.1:{living})"


def test_two_of_three_are_a_majority(serve: Serve, closed_port: int) -> None:
    living = serve(metadata([]))

    probe.require_majority(f"127.0.0.1:{serve(metadata([living, living, closed_port]))}")


def test_brokers_that_elect_no_controller_are_told(serve: Serve) -> None:
    living = serve(metadata([]))

    with pytest.raises(NoMajority, match="no controller"):
        probe.require_majority(f"127.0.0.1:{serve(metadata([living], controller=-1))}")


def test_no_broker_is_told_with_the_reason_of_each(closed_port: int) -> None:
    with pytest.raises(Unreachable, match=f"127.0.0.1:{closed_port}: Connection refused; a b:1: "):
        probe.require_majority(f"127.0.0.1:{closed_port},a b:1")


@pytest.mark.parametrize("text", ["", ":", "127.0.0.1:x"])
def test_an_address_that_is_none_is_not_reachable(text: str) -> None:
    with pytest.raises(Unreachable):
        probe.require_majority(text)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\0\0\0\x04\0\0\0\0"])
def test_what_does_not_speak_kafka_is_no_broker_and_known_soon(serve: Serve, answer: bytes) -> None:
    begin_s = time.monotonic()

    with pytest.raises(Unreachable, match=r"Kafka's protocol|does not answer"):
        probe.require_majority(f"127.0.0.1:{serve(answer)}")

    assert time.monotonic() - begin_s < SECONDS_MAX


def test_a_port_that_may_be_a_peer_port_comes_with_a_hint(serve: Serve) -> None:
    with pytest.raises(Unreachable) as caught:
        probe.require_majority(f"127.0.0.1:{serve(b'HTTP/1.1 400 Bad Request')}")

    assert "10000 lower" in caught.value.hint


def test_only_those_that_answer_are_living(serve: Serve, closed_port: int) -> None:
    living = Address("127.0.0.1", serve(metadata([])))

    assert probe.living_brokers([living, Address("127.0.0.1", closed_port)]) == [living]
