"""A broker with a world of fakes around it, for all that ports.py asks for, and requests as clients send."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from tests.fakes.calls import Calls
from tests.fakes.controller import FakeController
from tests.fakes.living import FakeFreshness, FakeLiveness, FakeOffload, FakeSettling
from tests.fakes.replica_log import FakeReplicaLog
from tests.fakes.timers import START_MS, FakeTimers
from tidings.broker.commands import Command, CreateTopic, FormCluster, RegisterBroker, encode_command
from tidings.broker.dispatch import Broker
from tidings.broker.outcome import Outcome
from tidings.broker.partition import Partition
from tidings.broker.ports import Leader
from tidings.broker.requests import Request
from tidings.broker.site import Ports
from tidings.config.options import Config
from tidings.protocol.apis import ApiKey
from tidings.protocol.codec import response_encoder
from tidings.protocol.record_codec import Record, encode_batch
from tidings.protocol.schema import Message

CLUSTER_ID = "cluster-of-the-tests"
OWN_ID = 1

M = TypeVar("M", bound=Message)


class Asked:
    """One request and what became of it."""

    def __init__(self, api_key: int, api_version: int, body: Message, room_bytes: int = 2**31 - 1) -> None:
        self.answers: list[Message] = []
        self.reserved_bytes: list[int] = []
        self.closed: list[str] = []
        self.request = Request(
            api_key=api_key,
            api_version=api_version,
            correlation_id=1,
            client_id="test",
            body=body,
            client_host="127.0.0.1",
            listener_host="127.0.0.1",
            listener_port=9092,
            answer=self.answers.append,
            close=self.closed.append,
            room=lambda: room_bytes,
            reserve=self.reserved_bytes.append,
        )

    @property
    def is_answered(self) -> bool:
        return bool(self.answers)

    def answer(self, kind: type[M]) -> M:
        """The one answer, which must be of this kind, and fit the version it was asked in."""
        assert len(self.answers) == 1, self.answers
        answer = self.answers[0]
        assert isinstance(answer, kind), answer
        response_encoder(self.request.api_key, self.request.api_version)(answer)
        return answer


class World:
    """Brokers 1 to `broker_count` are registered and alive; the one under test is number 1."""

    def __init__(self, *, config: Config | None = None, broker_count: int = 3) -> None:
        self.calls = Calls()
        self.timers = FakeTimers()
        self.liveness = FakeLiveness()
        self.settling = FakeSettling(self.calls)
        self.freshness = FakeFreshness(self.calls, self.timers)
        self.offload = FakeOffload(self.calls)
        self.controller = FakeController(self.calls, self._apply)
        self.config = config or Config(broker_id=OWN_ID)
        self.ports = Ports(
            timers=self.timers,
            controller=self.controller,
            liveness=self.liveness,
            settling=self.settling,
            freshness=self.freshness,
            offload=self.offload,
            random=Random(1),
        )
        self.broker = Broker(config=self.config, ports=self.ports)
        self.logs: dict[int, FakeReplicaLog] = {}
        self.answer_room_bytes = 2**31 - 1  # what connections leave for an answer
        self.apply(FormCluster(cluster_id=CLUSTER_ID))
        for broker_id in range(1, broker_count + 1):
            self.add_broker(broker_id)

    @property
    def now_ms(self) -> int:
        return self.timers.now_ms

    def apply(self, command: Command) -> Outcome:
        """A command of the metadata group, committed at once."""
        return self.controller.apply(encode_command(command))

    def add_broker(self, broker_id: int, *, rack: str | None = None) -> None:
        self.apply(
            RegisterBroker(
                broker_id=broker_id,
                member=1_000 + broker_id,
                directory=bytes([broker_id]) * 16,
                host=f"host{broker_id}",
                port=9_090 + broker_id,
                peer_host=f"host{broker_id}",
                peer_port=19_090 + broker_id,
                rack=rack,
            )
        )
        self.liveness.alive_ids.add(broker_id)
        self.liveness.changed()

    def create_topic(
        self, name: str, *, partition_count: int = 1, configs: dict[str, str] | None = None
    ) -> list[Partition]:
        """A topic on brokers 1, 2 and 3 that broker 1 leads in epoch 1; its partitions here."""
        outcome = self.apply(
            CreateTopic(
                name=name,
                topic_id=topic_id_of(name),
                partition_count=partition_count,
                replication_factor=3,
                assignments=((1, 2, 3),) * partition_count,
                configs=configs or {},
            )
        )
        return [self.lead(group) for group in outcome.groups]

    def lead(self, group: int, *, epoch: int = 1) -> Partition:
        """Broker 1 becomes the group's leader, with all that was there before committed."""
        partition = self.broker.partition(group)
        if partition is None:
            log = self.logs[group] = FakeReplicaLog(self.calls, broker_id=OWN_ID)
            partition = self.broker.open_partition(group, log)
        log = self.logs[group]
        log.lead(epoch)
        self.set_leader(group, OWN_ID, epoch)
        tail = [batch for batch in log.batches if int.from_bytes(batch[:8], "big") >= log.high_watermark]
        partition.became_leader(tail, self.now_ms)
        return partition

    def follow(self, group: int, leader_id: int, *, epoch: int) -> None:
        """Another broker becomes the group's leader."""
        self.logs[group].follow(leader_id, epoch)
        self.set_leader(group, leader_id, epoch)
        partition = self.broker.partition(group)
        assert partition is not None
        partition.lost_leadership(self.now_ms)

    def set_leader(self, group: int, broker_id: int, epoch: int) -> None:
        self.liveness.leaders[group] = Leader(broker_id=broker_id, epoch=epoch)
        self.liveness.changed()

    def commit(self, group: int, offset: int | None = None) -> None:
        """A majority has the log up to `offset`, or all of it."""
        partition = self.broker.partition(group)
        assert partition is not None
        for batch in self.logs[group].commit(offset):
            partition.committed(int.from_bytes(batch[:8], "big"), batch, self.now_ms)
        partition.advanced(self.now_ms)

    def fill(self, partition: Partition, *batches: bytes) -> None:
        """Committed batches, as if they had been produced one after the other."""
        log = self.logs[partition.group]
        for batch in batches:
            end = log.end_offset
            stamped = end.to_bytes(8, "big") + batch[8:12] + log.leader_epoch.to_bytes(4, "big") + batch[16:]
            log.append(stamped, int.from_bytes(batch[57:61], "big"), self.now_ms)
        self.commit(partition.group)

    def send(self, api_key: ApiKey, api_version: int, body: Message) -> Asked:
        """Hand a request in. What takes time has not happened yet: `settle` lets it."""
        asked = Asked(api_key, api_version, body, self.answer_room_bytes)
        answer = self.broker.handle(asked.request, self.now_ms)
        if answer is not None:
            asked.answers.append(answer)
        return asked

    def settle(self) -> None:
        self.calls.run()

    def ask(self, api_key: ApiKey, api_version: int, body: Message, kind: type[M]) -> M:
        """Hand a request in and let everything happen that it needs."""
        asked = self.send(api_key, api_version, body)
        self.settle()
        return asked.answer(kind)

    def _apply(self, command: bytes, index: int) -> Outcome:
        return self.broker.apply(command, index, self.now_ms, proposal=b"")


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b"-")[:16]


def make_batch(
    *values: bytes,
    timestamps: tuple[int, ...] = (),
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A batch as a producer sends it: one record per value."""
    times = timestamps or (START_MS,) * len(values)
    records = [
        Record(offset, timestamp, None, value)
        for offset, (value, timestamp) in enumerate(zip(values, times, strict=True))
    ]
    return encode_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
