"""Metadata (key 3), versions 0-13: the brokers, the topics, and who leads which partition.

The leader told is the newest this broker has heard of, whether or not it holds the partition; while there is
none, or it does not answer, the partition has LEADER_NOT_AVAILABLE. An unknown topic is created if the client
asks for that (by default it does) and `auto_create_topics` allows it; the answer then waits a moment, so that
the client need not ask again. Answers are kept until the cluster changes: they must not be changed by who
gets them.
Left out: access lists (whoever asks for authorized operations is told all of them), listeners other than the
one.
The one rule: an answer is made of what this broker knows; only whether the leaders asked for still live is
made sure of first (port Freshness), for a bounded time. Tests: tests/broker/handlers/test_metadata.py
"""

from __future__ import annotations

from collections.abc import Collection

from tidings.broker.changes import Change, make_changes
from tidings.broker.cluster import PartitionRow, TopicRow
from tidings.broker.outcome import Outcome
from tidings.broker.ports import NO_EPOCH, NO_LEADER
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.broker.topic_creation import (
    USE_DEFAULT,
    PartitionRoom,
    TopicRefused,
    check_name,
    plan_topic,
)
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import CreatableTopic
from tidings.protocol.messages.metadata import (
    AUTHORIZED_OPERATIONS_UNKNOWN,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidings.protocol.schema import ZERO_UUID, Message

# Bit sets of what Kafka lets one do with a topic and with the cluster (its AclOperation numbers).
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
# A client asks again after 100 ms or more if its topic is not there; a creation takes some 20 ms.
CREATION_WAIT_MS = 1_000
# An election after a killed broker takes some 30 ms; a client that is told no leader asks again after 100 ms
# or a second.
FRESHNESS_WAIT_MS = 250
# Clients ask for all topics or for the few they use; a question of more names would be kept for nothing, and
# a malicious one would fill the memory.
KEPT_TOPICS_MAX = 100
# By one request; whoever wants more asks again, and is told of those that are there.
CREATED_TOPICS_MAX = 100
_EMPTY_MEANS_ALL_UNTIL = 0
_NULL_NAME_SINCE = 12


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, MetadataRequest), body
    if body.topics is not None:  # named twice, a topic is still described once
        body.topics = list({(topic.topic_id, topic.name): topic for topic in body.topics}.values())
    missing = _topics_to_create(site, body)
    if not missing:
        return _answer_freshly(site, request, body, now_ms + FRESHNESS_WAIT_MS)

    def tell(outcomes: list[Outcome]) -> None:
        if all(outcome.code is ErrorCode.NONE for outcome in outcomes):
            request.answer(_answer(site, request.api_version, body))
            return
        # Another request may have been quicker, and what it created may have no leaders yet: a client that is
        # told so asks again after a second.
        answer = _answer_freshly(site, request, body, now_ms + CREATION_WAIT_MS)
        if answer is not None:
            request.answer(answer)

    make_changes(site, missing, now_ms=now_ms, timeout_ms=CREATION_WAIT_MS, then=tell)
    return None


def _answer_freshly(site: Site, request: Request, body: MetadataRequest, at_ms_max: int) -> Message | None:
    """Who asks for certain topics has often just lost their leader: the answer waits until leaders are known
    to live."""
    rows = [_row_asked(site, asked) for asked in body.topics or ()]
    groups = [partition.group for row in rows if row is not None for partition in row.partitions]
    if not groups:
        return _answer(site, request.api_version, body)

    def tell() -> None:
        request.answer(_answer(site, request.api_version, body))

    site.freshness.when_fresh(groups, at_ms_max, tell)
    return None


def _row_asked(site: Site, asked: MetadataRequestTopic) -> TopicRow | None:
    if asked.topic_id != ZERO_UUID:
        return site.cluster.topics_by_id.get(asked.topic_id)
    return site.cluster.topics.get(asked.name or "")


def _topics_to_create(site: Site, body: MetadataRequest) -> list[Change]:
    if not (body.allow_auto_topic_creation and site.config.auto_create_topics):
        return []
    names = {
        topic.name for topic in body.topics or () if topic.name and topic.name not in site.cluster.topics
    }
    good = [name for name in sorted(names) if why_unknown(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    changes = []
    room = PartitionRoom(site)
    for name in good[:CREATED_TOPICS_MAX]:
        asked = CreatableTopic(name=name, num_partitions=USE_DEFAULT, replication_factor=USE_DEFAULT)
        try:
            changes.append(Change(command=plan_topic(site, asked, room)))
        except TopicRefused:
            continue  # the answer says that there is no such topic
    return changes


def _answer(site: Site, version: int, body: MetadataRequest) -> MetadataResponse:
    """The kept answer, or a new one."""
    cluster_version = (site.cluster.version, site.liveness.version)
    asked = None if body.topics is None else tuple((topic.topic_id, topic.name) for topic in body.topics)
    question = (
        version,
        asked,
        body.include_cluster_authorized_operations,
        body.include_topic_authorized_operations,
    )
    kept = site.answers.get(cluster_version, question)
    if kept is None:
        kept = _make_answer(site, version, body)
        if asked is None or len(asked) <= KEPT_TOPICS_MAX:
            site.answers.put(cluster_version, question, kept)
    assert isinstance(kept, MetadataResponse), kept
    return kept


def _make_answer(site: Site, version: int, body: MetadataRequest) -> MetadataResponse:
    rows = site.listed_brokers()
    alive = site.liveness.alive()
    asks_for_all = body.topics is None or (version <= _EMPTY_MEANS_ALL_UNTIL and not body.topics)
    if asks_for_all:
        topics = [_describe_topic(site, row, alive) for row in site.cluster.topics.values()]
    else:
        topics = [_describe_asked(site, version, asked, alive) for asked in body.topics or ()]
    if body.include_topic_authorized_operations:
        for topic in topics:
            if topic.error_code == ErrorCode.NONE:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    operations = (
        CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else AUTHORIZED_OPERATIONS_UNKNOWN
    )
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=row.broker_id, host=row.host, port=row.port, rack=row.rack)
            for row in rows
        ],
        cluster_id=site.cluster.cluster_id,
        controller_id=site.controller_id(),
        topics=topics,
        cluster_authorized_operations=operations,
    )


def _describe_asked(
    site: Site, version: int, asked: MetadataRequestTopic, alive: Collection[int]
) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_UUID:
        row = site.cluster.topics_by_id.get(asked.topic_id)
        if row is None:
            name = None if version >= _NULL_NAME_SINCE else ""
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=name, topic_id=asked.topic_id
            )
        return _describe_topic(site, row, alive)
    row = site.cluster.topics.get(asked.name or "")
    if row is not None:
        return _describe_topic(site, row, alive)
    return MetadataResponseTopic(error_code=why_unknown(asked.name or ""), name=asked.name or "")


def why_unknown(name: str) -> ErrorCode:
    try:
        check_name(name)
    except TopicRefused as refused:
        return refused.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _describe_topic(site: Site, row: TopicRow, alive: Collection[int]) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=row.name,
        topic_id=row.topic_id,
        partitions=[describe_partition(site, partition, alive) for partition in row.partitions],
    )


def describe_partition(site: Site, row: PartitionRow, alive: Collection[int]) -> MetadataResponsePartition:
    """A leader that does not answer is none: clients that know its address would only wait for it."""
    liveness = site.liveness
    leader = liveness.leader_of(row.group)
    has_leader = leader.broker_id in alive
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=row.index,
        leader_id=leader.broker_id if has_leader else NO_LEADER,
        leader_epoch=leader.epoch if has_leader else NO_EPOCH,
        replica_nodes=list(row.replicas),
        isr_nodes=liveness.in_sync(row.group, row.replicas),
        offline_replicas=[broker_id for broker_id in row.replicas if broker_id not in alive],
    )
