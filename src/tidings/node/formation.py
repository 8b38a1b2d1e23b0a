"""Formation: how brokers that have never met become one cluster, once.

Its one rule: a cluster is formed only when every listed seed has answered, all are blank and all hold the
same list; else a broker waits, or joins the cluster it finds. Everyone works the cluster's id and founders
out of the same facts, so nobody has to be asked, and a crash at any moment leaves either a blank broker or a
founder. No socket, no clock. Tests: tests/node/test_formation.py
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.node.handshake import Hello
from tidings.raft.entries import Membership

_CLUSTER_ID_BYTES = 16  # as Kafka's: a uuid in 22 characters of base64


@dataclass(frozen=True, slots=True, kw_only=True)
class Founding:
    """What a broker keeps of its cluster's beginning: its id, and the founders' members by broker id."""

    cluster_id: str
    members: Mapping[int, int]

    def membership(self) -> Membership:
        """The first membership of the metadata group, the same on every broker."""
        return Membership(voters=tuple(self.members.values()))

    def founder_of(self, member: int) -> int | None:
        """The broker id that the member had when the cluster was formed; None: it was no founder."""
        return next((broker_id for broker_id, known in self.members.items() if known == member), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why there is no cluster yet, for people."""

    reason: str


class Formation:
    """What a blank broker has heard from others."""

    def __init__(self, own: Hello) -> None:
        self._own = own
        self._seen: dict[str, Hello] = {own.peer: own}

    def seen(self, hello: Hello) -> None:
        self._seen[hello.peer] = hello

    def decide(self) -> Founding | Waiting:
        formed = [hello for hello in self._seen.values() if not hello.is_blank]
        if len({hello.cluster_id for hello in formed}) > 1:
            which = ", ".join(f"{hello.peer}: {hello.cluster_id}" for hello in formed)
            return Waiting(reason=f"the brokers belong to different clusters ({which})")
        if formed:
            return Founding(cluster_id=formed[0].cluster_id, members=dict(formed[0].founders))
        seeds = self._own.seeds
        if self._own.peer not in seeds:
            return Waiting(reason=f"{self._own.peer} is none of the seeds, and no seed is in a cluster yet")
        silent = [seed for seed in seeds if seed not in self._seen]
        if silent:
            return Waiting(reason=f"no answer yet from {', '.join(silent)}")
        founders = [self._seen[seed] for seed in seeds]
        for hello in founders:
            if hello.seeds != seeds:
                return Waiting(reason=f"{hello.peer} has another list: {', '.join(hello.seeds)}")
        if len({hello.broker_id for hello in founders}) != len(founders):
            return Waiting(reason="two seeds have the same broker id")
        founders.sort(key=lambda hello: hello.broker_id)
        return Founding(
            cluster_id=_cluster_id(founders), members={hello.broker_id: hello.member for hello in founders}
        )


def _cluster_id(founders: Sequence[Hello]) -> str:
    facts = "\n".join(f"{hello.broker_id}:{hello.directory}" for hello in founders)
    digest = hashlib.sha256(facts.encode()).digest()
    return base64.urlsafe_b64encode(digest[:_CLUSTER_ID_BYTES]).rstrip(b"=").decode()
