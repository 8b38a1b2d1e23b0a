"""Links: in order and held back as streams, lossy and repeating as datagrams."""

from dataclasses import replace
from random import Random

from tests.sim.knobs import DATAGRAM, STREAM
from tidings.raft.messages import Message, TimeoutNow
from tidings.sim.clock import MS, Agenda
from tidings.sim.network import Frame, Network
from tidings.sim.swarm import NetworkKnobs


class Wire:
    """A network, and the terms of the messages that arrived."""

    def __init__(self, knobs: NetworkKnobs) -> None:
        self.agenda = Agenda()
        self.arrived: list[int] = []
        self.network = Network(self.agenda, Random(1), knobs, self._arrive)

    def _arrive(self, receiver: int, frame: Frame) -> None:
        self.arrived.extend(message.term for message in frame)

    def send(self, *terms: int, sender: int = 1, receiver: int = 2) -> None:
        for term in terms:
            message: Message = TimeoutNow(7, term, sender, receiver)
            self.network.send(sender, receiver, [message])

    def wait(self, ms: int = 1_000) -> None:
        self.agenda.run_until(self.agenda.now_us + ms * MS)


def test_a_stream_delivers_everything_in_order() -> None:
    wire = Wire(replace(STREAM, delay_us_max=50_000))

    wire.send(*range(50))
    wire.wait()

    assert wire.arrived == list(range(50))


def test_a_cut_holds_a_stream_back_without_changing_its_order() -> None:
    wire = Wire(replace(STREAM, delay_us_max=50_000))
    wire.send(1, 2)
    wire.network.cut([(1, 2)])
    wire.send(3, 4)
    wire.wait()
    arrived_meanwhile = list(wire.arrived)

    wire.network.mend([(1, 2)])
    wire.send(5)
    wire.wait()

    assert arrived_meanwhile == []
    assert wire.arrived == [1, 2, 3, 4, 5]


def test_a_cut_goes_one_way_only_and_two_cuts_must_both_be_mended() -> None:
    wire = Wire(DATAGRAM)
    wire.network.cut([(1, 2)])
    wire.network.cut([(1, 2)])
    wire.send(1)
    wire.send(2, sender=2, receiver=1)
    wire.network.mend([(1, 2)])
    wire.send(3)
    wire.wait()

    assert wire.arrived == [2]


def test_a_reset_loses_what_was_under_way_and_nothing_later() -> None:
    wire = Wire(STREAM)
    wire.send(1, 2)

    wire.network.reset(1, 2)
    wire.send(3)
    wire.wait()

    assert wire.arrived == [3]


def test_datagrams_are_lost_repeated_and_overtaken() -> None:
    wire = Wire(replace(DATAGRAM, delay_us_max=50_000, loss_share=0.2, duplicate_share=0.2, replay_share=0.2))

    wire.send(*range(200))
    wire.wait()

    assert 0 < len(set(wire.arrived)) < 200
    assert len(wire.arrived) > len(set(wire.arrived))
    assert wire.arrived != sorted(wire.arrived)


def test_a_healed_network_loses_nothing() -> None:
    wire = Wire(replace(DATAGRAM, loss_share=0.5, duplicate_share=0.5))
    wire.network.cut([(1, 2)])

    wire.network.heal()
    wire.send(*range(100))
    wire.wait()

    assert sorted(wire.arrived) == list(range(100))


def test_messages_go_through_their_bytes_where_the_seed_says_so() -> None:
    wire = Wire(replace(STREAM, is_encoded=True))

    wire.send(5)
    wire.wait()

    assert wire.arrived == [5]
