"""Witness: what a stock client is asked to do, and the values it is asked with.

The one rule: a client is used as its own documentation says; an adapter translates and judges nothing. Must
not know: which clients there are, or what they should see (contract.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

ANSWER_S_MAX: Final = 20.0
"""How long a client may wait for anything; a cluster that is well answers in milliseconds."""
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the number that stands in a batch's attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a producer hands over."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a consumer is given back."""

    offset: int
    timestamp_ms: int
    message: Message


@dataclass(frozen=True, slots=True)
class Beginning:
    """Read from the first message that is kept."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Read from this offset."""

    value: int


@dataclass(frozen=True, slots=True)
class Since:
    """Read from the first message that is not older."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Last:
    """Read the newest so many messages."""

    count: int


Start = Beginning | Offset | Since | Last


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic as a client describes it: per partition its leader, replicas and those in sync."""

    leaders: tuple[int, ...]
    replicas: tuple[frozenset[int], ...]
    in_sync: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """A cluster as a client describes it: HOST:PORT by broker id."""

    addresses: Mapping[int, str]
    controller: int


class Writer(Protocol):
    """A client that can produce."""

    def write(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        compression: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        """Writes to partition 0 with acks=all; the offset that each message was given."""
        ...

    def place(self, topic: str, keys: Sequence[bytes]) -> list[int]:
        """Writes a message per key, partitioned as Java does; the partitions they went to."""
        ...


class Reader(Protocol):
    """A client that can read partition 0 of a topic without a consumer group."""

    def read(self, topic: str, start: Start, count: int) -> list[Stored]: ...

    def follow(self, topic: str) -> AbstractContextManager[Callable[[int], list[Stored]]]:
        """Stands at the end when the block begins; what it yields reads so many messages from there."""
        ...


class Seeker(Protocol):
    def read_at(self, topic: str, offsets: Sequence[int]) -> list[Stored]:
        """One reader, sent to each of the offsets in turn, takes one message at each."""
        ...


class Refused(Protocol):
    """A client that can say why it was refused."""

    def ask_for_group(self, topic: str) -> str:
        """Subscribes as a member of a consumer group, which must fail; the name of the error and its text."""
        ...

    def ask_for_transactions(self) -> str:
        """Sets a transactional producer up, which must fail; the name of the error and its text."""
        ...


class Administrator(Protocol):
    """A client that can administer topics."""

    def create_topic(
        self, topic: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None: ...

    def topic_names(self) -> set[str]: ...

    def describe_topic(self, topic: str) -> TopicView: ...

    def delete_topic(self, topic: str) -> None: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def settings(self, topic: str) -> Mapping[str, str]: ...

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None: ...

    def delete_records(self, topic: str, before_offset: int) -> int:
        """Partition 0 begins at `before_offset` from now on; the first offset it is said to have."""
        ...

    def describe_cluster(self) -> ClusterView: ...
