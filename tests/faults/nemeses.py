"""Nemeses: faults that come and go, drawn by chance, none of which may cost an acknowledged message.

The one rule: each of them ends, and behind its end the cluster is whole again: all processes run, all links
pass. Must not know: clients, or what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from tests.faults import damage
from tests.faults.cluster import Cluster, wait_until
from tests.faults.damage import Files

CHECKPOINT_S_MAX: Final = 20.0
DELAYS_S: Final = (0.05, 0.2, 0.5)


class Nemeses:
    """What can happen to a cluster whose topic is being written to."""

    def __init__(self, cluster: Cluster, topic: str, chance: Random) -> None:
        self._cluster = cluster
        self._topic = topic
        self._chance = chance
        self.victim = self._one()  # the one broker whose disk is bad
        self._by_name: dict[str, Callable[[], Iterator[None]]] = {
            "nothing": self._nothing,
            "kill the leader": self._kill_leader,
            "kill some": self._kill_some,
            "kill all": self._kill_all,
            "stop the leader": self._stop_leader,
            "stop some": self._stop_some,
            "ask one to stop": self._terminate_one,
            "damage the bad disk": self._damage,
            "replace the bad disk": self._replace,
        }
        if cluster.links is not None:
            self._by_name |= {
                "cut one off": self._isolate_one,
                "cut the leader off": self._isolate_leader,
                "cut one way": self._cut_one_way,
                "cut in a ring": self._cut_ring,
                "slow links": self._delay,
            }

    @contextmanager
    def strike(self) -> Iterator[str]:
        """One of them, for as long as the block lasts; its name."""
        name = self._chance.choice(sorted(self._by_name))
        nemesis = contextmanager(self._by_name[name])
        with nemesis():
            yield name

    # -- processes

    def _nothing(self) -> Iterator[None]:
        yield

    def _kill_leader(self) -> Iterator[None]:
        yield from self._killed([self._leader()])

    def _kill_some(self) -> Iterator[None]:
        yield from self._killed(self._some())

    def _kill_all(self) -> Iterator[None]:
        yield from self._killed(list(self._cluster.brokers))

    def _stop_leader(self) -> Iterator[None]:
        yield from self._stopped([self._leader()])

    def _stop_some(self) -> Iterator[None]:
        yield from self._stopped(self._some())

    def _terminate_one(self) -> Iterator[None]:
        number = self._one()
        assert self._cluster.terminate(number) == 0
        yield
        self._cluster.start(number)

    def _damage(self) -> Iterator[None]:
        """A flipped bit somewhere in what a broker has synced. It is always the same one: damage that nobody
        has read yet stays, and two replicas of three are too many."""
        number = self.victim
        folder = self._cluster.brokers[number].data
        wait_until(lambda: self._has_checkpoint(folder), "a checkpoint", seconds_max=CHECKPOINT_S_MAX)
        self._cluster.kill(number)
        do_damage = self._chance.choice(damage.ALL)
        do_damage(Files.of(folder, f"{self._topic}-0"))
        yield
        self._cluster.start(number)

    def _replace(self) -> Iterator[None]:
        """The disk is lost, and a blank one takes its place."""
        self._cluster.kill(self.victim)
        self._cluster.wipe(self.victim)
        yield
        self._cluster.start(self.victim, more=["--replace", str(self.victim)])

    def _killed(self, numbers: list[int]) -> Iterator[None]:
        self._cluster.kill(*numbers)
        yield
        self._cluster.start(*numbers)

    def _stopped(self, numbers: list[int]) -> Iterator[None]:
        for number in numbers:
            self._cluster.stop(number)
        yield
        for number in numbers:
            self._cluster.resume(number)

    # -- links

    def _isolate_one(self) -> Iterator[None]:
        yield from self._cut(self._around(self._one()))

    def _isolate_leader(self) -> Iterator[None]:
        yield from self._cut(self._around(self._leader()))

    def _cut_one_way(self) -> Iterator[None]:
        pairs = self._around(self._one())
        yield from self._cut(pairs[:: self._chance.choice((2, -2))])

    def _cut_ring(self) -> Iterator[None]:
        """Every broker loses the way to its next one: each hears all but one."""
        numbers = self._chance.sample(sorted(self._cluster.brokers), len(self._cluster.brokers))
        yield from self._cut(list(zip(numbers, numbers[1:] + numbers[:1], strict=True)))

    def _delay(self) -> Iterator[None]:
        assert self._cluster.links is not None
        self._cluster.links.delay(self._around(self._one()), self._chance.choice(DELAYS_S))
        yield
        self._cluster.links.heal()

    def _cut(self, pairs: list[tuple[int, int]]) -> Iterator[None]:
        assert self._cluster.links is not None
        self._cluster.links.cut(pairs, hard=self._chance.random() < 0.5)
        yield
        self._cluster.links.heal()

    # -- whom

    def _one(self) -> int:
        return self._chance.choice(sorted(self._cluster.brokers))

    def _some(self) -> list[int]:
        """Any number of them, all included."""
        numbers = sorted(self._cluster.brokers)
        return self._chance.sample(numbers, self._chance.randint(1, len(numbers)))

    def _leader(self) -> int:
        return self._cluster.leader(self._topic)

    def _around(self, number: int) -> list[tuple[int, int]]:
        """Both ways to every other broker, in turn out and in."""
        others = [other for other in self._cluster.brokers if other != number]
        return [pair for other in others for pair in ((number, other), (other, number))]

    def _has_checkpoint(self, folder: Path) -> bool:
        try:
            return bool(Files.of(folder, f"{self._topic}-0").checkpoint.segments)
        except AssertionError:
            return False
