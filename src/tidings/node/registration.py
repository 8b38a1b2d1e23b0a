"""Registration: a broker tells its cluster who and where it is, and learns whether it is taken.

Its one rule: a broker serves clients only after the cluster's metadata, as this broker has applied it, names
it with this very disk. A disk that the cluster does not know under this id is refused, with the command that
replaces the lost one. Tests: tests/node/test_registration.py
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.broker.commands import FormCluster, RegisterBroker, encode_command
from tidings.broker.outcome import Outcome
from tidings.config.address import Address
from tidings.config.options import Config
from tidings.node.handshake import Hello
from tidings.node.node import Node
from tidings.protocol.errors import ErrorCode


class RegistrationRefused(Exception):
    """The cluster does not take this broker; the message says what to do."""


class Registration:
    """Registers until it is taken. `done` is called with None once the broker may serve, which is at once
    where its own copy of the metadata names this disk; and with the refusal whenever that comes: a disk that
    was replaced while it was away learns so from the others only."""

    def __init__(
        self, node: Node, config: Config, hello: Hello, done: Callable[[RegistrationRefused | None], None]
    ) -> None:
        self._node = node
        self._config = config
        self._hello = hello
        self._done = done
        self._is_taken = False

    def begin(self, now_ms: int) -> None:
        """Name the cluster if nobody has yet, which is for founders to do, then register. Each is tried again
        until it is answered."""
        is_founder = self._node.founding.founder_of(self._hello.member) is not None
        if is_founder and not self._node.broker.cluster.cluster_id:
            command = encode_command(FormCluster(cluster_id=self._hello.cluster_id))
            self._node.metadata.propose(command, self._named, now_ms)
            return
        self._register(now_ms)

    def _named(self, outcome: Outcome | None) -> None:
        self.begin(self._node.now_ms) if outcome is None else self._register(self._node.now_ms)

    def _register(self, now_ms: int) -> None:
        hello = self._hello
        kafka = Address.parse(hello.kafka)
        peer = Address.parse(hello.peer)
        row = self._node.broker.cluster.brokers.get(hello.broker_id)
        is_known = (
            row is not None
            and row.member == hello.member
            and (row.host, row.port, row.peer_host, row.peer_port, row.rack)
            == (kafka.host, kafka.port, peer.host, peer.port, hello.rack or None)
        )
        command = RegisterBroker(
            broker_id=hello.broker_id,
            member=hello.member,
            directory=bytes.fromhex(hello.directory),
            host=kafka.host,
            port=kafka.port,
            peer_host=peer.host,
            peer_port=peer.port,
            rack=hello.rack or None,
            replaces=self._config.replace,
        )
        if is_known:
            self._taken()
        self._node.metadata.propose(encode_command(command), self._registered, now_ms)

    def _registered(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._register(self._node.now_ms)
        elif outcome.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            broker_id = self._hello.broker_id
            self._done(
                RegistrationRefused(
                    f"the cluster knows broker {broker_id} with another disk. If that disk is lost for good, "
                    f"start this one with: tidings broker --replace {broker_id} (and its other options)"
                )
            )
        elif outcome.code == ErrorCode.KAFKA_STORAGE_ERROR and self._is_taken:
            return  # metadata that can only be read: whom it names may serve
        elif outcome.code != ErrorCode.NONE:
            self._done(RegistrationRefused(outcome.message or outcome.code.name))
        else:
            self._taken()

    def _taken(self) -> None:
        if not self._is_taken:
            self._is_taken = True
            self._done(None)
