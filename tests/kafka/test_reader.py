"""A topic is read from a position on, to its end or beyond, without a group."""

from collections.abc import Callable
from itertools import islice

import pytest

from tests.kafka.conftest import MockCluster
from tidings.kafka.errors import Refused, Unreachable
from tidings.kafka.positions import AtOffset, Edge, Last, Position
from tidings.kafka.reader import Reader, Received

Closing = Callable[[Callable[[], None]], None]


@pytest.fixture
def filled(mock_cluster: MockCluster, topic: str) -> str:
    """Six messages: even ones in partition 0, odd ones in partition 1, each a second after the last."""
    for number in range(6):
        mock_cluster.write(
            topic, str(number).encode(), partition=number % 2, timestamp_ms=1_700_000_000_000 + 1_000 * number
        )
    return topic


def values(messages: list[Received]) -> list[bytes | None]:
    return [message.value for message in messages]


def read(
    cluster: MockCluster, topic: str, position: Position, *, partition: int | None = None
) -> list[Received]:
    reader = Reader(cluster.bootstrap, topic, partition=partition)
    try:
        return list(reader.read(position, follow=False, on_idle=lambda: None))
    finally:
        reader.close()


def test_from_the_earliest_everything_is_read(mock_cluster: MockCluster, filled: str) -> None:
    messages = read(mock_cluster, filled, Edge.EARLIEST)

    assert sorted(value or b"" for value in values(messages)) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [message.offset for message in messages if message.partition == 1] == [0, 1, 2]


def test_from_the_latest_nothing_that_is_there_is_read(mock_cluster: MockCluster, filled: str) -> None:
    assert read(mock_cluster, filled, Edge.LATEST) == []


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, [b"5"]), (3, [b"3", b"4", b"5"]), (100, [b"0", b"1", b"2", b"3", b"4", b"5"])],
)
def test_the_last_ones_are_those_of_the_topic_in_order(
    mock_cluster: MockCluster, filled: str, count: int, expected: list[bytes]
) -> None:
    assert values(read(mock_cluster, filled, Last(count))) == expected


def test_the_last_ones_of_a_partition_keep_its_order_though_times_go_back(
    mock_cluster: MockCluster, topic: str
) -> None:
    for value, timestamp_ms in ((b"a", 5_000), (b"b", 9_000), (b"c", 1_000)):
        mock_cluster.write(topic, value, timestamp_ms=1_700_000_000_000 + timestamp_ms)

    assert values(read(mock_cluster, topic, Last(2))) == [b"b", b"c"]


def test_from_an_offset_every_partition_begins_there(mock_cluster: MockCluster, filled: str) -> None:
    messages = read(mock_cluster, filled, AtOffset(2))

    assert sorted((message.partition, message.offset) for message in messages) == [(0, 2), (1, 2)]


def test_an_offset_behind_the_end_is_the_end(mock_cluster: MockCluster, filled: str) -> None:
    assert read(mock_cluster, filled, AtOffset(1_000)) == []


def test_an_offset_behind_the_end_is_told_with_the_end(
    mock_cluster: MockCluster, filled: str, closing: Closing
) -> None:
    reader = Reader(mock_cluster.bootstrap, filled)
    closing(reader.close)
    ends: list[int] = []

    list(reader.read(AtOffset(1_000), follow=False, on_idle=lambda: None, on_beyond=ends.append))

    assert ends == [3]


def test_one_partition_alone_can_be_read(mock_cluster: MockCluster, filled: str) -> None:
    assert values(read(mock_cluster, filled, Edge.EARLIEST, partition=1)) == [b"1", b"3", b"5"]


def test_a_reader_that_follows_gets_what_is_published_later(
    mock_cluster: MockCluster, filled: str, closing: Closing
) -> None:
    reader = Reader(mock_cluster.bootstrap, filled)
    closing(reader.close)
    later = iter([b"6", b"7"])

    def publish_one_more() -> None:
        for value in islice(later, 1):
            mock_cluster.write(filled, value)

    received = reader.read(Last(1), follow=True, on_idle=publish_one_more)

    assert values(list(islice(received, 3))) == [b"5", b"6", b"7"]


def test_a_message_comes_with_all_that_it_has(mock_cluster: MockCluster, topic: str) -> None:
    mock_cluster.write(topic, b"hello", partition=3, timestamp_ms=1_700_000_000_000)

    [message] = read(mock_cluster, topic, Edge.EARLIEST)

    assert message == Received(
        topic=topic,
        partition=3,
        offset=0,
        timestamp_ms=1_700_000_000_000,
        key=None,
        value=b"hello",
        headers=(),
    )


def test_a_partition_that_is_not_there_is_refused(mock_cluster: MockCluster, filled: str) -> None:
    with pytest.raises(Refused, match="has no partition 9"):
        read(mock_cluster, filled, Edge.EARLIEST, partition=9)


def test_a_topic_that_is_not_there_is_refused(mock_cluster: MockCluster, topic: str) -> None:
    with pytest.raises(Refused, match="there is no topic"):
        read(mock_cluster, topic, Edge.EARLIEST)


def test_without_a_broker_there_is_no_reader() -> None:
    with pytest.raises(Unreachable):
        Reader("127.0.0.1:1", "news")
