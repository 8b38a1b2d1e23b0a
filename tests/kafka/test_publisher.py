"""Messages are published in order, each with one outcome, told in the order of the messages."""

import threading

import pytest

from tests.kafka.conftest import MockCluster
from tidings.kafka.errors import Refused, Unreachable
from tidings.kafka.publisher import Outcome, Publisher, Stored


class Outcomes:
    """What was told, in order, by whichever thread told it."""

    def __init__(self) -> None:
        self.told: list[tuple[int, Outcome]] = []
        self.paused = threading.Event()

    def add(self, number: int, outcome: Outcome) -> None:
        self.told.append((number, outcome))


def publisher(cluster: MockCluster, topic: str, outcomes: Outcomes, *, partition: int = -1) -> Publisher:
    return Publisher(
        cluster.bootstrap,
        topic,
        partition=partition,
        delivery_ms_max=5_000,
        on_outcome=outcomes.add,
        on_pause=outcomes.paused.set,
    )


def test_a_message_is_stored_with_partition_and_offset(mock_cluster: MockCluster, topic: str) -> None:
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes, partition=2)

    one.publish(b"hello", key=b"k", headers=[("a", b"b")])
    one.publish(b"", key=None, headers=[])
    one.close()

    assert outcomes.told == [
        (0, Stored(topic=topic, partition=2, offset=0)),
        (1, Stored(topic=topic, partition=2, offset=1)),
    ]
    assert [stored.message_id for _, stored in outcomes.told if isinstance(stored, Stored)] == ["2-0", "2-1"]


def test_outcomes_come_while_the_caller_waits_for_its_next_message(
    mock_cluster: MockCluster, topic: str
) -> None:
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes)

    one.publish(b"hello", key=None, headers=[])
    came = outcomes.paused.wait(20)
    one.close()

    assert came
    assert len(outcomes.told) == 1


def test_outcomes_keep_the_order_of_the_messages(mock_cluster: MockCluster, topic: str) -> None:
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes)

    for number in range(2_000):
        one.publish(b"x", key=str(number).encode(), headers=[])
    one.close()

    assert [number for number, _ in outcomes.told] == list(range(2_000))
    partitions = {outcome.partition for _, outcome in outcomes.told if isinstance(outcome, Stored)}
    assert partitions == {0, 1, 2, 3}


# What the murmur2 of the Java client makes of these keys; its low 31 bits, modulo the partitions, choose.
@pytest.mark.parametrize(
    ("key", "murmur2"), [(b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)]
)
def test_keys_hash_as_in_kafka_s_java_client(
    mock_cluster: MockCluster, topic: str, key: bytes, murmur2: int
) -> None:
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes)

    one.publish(b"x", key=key, headers=[])
    one.close()

    assert outcomes.told == [(0, Stored(topic=topic, partition=(murmur2 & 0x7FFF_FFFF) % 4, offset=0))]


def test_a_partition_that_is_not_there_is_an_outcome(mock_cluster: MockCluster, topic: str) -> None:
    mock_cluster.write(topic, b"x")
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes, partition=77)

    one.publish(b"hello", key=None, headers=[])
    one.close()

    [(number, outcome)] = outcomes.told
    assert number == 0
    assert isinstance(outcome, Refused)


def test_a_message_that_is_too_large_is_an_outcome(mock_cluster: MockCluster, topic: str) -> None:
    outcomes = Outcomes()
    one = publisher(mock_cluster, topic, outcomes)

    one.publish(bytes(17 * 1024 * 1024), key=None, headers=[])
    one.publish(b"small", key=None, headers=[])
    one.close()

    first, second = (outcome for _, outcome in outcomes.told)
    assert isinstance(first, Refused)
    assert first.name == "MSG_SIZE_TOO_LARGE"
    assert isinstance(second, Stored)


def test_without_a_broker_there_is_no_publisher() -> None:
    with pytest.raises(Unreachable):
        Publisher(
            "127.0.0.1:1",
            "news",
            delivery_ms_max=1_000,
            on_outcome=Outcomes().add,
            on_pause=lambda: None,
        )
