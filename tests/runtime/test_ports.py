"""Free ports are free, different, and out of the range that outgoing connections draw from."""

import random
import socket

import pytest

from tidings.runtime.ports import FREE_PORT_HIGH, FREE_PORT_LOW, NoFreePort, find_free, is_free

HOST = "127.0.0.1"


class Always(random.Random):
    """Draws one and the same port."""

    def __init__(self, port: int) -> None:
        super().__init__(0)
        self._port = port

    def randrange(self, *_: int) -> int:  # type: ignore[override]  # one port, whatever the range
        return self._port


@pytest.fixture
def listener() -> socket.socket:
    listening = socket.create_server((HOST, find_free(HOST, 1, random.Random())[0]))
    return listening


def test_ports_are_different_and_below_those_of_clients() -> None:
    ports = find_free(HOST, 10, random.Random(7))

    assert len(set(ports)) == 10
    assert all(FREE_PORT_LOW <= port < FREE_PORT_HIGH for port in ports)


def test_a_port_with_a_listener_is_not_free(listener: socket.socket) -> None:
    with listener:
        port = listener.getsockname()[1]

        assert not is_free(HOST, port)
        with pytest.raises(NoFreePort):
            find_free(HOST, 1, Always(port))

    assert is_free(HOST, port)


def test_one_port_is_not_found_twice() -> None:
    port = find_free(HOST, 1, random.Random())[0]

    with pytest.raises(NoFreePort, match="no 2 free ports"):
        find_free(HOST, 2, Always(port))


def test_an_address_that_is_not_ours_is_the_broker_s_to_refuse() -> None:
    assert is_free("192.0.2.1", 9092)
