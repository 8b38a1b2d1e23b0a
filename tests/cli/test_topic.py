"""Topics are created, listed, described, grown and removed; what can surprise is said."""

import json

import pytest

from tests.cli.conftest import Command
from tests.fakes.cluster_doors import FakeCluster
from tidings.config.exits import Exit
from tidings.kafka.admin import CLUSTER_DEFAULT, End, Partition, Setting
from tidings.kafka.errors import Refused


def test_a_topic_is_created_as_the_cluster_likes(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("topic", "create", "news")

    assert (ended.code, ended.out, ended.err) == (0, "created news\n", "")
    assert cluster.asked == [("create", "news", CLUSTER_DEFAULT, CLUSTER_DEFAULT, {})]


def test_a_topic_is_created_as_it_is_asked_for(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings(
        *("topic", "create", "news", "--partitions", "6", "--replication", "3"),
        *("--config", "retention.ms=1000", "--config", "cleanup.policy=a=b", "--json"),
    )

    assert json.loads(ended.out) == {"topic": "news", "created": True}
    settings = {"retention.ms": "1000", "cleanup.policy": "a=b"}
    assert cluster.asked == [("create", "news", 6, 3, settings)]


@pytest.mark.parametrize(
    ("replication", "warning"),
    [
        ("2", "2 replicas stop when one of their brokers is lost, as 1 do"),
        ("4", "4 replicas survive the loss of 1, as 3 do"),
    ],
)
def test_an_even_number_of_replicas_is_taken_with_a_warning(
    tidings: Command, replication: str, warning: str
) -> None:
    ended = tidings("topic", "create", "news", "--replication", replication)

    assert ended.code == 0
    assert ended.err.startswith(f"warning: {warning}")


@pytest.mark.parametrize("text", ["retention.ms", "=1000"])
def test_a_setting_without_name_or_value_is_refused(
    tidings: Command, cluster: FakeCluster, text: str
) -> None:
    ended = tidings("topic", "create", "news", "--config", text)

    assert ended.code == Exit.USAGE
    assert cluster.asked == []


@pytest.mark.parametrize("flag", ["--partitions", "--replication"])
def test_none_of_something_cannot_be_created(tidings: Command, flag: str) -> None:
    assert tidings("topic", "create", "news", flag, "0").code == Exit.USAGE


def test_topics_are_listed_with_their_size(tidings: Command, cluster: FakeCluster) -> None:
    cluster.add_topic("news", 6)
    cluster.add_topic("a", 1)
    cluster.add_topic("__offsets", 1)

    ended = tidings("topic", "ls")

    assert ended.out.splitlines() == [
        "topic  partitions  replication",
        "a               1            3",
        "news            6            3",
    ]


def test_topics_of_the_cluster_itself_are_listed_on_demand(tidings: Command, cluster: FakeCluster) -> None:
    cluster.add_topic("__offsets", 2)

    ended = tidings("topic", "ls", "--all", "--json")

    assert json.loads(ended.out) == {"topics": [{"topic": "__offsets", "partitions": 2, "replication": 3}]}


def test_no_topics_are_no_lines(tidings: Command) -> None:
    assert tidings("topic", "ls").out == ""
    assert json.loads(tidings("topic", "ls", "--json").out) == {"topics": []}


@pytest.fixture
def described(cluster: FakeCluster) -> FakeCluster:
    cluster.add_topic("news", 2, in_sync=(2, 3))
    first, second = cluster.topics["news"]
    cluster.topics["news"][1] = Partition(
        topic="news", number=1, leader=-1, replicas=second.replicas, in_sync=second.in_sync
    )
    cluster.end_by_partition[first] = End(offset=42, leader_epoch=5)
    cluster.settings_by_topic["news"] = [
        Setting(name="retention.ms", value="1000", is_default=False),
        Setting(name="segment.ms", value="2", is_default=True),
    ]
    return cluster


def test_a_topic_is_described_for_people(tidings: Command, described: FakeCluster) -> None:
    ended = tidings("topic", "describe", "news")

    assert ended.out.splitlines() == [
        "news  partitions 2  replication 3",
        "partition  leader  replicas  behind  end",
        "        0  2       1,2,3          1  42",
        "        1  none    1,2,3          1  ?",
        "",
        "retention.ms = 1000",
        "segment.ms = 2  (default)",
    ]


def test_a_topic_is_described_for_programs(tidings: Command, described: FakeCluster) -> None:
    ended = tidings("topic", "describe", "news", "--json")

    said = json.loads(ended.out)
    assert said["settings"] == {"retention.ms": "1000"}
    assert said["defaults"] == {"segment.ms": "2"}
    assert said["partitions"] == [
        {
            "partition": 0,
            "leader": 2,
            "leader_epoch": 5,
            "replicas": [1, 2, 3],
            "in_sync": [2, 3],
            "behind": [1],
            "end": 42,
        },
        {
            "partition": 1,
            "leader": -1,
            "leader_epoch": None,
            "replicas": [1, 2, 3],
            "in_sync": [2, 3],
            "behind": [1],
            "end": None,
        },
    ]


def test_a_topic_that_is_not_there_cannot_be_described(tidings: Command) -> None:
    ended = tidings("topic", "describe", "news")

    assert ended.code == Exit.FAILED
    assert "there is no topic news" in ended.err
    assert "tidings topic ls" in ended.err


def test_topics_are_removed_one_by_one(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("topic", "rm", "a", "b")

    assert ended.out == "removed a\nremoved b\n"
    assert cluster.asked == [("remove", "a"), ("remove", "b")]


def test_a_removal_without_names_is_refused(tidings: Command) -> None:
    assert tidings("topic", "rm").code == Exit.USAGE


def test_more_partitions_come_with_the_warning_that_keys_move(tidings: Command, cluster: FakeCluster) -> None:
    ended = tidings("topic", "add-partitions", "news", "--partitions", "12")

    assert ended.out == "news has 12 partitions\n"
    assert ended.err.startswith("warning: keys move")
    assert cluster.asked == [("grow", "news", 12)]


def test_how_many_partitions_can_stand_behind_the_name(tidings: Command, cluster: FakeCluster) -> None:
    tidings("topic", "add-partitions", "news", "12")

    assert cluster.asked == [("grow", "news", 12)]


@pytest.mark.parametrize("arguments", [[], ["12", "--partitions", "12"]])
def test_how_many_partitions_is_said_once(
    tidings: Command, cluster: FakeCluster, arguments: list[str]
) -> None:
    assert tidings("topic", "add-partitions", "news", *arguments).code == Exit.USAGE
    assert cluster.asked == []


def test_keys_that_did_not_move_are_not_warned_of(tidings: Command, cluster: FakeCluster) -> None:
    cluster.problem = Refused("there are 12 already", "INVALID_PARTITIONS")

    ended = tidings("topic", "add-partitions", "news", "2")

    assert ended.code == Exit.FAILED
    assert "keys move" not in ended.err


def test_settings_of_a_topic_are_shown_the_own_ones_first(tidings: Command, described: FakeCluster) -> None:
    ended = tidings("topic", "config", "news")

    assert ended.out == "retention.ms = 1000\nsegment.ms = 2  (default)\n"


def test_settings_of_a_topic_are_changed_and_removed(tidings: Command, described: FakeCluster) -> None:
    ended = tidings("topic", "config", "news", "a.b=1", "c=d=e", "--remove", "retention.ms")

    assert ended.out == "changed news\n"
    assert described.asked == [("change settings", "news", {"a.b": "1", "c": "d=e"}, ("retention.ms",))]


def test_a_change_of_a_setting_without_a_value_is_refused(tidings: Command, described: FakeCluster) -> None:
    ended = tidings("topic", "config", "news", "retention.ms")

    assert (ended.code, described.asked) == (Exit.USAGE, [])
    assert ended.err.startswith("error: retention.ms: expected K=V")


def test_programs_get_the_settings_as_they_are_after_a_change(
    tidings: Command, described: FakeCluster
) -> None:
    said = json.loads(tidings("topic", "config", "news", "retention.ms=1000", "--json").out)

    assert said == {"topic": "news", "settings": {"retention.ms": "1000"}, "defaults": {"segment.ms": "2"}}


@pytest.mark.parametrize(("alias", "command"), [("list", "ls"), ("delete", "rm"), ("alter", "config")])
def test_commands_go_by_the_names_of_other_programs_too(tidings: Command, alias: str, command: str) -> None:
    assert (
        tidings("topic", alias, "--help").out.split("\n\n")[1]
        == (tidings("topic", command, "--help").out.split("\n\n")[1])
    )
