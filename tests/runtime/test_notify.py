"""systemd is told where it asked to be told, and nobody minds where it did not."""

import socket
from pathlib import Path

import pytest

from tidings.runtime.notify import READY, STOPPING, notify


def test_the_socket_that_is_named_gets_the_state(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(address)

        told = [notify(state, {"NOTIFY_SOCKET": address}) for state in (READY, STOPPING)]

        assert told == [True, True]
        assert [receiver.recv(100), receiver.recv(100)] == [b"READY=1", b"STOPPING=1"]


def test_an_abstract_name_begins_with_an_at_sign() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")  # Linux chooses an abstract name
        name = receiver.getsockname()[1:].decode()

        assert notify(READY, {"NOTIFY_SOCKET": f"@{name}"})

        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    "environment",
    [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}, {"NOTIFY_SOCKET": "/nowhere/x"}],
)
def test_where_nobody_listens_nothing_happens(environment: dict[str, str]) -> None:
    assert not notify(READY, environment)
