"""Status shows brokers, living or not, and partitions that are not whole."""

import json

import pytest

from tests.cli.conftest import Command
from tests.fakes.cluster_doors import FakeCluster
from tidings.config.exits import Exit
from tidings.kafka.admin import Broker, End, Partition


@pytest.fixture
def two_of_three(cluster: FakeCluster) -> FakeCluster:
    """Broker 1 is down; the topic `news` misses it."""
    cluster.brokers = (
        Broker(broker_id=2, kafka="127.0.0.1:9093", rack="east"),
        Broker(broker_id=3, kafka="127.0.0.1:9094", rack=""),
    )
    cluster.add_topic("news", 2, in_sync=(2, 3))
    return cluster


def test_a_broker_that_is_missed_is_down(tidings: Command, two_of_three: FakeCluster) -> None:
    ended = tidings("status")

    assert ended.out.splitlines() == [
        "cluster c1  controller 2",
        "1 topic, 2 partitions",
        "",
        "broker  kafka           rack  state  leaders  replicas",
        "     1  ?                     DOWN         0         2",
        "     2  127.0.0.1:9093  east  up           2         2",
        "     3  127.0.0.1:9094        up           0         2",
        "",
        "2 partitions without all replicas in sync:",
        "topic  partition  leader  behind",
        "news           0       2       1",
        "news           1       2       1",
    ]


def test_a_broker_that_is_named_and_does_not_answer_is_down(tidings: Command, cluster: FakeCluster) -> None:
    cluster.brokers = (
        Broker(broker_id=1, kafka="127.0.0.1:9092", rack="", is_up=False),
        Broker(broker_id=2, kafka="127.0.0.1:9093", rack=""),
    )

    ended = tidings("status")

    assert "127.0.0.1:9092        DOWN" in ended.out
    assert (ended.code, ended.err) == (Exit.FAILED, "warning: broker 1 down\n")


def test_a_partition_without_a_leader_is_a_failure(tidings: Command, cluster: FakeCluster) -> None:
    cluster.brokers = tuple(Broker(broker_id=number, kafka="h:1", rack="") for number in (1, 2, 3))
    cluster.topics["news"] = [Partition(topic="news", number=0, leader=-1, replicas=(1, 2, 3), in_sync=())]

    ended = tidings("status", "--json")

    assert (ended.code, ended.err) == (Exit.FAILED, "warning: 1 partition without a leader\n")


def test_a_whole_cluster_says_so(tidings: Command, cluster: FakeCluster) -> None:
    cluster.brokers = tuple(
        Broker(broker_id=number, kafka=f"127.0.0.1:909{number}", rack="") for number in (1, 2, 3)
    )
    cluster.add_topic("news", 1)

    ended = tidings("status")

    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "all replicas are in sync"


def test_programs_get_every_partition_with_its_epoch(tidings: Command, two_of_three: FakeCluster) -> None:
    first, _ = two_of_three.topics["news"]
    two_of_three.end_by_partition[first] = End(offset=7, leader_epoch=4)

    said = json.loads(tidings("status", "--json").out)

    assert said["controller"] == 2
    assert [(each["id"], each["up"], each["leaders"], each["replicas"]) for each in said["brokers"]] == [
        (1, False, 0, 2),
        (2, True, 2, 2),
        (3, True, 0, 2),
    ]
    assert [(each["leader"], each["leader_epoch"], each["end"]) for each in said["partitions"]] == [
        (2, 4, 7),
        (2, None, None),
    ]
    assert (said["partitions_behind"], said["partitions_without_leader"]) == (2, 0)


def test_a_cluster_without_topics_is_whole(tidings: Command, cluster: FakeCluster) -> None:
    cluster.brokers = (Broker(broker_id=1, kafka="127.0.0.1:9092", rack=""),)

    assert "0 topics, 0 partitions" in tidings("status").out
