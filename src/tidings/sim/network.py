"""The network between machines: one directed link per pair, slow, lossy or cut as the seed's knobs say.

Its one rule: what arrives was sent. A link is a stream (in order, loses only what was under way at a reset;
a cut holds it back) or carries datagrams (loses, repeats, overtakes, delivers old ones again). It must not
know what messages mean. Tests: tests/sim/test_network.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from random import Random

from tidings.raft import wire
from tidings.raft.messages import Message
from tidings.sim.clock import Agenda
from tidings.sim.swarm import NetworkKnobs

_REPLAYED_FRAMES = 32  # old frames a datagram link remembers, to deliver one again
_STREAM_FRAMES_MAX = 2_000  # under way or held back by a cut; with more the connection is lost

Frame = list[Message]


class _Link:
    """One direction between two members."""

    __slots__ = (
        "connection",
        "cut_count",
        "last_arrival_us",
        "old_frames",
        "overdue",
        "receiver",
        "sender",
        "stream",
    )

    def __init__(self, sender: int, receiver: int) -> None:
        self.sender = sender
        self.receiver = receiver
        self.connection = 0  # counts resets: what was sent on an older connection is lost
        self.cut_count = 0  # cuts may overlap
        self.last_arrival_us = 0
        self.stream: deque[Frame] = (
            deque()
        )  # under way, in order; each has one arrival planned, or is overdue
        self.overdue = 0  # arrivals that fell into a cut
        self.old_frames: deque[Frame] = deque(maxlen=_REPLAYED_FRAMES)


class Network:
    """All links. `deliver(receiver, frame)` is called when a frame arrives."""

    def __init__(
        self,
        agenda: Agenda,
        random: Random,
        knobs: NetworkKnobs,
        deliver: Callable[[int, Frame], None],
    ) -> None:
        self._agenda = agenda
        self._random = random
        self._knobs = knobs
        self._deliver = deliver
        self._links: dict[tuple[int, int], _Link] = {}
        self._is_healed = False

    def send(self, sender: int, receiver: int, frame: Frame) -> None:
        link = self._link(sender, receiver)
        if self._knobs.is_encoded:
            frame = wire.decode(b"".join(wire.encode(frame)))
        if self._knobs.is_stream:
            self._send_stream(link, frame)
        else:
            self._send_datagram(link, frame)

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        for sender, receiver in pairs:
            self._link(sender, receiver).cut_count += 1

    def mend(self, pairs: Iterable[tuple[int, int]]) -> None:
        for sender, receiver in pairs:
            link = self._link(sender, receiver)
            link.cut_count = max(0, link.cut_count - 1)
            if not link.cut_count:
                self._release(link)

    def is_cut(self, sender: int, receiver: int) -> bool:
        return self._link(sender, receiver).cut_count > 0

    def reset(self, member: int, other: int) -> None:
        """Both directions of a connection are lost, with all that is under way."""
        for link in (self._link(member, other), self._link(other, member)):
            link.connection += 1
            link.stream.clear()
            link.overdue = 0
            link.last_arrival_us = 0

    def forget(self, member: int) -> None:
        """Every connection of the member is lost: it crashed."""
        for sender, receiver in list(self._links):
            if sender == member:
                self.reset(member, receiver)

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self._is_healed = True
        for link in self._links.values():
            link.cut_count = 0
            self._release(link)

    def _link(self, sender: int, receiver: int) -> _Link:
        link = self._links.get((sender, receiver))
        if link is None:
            link = self._links[sender, receiver] = _Link(sender, receiver)
            self._link(receiver, sender)
        return link

    def _delay_us(self) -> int:
        knobs, random = self._knobs, self._random.random
        if knobs.tail_share and not self._is_healed and random() < knobs.tail_share:
            return int(random() * knobs.tail_us_max)
        return knobs.delay_us_min + int(random() * (knobs.delay_us_max - knobs.delay_us_min))

    def _send_stream(self, link: _Link, frame: Frame) -> None:
        link.stream.append(frame)
        if len(link.stream) > _STREAM_FRAMES_MAX:
            self.reset(link.sender, link.receiver)
        else:
            self._plan_arrival(link)

    def _plan_arrival(self, link: _Link) -> None:
        arrival_us = max(self._agenda.now_us + self._delay_us(), link.last_arrival_us)
        link.last_arrival_us = arrival_us
        self._agenda.at(arrival_us, self._arrive_stream, (link, link.connection))

    def _send_datagram(self, link: _Link, frame: Frame) -> None:
        knobs, random = self._knobs, self._random.random
        if link.cut_count:
            return
        if not self._is_healed:
            if knobs.loss_share and random() < knobs.loss_share:
                return
            if knobs.duplicate_share and random() < knobs.duplicate_share:
                self._agenda.after(self._delay_us() * 2, self._arrive_datagram, (link, frame))
            if knobs.replay_share:
                if link.old_frames and random() < knobs.replay_share:
                    old = link.old_frames[int(random() * len(link.old_frames))]
                    self._agenda.after(self._delay_us(), self._arrive_datagram, (link, old))
                link.old_frames.append(frame)
        self._agenda.after(self._delay_us(), self._arrive_datagram, (link, frame))

    def _arrive_stream(self, sent: tuple[_Link, int]) -> None:
        link, connection = sent
        if connection != link.connection:
            return
        if link.cut_count:
            link.overdue += 1
        else:
            self._deliver(link.receiver, link.stream.popleft())

    def _arrive_datagram(self, sent: tuple[_Link, Frame]) -> None:
        link, frame = sent
        if not link.cut_count:
            self._deliver(link.receiver, frame)

    def _release(self, link: _Link) -> None:
        while link.overdue:
            link.overdue -= 1
            self._plan_arrival(link)
