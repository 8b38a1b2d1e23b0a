"""Topics and brokers as the Kafka protocol tells them, of real brokers: ours, or Apache Kafka's if named."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.clients.cluster import Cluster
from tidings.kafka.admin import CLUSTER_DEFAULT, ClusterAdmin, Partition
from tidings.kafka.errors import Refused, Unreachable
from tidings.kafka.publisher import Publisher


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> ClusterAdmin:
    return ClusterAdmin(cluster.bootstrap)


@pytest.fixture
def name() -> str:
    return f"admin-{uuid4().hex[:12]}"


@pytest.fixture
def created(admin: ClusterAdmin, name: str) -> str:
    admin.create(name, partitions=3, replication=3, settings={"retention.ms": "3600000"})
    return name


def refusal(call: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value


def test_a_topic_that_was_created_is_there_with_leaders(admin: ClusterAdmin, created: str) -> None:
    partitions = admin.partitions(created)

    assert [each.number for each in partitions] == [0, 1, 2]
    assert all(each.leader in each.replicas for each in partitions)
    assert all(sorted(each.replicas) == sorted(each.in_sync) for each in partitions)
    assert all(each.behind == () for each in partitions)


def test_the_cluster_chooses_what_is_left_to_it(admin: ClusterAdmin, name: str) -> None:
    admin.create(name, partitions=CLUSTER_DEFAULT, replication=CLUSTER_DEFAULT, settings={})

    assert len(admin.partitions(name)) >= 1


def test_its_settings_are_told_apart_from_the_defaults(admin: ClusterAdmin, created: str) -> None:
    settings = {each.name: each for each in admin.settings(created)}

    assert (settings["retention.ms"].value, settings["retention.ms"].is_default) == ("3600000", False)
    assert settings["segment.ms"].is_default


def test_settings_are_changed_one_by_one_and_go_back_to_the_defaults(
    admin: ClusterAdmin, created: str
) -> None:
    admin.change_settings(created, {"segment.ms": "60000", "retention.bytes": "1000000"}, ())
    admin.change_settings(created, {}, ["retention.bytes"])

    own = {each.name: each.value for each in admin.settings(created) if not each.is_default}
    assert own == {"retention.ms": "3600000", "segment.ms": "60000"}


def test_a_setting_that_there_is_not_is_refused(admin: ClusterAdmin, created: str) -> None:
    assert refusal(lambda: admin.change_settings(created, {"no.such": "1"}, ())).name == "INVALID_CONFIG"


def test_partitions_can_be_added(admin: ClusterAdmin, created: str) -> None:
    admin.grow(created, 5)

    assert len(admin.partitions(created)) == 5


def test_a_topic_that_was_removed_is_gone(admin: ClusterAdmin, created: str) -> None:
    admin.remove(created)

    assert created not in {each.topic for each in admin.partitions()}
    assert refusal(lambda: admin.partitions(created)).name == "UNKNOWN_TOPIC_OR_PART"


def test_asking_for_a_topic_does_not_create_it(admin: ClusterAdmin, name: str) -> None:
    for _ in range(2):
        assert refusal(lambda: admin.partitions(name)).name == "UNKNOWN_TOPIC_OR_PART"


def test_ends_come_with_the_epoch_of_the_leader(cluster: Cluster, admin: ClusterAdmin, created: str) -> None:
    publisher = Publisher(
        cluster.bootstrap,
        created,
        partition=1,
        delivery_ms_max=15_000,
        on_outcome=lambda number, outcome: None,
        on_pause=lambda: None,
    )
    publisher.publish(b"hello", key=None, headers=[])
    publisher.close()

    partitions = admin.partitions(created)
    ends = admin.ends(partitions)

    assert [ends[each].offset for each in partitions] == [0, 1, 0]
    assert ends[partitions[1]].leader_epoch >= 0


def test_a_partition_without_a_leader_has_no_end(admin: ClusterAdmin) -> None:
    headless = Partition(topic="none", number=0, leader=-1, replicas=(1,), in_sync=())

    assert admin.ends([headless]) == {}


def test_the_cluster_names_its_brokers_and_its_controller(cluster: Cluster, admin: ClusterAdmin) -> None:
    view = admin.cluster()

    assert sorted(each.kafka for each in view.brokers) == sorted(cluster.addresses)
    assert view.controller in {each.broker_id for each in view.brokers}
    assert view.cluster_id


def test_a_topic_that_exists_is_refused_by_name(admin: ClusterAdmin, created: str) -> None:
    refused = refusal(lambda: admin.create(created, partitions=1, replication=1, settings={}))

    assert refused.name == "TOPIC_ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("partitions", "replication", "settings", "error"),
    [
        (1, 99, {}, "INVALID_REPLICATION_FACTOR"),
        (1, 1, {"retention.msec": "1"}, "INVALID_CONFIG"),
        (1, 1, {"retention.ms": "soon"}, "INVALID_CONFIG"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    admin: ClusterAdmin, name: str, partitions: int, replication: int, settings: dict[str, str], error: str
) -> None:
    refused = refusal(
        lambda: admin.create(name, partitions=partitions, replication=replication, settings=settings)
    )

    assert refused.name == error
    assert name not in {each.topic for each in admin.partitions()}


def test_fewer_partitions_are_refused(admin: ClusterAdmin, created: str) -> None:
    assert refusal(lambda: admin.grow(created, 2)).name == "INVALID_PARTITIONS"


def test_removing_what_is_not_there_is_refused(admin: ClusterAdmin, name: str) -> None:
    assert refusal(lambda: admin.remove(name)).name == "UNKNOWN_TOPIC_OR_PART"


def test_without_a_broker_there_is_nobody_to_ask() -> None:
    with pytest.raises(Unreachable):
        ClusterAdmin("127.0.0.1:1")
