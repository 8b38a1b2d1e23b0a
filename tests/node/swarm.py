"""A swarm of faults on a world of three brokers, from one seed, with producers that account for each record.

At most one broker at a time has lost something (a disk, a tail, what a file says); any may be killed, cut
off, or slow. In the end all are well again and the swarm looks for what was promised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.fakes.world import Asked, make_batch
from tests.node.client import Client, produced
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.broker.cluster import METADATA_GROUP
from tidings.protocol.errors import ErrorCode
from tidings.raft.group import Group

TOPICS = ("a", "b")
BROKERS = (1, 2, 3)
RETRY_MS = 25
HEALED_MS_MAX = 20_000
LOG_FILES_MAX = 16  # that a broker whose groups are all well keeps
_RETRIED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
)


@dataclass(slots=True)
class Sent:
    """A batch on its way, and the life of the broker that it was sent to."""

    value: bytes
    batch: bytes
    asked: Asked | None = None
    machine: Machine | None = None
    life: int = 0

    @property
    def is_lost(self) -> bool:
        return self.asked is None or self.machine is None or self.machine.life != self.life


class Producer:
    """An idempotent producer of one topic with one batch in flight, sent again until it is acknowledged."""

    def __init__(self, world: World, client: Client, topic: str, group: int, producer_id: int) -> None:
        self.group = group
        self.topic = topic
        self.acknowledged: dict[int, bytes] = {}  # offset -> value
        self.sequence = 0
        self.sent: Sent | None = None
        self._world = world
        self._client = client
        self._producer_id = producer_id

    def go_on(self, size_bytes: int) -> None:
        """Send the next batch, unless one is on its way."""
        self.settle()
        if self.sent is not None:
            return
        value = b"%s-%d" % (self.topic.encode(), self.sequence)
        batch = make_batch(
            value + bytes(size_bytes),
            timestamps=(self._world.now_ms,),
            producer_id=self._producer_id,
            epoch=0,
            sequence=self.sequence,
        )
        self.sent = Sent(value, batch)
        self.sequence += 1
        self.settle()

    def settle(self) -> None:
        """Take the answer, or send again."""
        sent = self.sent
        if sent is None:
            return
        if sent.asked is not None and sent.asked.is_answered:
            answer = produced(sent.asked)
            if answer.error_code == ErrorCode.NONE:
                self.acknowledged[answer.base_offset] = sent.value
                self.sent = None
                return
            assert answer.error_code in _RETRIED, answer
            sent.asked = None
        leader = self._world.leader_of(self.group)
        if sent.is_lost and leader is not None and self.group in leader.node.replicas.by_group:
            sent.asked = self._client.send_batch(sent.batch, to=leader, topic=self.topic)
            sent.machine, sent.life = leader, leader.life


class Swarm:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.world = world = World(recent_bytes_max=random.choice((1_024, 1_000_000)))
        for machine in world.machines.values():
            machine.disk.log.flushes_per_file = random.choice((2, 5, 16))
        self.client = Client(world)
        world.run_until(world.is_serving)
        self.producers: list[Producer] = []
        for number, topic in enumerate(TOPICS):
            placed = [random.sample(BROKERS, len(BROKERS))]
            (group,) = self.client.create_topic(topic, assignments=placed, configs={"segment.bytes": "16384"})
            self.producers.append(Producer(world, self.client, topic, group, 7 + number))
        self.unsound: int | None = None  # the broker that lost something
        self._topic_count = 0
        self._faults: list[Callable[[], None]] = [
            *[self._start] * 3,
            *[self._heal] * 3,
            *[self._release] * 2,
            *[self._let_pass] * 2,
            self._kill,
            self._kill_all,
            self._isolate,
            self._hold,
            self._damage,
            self._lose_disk,
            self._tear,
            self._drop_records,
            self._transfer,
            self._churn_topics,
        ]

    def run(self, step_count: int) -> None:
        random = self.random
        for _ in range(step_count):
            for _ in range(random.randrange(1, 12)):
                random.choice(self.producers).go_on(random.choice((1, 1_500)))
                self.world.run(random.randrange(1, 15))
            random.choice(self._faults)()
            self._look_whether_whole()
        self._end_faults()
        self._check()

    # -- faults

    def _some(self) -> Machine | None:
        running = self.world.running
        return self.random.choice(running) if running else None

    def _start(self) -> None:
        stopped = [broker_id for broker_id in BROKERS if not self.world[broker_id].is_running]
        if stopped:
            self.world.start(self.random.choice(stopped))

    def _tear(self) -> None:
        """A power cut: the last flush is cut off."""
        stopped = [broker_id for broker_id in BROKERS if not self.world[broker_id].is_running]
        if stopped and self.unsound is None:
            self.unsound = self.random.choice(stopped)
            self.world.start(self.unsound, is_torn=True)

    def _kill(self) -> None:
        machine = self._some()
        if machine is not None:
            self.world.crash(machine.broker_id, keeps_flush=self.random.random() < 0.5)

    def _kill_all(self) -> None:
        for machine in self.world.running:
            self.world.crash(machine.broker_id, keeps_flush=self.random.random() < 0.5)
        for broker_id in BROKERS:
            self.world.start(broker_id)

    def _isolate(self) -> None:
        self.world.isolate(self.random.choice(BROKERS))

    def _heal(self) -> None:
        self.world.heal()

    def _hold(self) -> None:
        machine = self._some()
        if machine is not None:
            setattr(machine, self.random.choice(("holds_flushes", "holds_jobs", "holds_reads")), True)

    def _release(self) -> None:
        for machine in self.world.running:
            machine.release()

    def _damage(self) -> None:
        machine = self._some()
        group = self.random.choice(self.producers).group
        if self.unsound is None and machine is not None and group in machine.node.replicas.by_group:
            self.unsound = machine.broker_id
            machine.damage(group)

    def _lose_disk(self) -> None:
        if self.unsound is None and len(self.world.running) == len(BROKERS):
            self.unsound = self.random.choice(BROKERS)
            self.world.wipe(self.unsound, replace=True)
            self.world.start(self.unsound)

    def _drop_records(self) -> None:
        producer = self.random.choice(self.producers)
        leader = self.world.leader_of(producer.group)
        if leader is not None and producer.group in leader.node.replicas.by_group:
            end = leader.replica(producer.group).high_watermark
            self.client.send_delete_records(self.random.randint(0, end), to=leader, topic=producer.topic)

    def _transfer(self) -> None:
        leader = self.world.leader_of(self.random.choice(self.producers).group)
        heir = self._some()
        if leader is not None and heir is not None:
            for group in leader.node.host.groups.values():
                group.transfer(heir.member, self.world.now_ms)
            leader.wake()

    def _churn_topics(self) -> None:
        machine = self._some()
        if machine is None:
            return
        replicas = self.random.sample(BROKERS, self.random.randint(1, 3))
        self._topic_count += 1
        self.client.send_create_topic(f"x{self._topic_count}", at=machine.broker_id, assignments=[replicas])
        others = [name for name in machine.node.broker.cluster.topics if name not in TOPICS]
        if others:
            self.client.send_delete_topic(self.random.choice(others), at=machine.broker_id)

    def _let_pass(self) -> None:
        self.world.run(self.random.choice((1_500, CHECKPOINT_MS + 100)))

    # -- the end

    def _look_whether_whole(self) -> None:
        """The next broker may lose something once the last one has made up for what it lost."""
        members = {machine.member for machine in self.world.machines.values()}
        groups = [METADATA_GROUP, *(producer.group for producer in self.producers)]
        if len(self.world.running) == len(BROKERS) and all(
            machine.is_registered and all(_has(machine, group, members) for group in groups)
            for machine in self.world.running
        ):
            self.unsound = None

    def _end_faults(self) -> None:
        world = self.world
        world.heal()
        for broker_id in BROKERS:
            if not world[broker_id].is_running:
                world.start(broker_id)
            world[broker_id].release()
        for _ in range(HEALED_MS_MAX // RETRY_MS):
            for producer in self.producers:
                producer.settle()
            if all(producer.sent is None and world.is_even(producer.group) for producer in self.producers):
                break
            world.run(RETRY_MS)
        world.run(3 * CHECKPOINT_MS)
        self._look_whether_whole()

    def _check(self) -> None:
        """Everything acknowledged is there, once, in order, on brokers that are whole again."""
        assert self.unsound is None, self.unsound
        for producer in self.producers:
            assert producer.sent is None, producer.sent
            leader = self.world.lead(producer.group)
            start = leader.replica(producer.group).log_start_offset
            values = self.client.read_all(to=leader, topic=producer.topic, offset=start)
            found = {start + place: value.rstrip(b"\0") for place, value in enumerate(values)}
            for offset, value in producer.acknowledged.items():
                assert offset < start or found[offset] == value, (producer.topic, offset, value)
            numbers = [int(value.split(b"-")[1]) for value in found.values()]
            assert numbers == list(range(start, producer.sequence)), producer.topic
        for machine in self.world.running:
            log = machine.disk.log
            assert not machine.disk.problems(), machine.disk.problems()
            assert log.newest_file - log.oldest_file < LOG_FILES_MAX, (log.oldest_file, log.newest_file)


def _has(machine: Machine, number: int, members: set[int]) -> bool:
    """Whether the machine votes in the group with all the others, and has all that is committed. (A topic of
    one replica, whose disk was lost, is never whole again.)"""
    if number in machine.disk.damage_marks | machine.disk.doubt_marks:
        return False
    group: Group | None = machine.node.host.groups.get(number)
    if group is None or set(group.membership.voters) != members or group.membership.learners:
        return False
    return not group.damaged and group.durable_index == group.commit_index == group.last_index
