"""Living: who of the cluster answers just now, and who leads what.

Its one rule: facts of this moment only, from connections and from Raft; nothing here is agreed upon or kept.
Fills the broker room's port Liveness. Tests: tests/node/test_living.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tidings.broker.cluster import METADATA_GROUP
from tidings.broker.ports import NO_EPOCH, NO_LEADER, Leader
from tidings.raft.host import RaftHost
from tidings.raft.progress import Progress

# A broker that is gone for so long is no longer named to clients: longer than any restart, far shorter than
# an outage.
_LISTED_MS = 60_000
# Falling behind is a matter of time alone, so it is looked for so often; far below any time allowed for it.
_LAGS_MS = 1_000


class Living:
    """What this broker knows of the others."""

    def __init__(
        self, *, host: RaftHost, broker_id: int, broker_of: Callable[[int], int], lag_time_max_ms: int
    ) -> None:
        self.version = 0
        self._host = host
        self._broker_id = broker_id
        self._broker_of = broker_of
        self._lag_time_max_ms = lag_time_max_ms
        self._members: dict[int, int] = {}  # member -> broker id, of the peers that are connected
        self._stopping: set[int] = set()  # those of them that are about to go
        self._gone_at_ms: dict[int, int] = {}  # broker id -> when it was last connected
        self._now_ms = 0
        self._lags_at_ms = 0
        self._lagging: set[tuple[int, int]] = set()  # (group led here, member that does not keep up)

    @property
    def controller_id(self) -> int:
        return self.leader_of(METADATA_GROUP).broker_id

    def alive(self) -> Collection[int]:
        return {self._broker_id, *self._members.values()}

    def listed(self) -> Collection[int]:
        return {*self.alive(), *self._gone_at_ms}

    def members(self) -> list[int]:
        """The connected peers' members."""
        return list(self._members)

    def staying(self) -> list[int]:
        """Those of them that may be given something to lead."""
        return [member for member in self._members if member not in self._stopping]

    def leader_of(self, group: int) -> Leader:
        """The newest leader announced, if it still answers."""
        known = self._host.leader_table.get(group)
        if known is None:
            return Leader(broker_id=NO_LEADER, epoch=NO_EPOCH)
        member, term = known
        is_alive = member == self._host.member or member in self._members
        return Leader(broker_id=self._broker_of(member) if member and is_alive else NO_LEADER, epoch=term)

    def in_sync(self, group: int, replicas: Sequence[int]) -> list[int]:
        led = self._host.groups.get(group)
        if led is None or not led.is_leader:
            alive = self.alive()
            return [broker_id for broker_id in replicas if broker_id in alive]
        keeping_up = {self._broker_id}
        for member, progress in led.progress_of().items():
            if progress.is_voter and member in self._members and self._keeps_up(progress):
                keeping_up.add(self._members[member])
        return [broker_id for broker_id in replicas if broker_id in keeping_up]

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        for broker_id, gone_at_ms in list(self._gone_at_ms.items()):
            if now_ms - gone_at_ms >= _LISTED_MS:
                del self._gone_at_ms[broker_id]
                self.changed()
        if now_ms >= self._lags_at_ms:
            self._lags_at_ms = now_ms + _LAGS_MS
            self._look_at_lags()

    def peer_up(self, member: int, broker_id: int) -> None:
        self._members[member] = broker_id
        self._stopping.discard(member)
        self._gone_at_ms.pop(broker_id, None)
        self.changed()

    def peer_down(self, member: int, now_ms: int) -> None:
        self._stopping.discard(member)
        broker_id = self._members.pop(member, None)
        if broker_id is not None:
            self._gone_at_ms[broker_id] = now_ms
            self.changed()

    def peer_stopping(self, member: int) -> None:
        """It hands its leaderships over, and goes."""
        if member in self._members:
            self._stopping.add(member)

    def changed(self) -> None:
        """A leader, a role or a connection is not what it was."""
        self.version += 1

    def _keeps_up(self, progress: Progress) -> bool:
        """Whether the follower had all that was committed, not too long ago."""
        behind_since_ms = progress.behind_since_ms
        return not behind_since_ms or self._now_ms - behind_since_ms <= self._lag_time_max_ms

    def _look_at_lags(self) -> None:
        lagging = {
            (number, member)
            for number, group in self._host.groups.items()
            if group.is_leader
            for member, progress in group.progress_of().items()
            if not self._keeps_up(progress)
        }
        if lagging != self._lagging:
            self._lagging = lagging
            self.changed()
