"""One idempotent producer while leadership comes and goes: each of its batches stands in the log once.

The producer behaves as real ones do: at most five batches in flight, sent again in order after every error.
Between its requests anything happens that may: commits, elections that cut what was not committed, restarts.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.fakes.world import Asked, World, make_batch
from tidings.broker.producers import BATCHES_REMEMBERED
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidings.protocol.records import read_header

BATCH_COUNT = 60
STEPS_MAX = 5_000


class Producer:
    """Batches of one or two records, numbered as idempotence wants."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._next_sequence = 0
        self._in_flight: list[tuple[int, bytes, Asked]] = []
        self.offset_of: dict[int, int] = {}  # what was acknowledged, by base sequence

    @property
    def is_done(self) -> bool:
        return len(self.offset_of) == BATCH_COUNT

    def step(self) -> None:
        """Take answers; after an error send all in flight again, else perhaps one more."""
        failed = False
        waiting = []
        for sequence, batch, asked in self._in_flight:
            if not asked.is_answered:
                waiting.append((sequence, batch, asked))
                continue
            answer = asked.answer(ProduceResponse).responses[0].partition_responses[0]
            if answer.error_code == ErrorCode.NONE:
                self.offset_of[sequence] = answer.base_offset
            else:
                assert answer.error_code in (
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    ErrorCode.REQUEST_TIMED_OUT,
                ), answer
                failed = True
                waiting.append((sequence, batch, asked))
        self._in_flight = waiting
        if failed or (waiting and self._random.random() < 0.1):
            self._in_flight = [(sequence, batch, self._send(batch)) for sequence, batch, _ in waiting]
        elif len(waiting) < BATCHES_REMEMBERED and len(self.offset_of) + len(waiting) < BATCH_COUNT:
            self._send_next()

    def _send_next(self) -> None:
        sequence = self._next_sequence
        values = [b"x"] * self._random.choice([1, 2])
        batch = make_batch(*values, producer_id=7, epoch=0, sequence=sequence)
        self._next_sequence += len(values)
        self._in_flight.append((sequence, batch, self._send(batch)))

    def _send(self, batch: bytes) -> Asked:
        part = PartitionProduceData(index=0, records=memoryview(batch))
        topic = TopicProduceData(name="t", partition_data=[part])
        body = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
        return self._world.send(ApiKey.PRODUCE, 9, body)


class Trouble:
    """What happens to the partition meanwhile."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._epoch = 1
        self._group = world.create_topic("t")[0].group

    def step(self) -> None:
        drawn = self._random.random()
        if drawn < 0.5:
            self._commit_some()
        elif drawn < 0.6:
            self._world.timers.advance(self._random.choice([1, 2_000]))
        elif drawn < 0.7:
            self._elect(loses_tail=self._random.random() < 0.5)
        elif drawn < 0.75:
            self._restart()

    def finish(self) -> None:
        self._world.commit(self._group)

    def _commit_some(self) -> None:
        log = self._world.logs[self._group]
        ends = [read_header(batch).next_offset for batch in log.batches]
        passed = [end for end in ends if end > log.high_watermark]
        if passed:
            self._world.commit(self._group, self._random.choice(passed))

    def _elect(self, *, loses_tail: bool) -> None:
        """Another leader for a moment, who may have cut what was not committed; then this broker again."""
        log = self._world.logs[self._group]
        self._epoch += 2
        self._world.follow(self._group, 2, epoch=self._epoch - 1)
        if loses_tail:
            log.batches = [
                batch for batch in log.batches if read_header(batch).base_offset < log.high_watermark
            ]
            log.end_offset = log.high_watermark
        self._world.lead(self._group, epoch=self._epoch)

    def _restart(self) -> None:
        """The partition begins anew from its saved state, and hears some of the commits again."""
        world = self._world
        partition = world.broker.partition(self._group)
        assert partition is not None
        state = partition.state()
        world.broker.close_partition(self._group, world.now_ms)
        log = world.logs[self._group]
        restarted = world.broker.open_partition(self._group, log)
        restarted.restore(state)
        for batch in log.batches[-8:]:
            header = read_header(batch)
            if header.base_offset < log.high_watermark:
                restarted.committed(header.base_offset, batch, world.now_ms)
        self._epoch += 1
        world.lead(self._group, epoch=self._epoch)


@pytest.mark.parametrize("seed", range(40))
def test_every_batch_stands_in_the_log_once_and_where_its_producer_was_told(seed: int) -> None:
    random = Random(seed)
    world = World()
    trouble = Trouble(world, random)
    producer = Producer(world, random)

    for _ in range(STEPS_MAX):
        producer.step()
        trouble.step()
        if producer.is_done:
            break
    trouble.finish()

    (log,) = world.logs.values()
    headers = [read_header(batch) for batch in log.batches]
    stands = {header.base_sequence: header.base_offset for header in headers}
    assert producer.is_done
    assert len(headers) == len(stands) == BATCH_COUNT
    assert [header.base_sequence for header in headers] == sorted(stands)
    assert stands == producer.offset_of
