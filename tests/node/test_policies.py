"""Tests of node/policies.py: what retention lets go, and that it is gone on every replica.

Voters and leaders: tests/node/test_replacement.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from tests.node.client import EARLIEST, LATEST, Client
from tests.node.machine import Machine
from tests.node.world import CHECKPOINT_MS, World
from tidings.config.options import Config
from tidings.config.topics import TopicSettings, settings_of
from tidings.node.jobs import SegmentFacts
from tidings.node.policies import log_start_by_retention
from tidings.node.replica import Replica
from tidings.protocol.errors import ErrorCode

NOW_MS = 1_000_000
DAY_MS = 24 * 60 * 60 * 1_000
RETENTION_CHECK_MS = 2_000
BATCH_BYTES = 2_000


@dataclass
class FakePartition:
    settings: TopicSettings


@dataclass
class FakeReplica:
    """As much of a replica as retention looks at."""

    segments: Sequence[SegmentFacts]
    log_start_offset: int
    high_watermark: int
    partition: FakePartition


def segment(base_offset: int, next_offset: int, *, size: int = 100, newest_ms: int = NOW_MS) -> SegmentFacts:
    return SegmentFacts(
        base_offset=base_offset, next_offset=next_offset, size_bytes=size, max_timestamp=newest_ms
    )


def log_start(
    segments: Sequence[SegmentFacts],
    *,
    log_start_offset: int = 0,
    high_watermark: int | None = None,
    **configs: str,
) -> int:
    """What retention decides; settings by Kafka's names, with underscores."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    end = segments[-1].next_offset if segments else 0
    replica = FakeReplica(
        segments=segments,
        log_start_offset=log_start_offset,
        high_watermark=end if high_watermark is None else high_watermark,
        partition=FakePartition(settings_of(Config(), {}, named)),
    )
    return log_start_by_retention(cast(Replica, replica), NOW_MS)


OLD_MS = NOW_MS - 10_000
THREE = (segment(0, 10, newest_ms=OLD_MS), segment(10, 20, newest_ms=OLD_MS + 8_000), segment(20, 30))


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    assert log_start(THREE, retention_ms="5000") == 10
    assert log_start(THREE, retention_ms="1000") == 20


def test_a_segment_that_is_exactly_as_old_as_allowed_stays() -> None:
    assert log_start(THREE, retention_ms="10000") == 0


def test_the_last_segment_goes_too_when_all_its_records_are_too_old() -> None:
    segments = (segment(0, 10, newest_ms=OLD_MS), segment(10, 20, newest_ms=OLD_MS))

    assert log_start(segments, retention_ms="5000") == 20


def test_an_old_segment_behind_a_young_one_stays() -> None:
    segments = (segment(0, 10), segment(10, 20, newest_ms=OLD_MS), segment(20, 30))

    assert log_start(segments, retention_ms="5000") == 0


def test_a_segment_whose_records_have_no_times_is_never_too_old() -> None:
    segments = (segment(0, 10, newest_ms=-1), segment(10, 20, newest_ms=OLD_MS))

    assert log_start(segments, retention_ms="5000") == 0
    assert log_start(segments, retention_ms="5000", retention_bytes="100") == 20


@pytest.mark.parametrize(
    ("retention_bytes", "expected"), [("300", 0), ("299", 0), ("200", 10), ("101", 10), ("100", 20)]
)
def test_segments_go_as_long_as_enough_bytes_stay(retention_bytes: str, expected: int) -> None:
    segments = (segment(0, 10), segment(10, 20), segment(20, 30))

    assert log_start(segments, retention_bytes=retention_bytes, retention_ms="-1") == expected


def test_the_last_segment_never_goes_because_of_its_size() -> None:
    segments = (segment(0, 10, size=1_000_000), segment(10, 20, size=1_000_000))

    assert log_start(segments, retention_bytes="0", retention_ms="-1") == 10


def test_bytes_below_the_log_start_are_not_counted() -> None:
    segments = (segment(0, 10, size=500), segment(10, 20), segment(20, 30))

    found = log_start(segments, log_start_offset=10, retention_bytes="200", retention_ms="-1")

    assert found == 10


def test_without_bounds_everything_stays() -> None:
    assert log_start(THREE, retention_ms="-1", retention_bytes="-1") == 0


def test_a_compacted_topic_keeps_everything() -> None:
    assert log_start(THREE, retention_ms="1000", cleanup_policy="compact") == 0


def test_nothing_above_the_high_watermark_goes() -> None:
    segments = (segment(0, 10, newest_ms=OLD_MS), segment(10, 20, newest_ms=OLD_MS))

    assert log_start(segments, high_watermark=13, retention_ms="5000") == 13


def test_an_empty_log_stays_where_it_is() -> None:
    assert log_start((), log_start_offset=7, high_watermark=7, retention_ms="0") == 7


# -- with whole brokers


@pytest.fixture
def world() -> World:
    """Three brokers that serve, and look for what is to go every two seconds."""
    world = World(retention_check_ms=RETENTION_CHECK_MS)
    world.run_until(world.is_serving)
    return world


def sizes_on_disk(world: World, group: int) -> list[int]:
    """Bytes of batches that each broker keeps."""
    return [
        sum(facts.size_bytes for facts in machine.disk.groups[group].facts()) for machine in world.running
    ]


def fill(client: Client, group: int, count: int) -> None:
    for _ in range(count):
        client.produce(bytes(BATCH_BYTES), group=group)


def log_starts(world: World, group: int) -> set[int]:
    return {machine.replica(group).log_start_offset for machine in world.running}


def let_go(world: World) -> None:
    """Long enough for a checkpoint, for retention, and for one more checkpoint."""
    world.run(2 * (CHECKPOINT_MS + RETENTION_CHECK_MS) + 1_000)


def test_retention_by_size_holds_on_every_replica(world: World, client: Client) -> None:
    client = Client(world)
    configs = {"segment.bytes": "16384", "retention.bytes": "40000", "retention.ms": "-1"}
    (group,) = client.create_topic(configs=configs)
    fill(client, group, 60)
    let_go(world)

    (start,) = log_starts(world, group)
    assert start > 30
    assert max(sizes_on_disk(world, group)) <= 40_000 + 16_384
    assert len(client.read_all(to=world.lead(group), offset=start)) == 60 - start
    assert client.fetch(start - 1, to=world.lead(group)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_by_time_empties_a_quiet_topic_on_every_replica(world: World) -> None:
    client = Client(world)
    (group,) = client.create_topic(configs={"segment.bytes": "16384", "retention.ms": "5000"})
    fill(client, group, 20)
    let_go(world)
    let_go(world)
    leader = world.lead(group)

    assert log_starts(world, group) == {20}
    assert sizes_on_disk(world, group) == [0, 0, 0]
    assert client.offset_of(EARLIEST, to=leader).offset == client.offset_of(LATEST, to=leader).offset == 20
    assert client.produce(b"next", group=group) == 20
    assert client.read_all(to=leader, offset=20) == [b"next"]


def test_a_topic_of_which_everything_has_gone_survives_restarts_and_changes_of_leader(world: World) -> None:
    client = Client(world)
    (group,) = client.create_topic(configs={"segment.bytes": "16384", "retention.ms": "5000"})
    fill(client, group, 20)
    let_go(world)
    let_go(world)

    for broker_id in (1, 2, 3):
        world.restart(broker_id)
        world.run_until(lambda: world.is_led(group) and world.is_even(group))

    assert log_starts(world, group) == {20}
    assert client.produce(b"next", group=group) == 20


def test_segments_that_were_not_checkpointed_when_they_were_to_go_go_later(world: World) -> None:
    client = Client(world)
    (group,) = client.create_topic(configs={"segment.bytes": "16384", "retention.ms": "-1"})
    fill(client, group, 20)

    client.delete_records(20, group=group)
    world.run(50)
    sizes_at_first = sizes_on_disk(world, group)
    world.run(2 * CHECKPOINT_MS)

    assert min(sizes_at_first) > 0
    assert sizes_on_disk(world, group) == [0, 0, 0]


def test_a_stopped_follower_follows_again_after_all_that_it_lacked_is_gone(world: World) -> None:
    client = Client(world)
    (group,) = client.create_topic(configs={"segment.bytes": "16384", "retention.ms": "5000"})
    leader = world.lead(group)
    stopped: Machine = next(machine for machine in world.running if machine is not leader)
    fill(client, group, 5)
    world.crash(stopped.broker_id)
    fill(client, group, 20)
    let_go(world)
    let_go(world)

    world.start(stopped.broker_id)
    world.run_until(lambda: world.is_even(group))

    assert log_starts(world, group) == {25}
