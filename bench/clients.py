"""Clients: the stock client as every measurement uses it, and the questions asked of a cluster through it.

The one rule: the settings that make measurements comparable stand here once: `acks=all`, idempotence, three
replicas; everything else is librdkafka's default unless a load says so. Must not know: what is measured, or
which system answers. Tests: tests/bench/test_clients.py.
"""

from __future__ import annotations

import uuid
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    NewTopic,
    OffsetSpec,
)

ANSWER_S_MAX: Final = 60.0
"""How long anything may take before a measurement gives up: enough for a cluster that lost a leader."""
REPLICAS: Final = 3
PARTITIONS: Final = 6

Setting = str | int | bool


class LoadError(Exception):
    """The cluster lost a message, refused one or did not answer: there is no figure to print."""


def client_settings(bootstrap: str, **settings: Setting) -> dict[str, Setting]:
    """librdkafka's names with underscores for dots, so that they can be keywords."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    # Lines about connections that a stopping cluster closed would bury the table; errors are exceptions.
    return {"bootstrap.servers": bootstrap, "log_level": 2, **dotted}


def producer(bootstrap: str, **settings: Setting) -> Producer:
    return Producer(client_settings(bootstrap, **{"acks": "all", "enable_idempotence": True, **settings}))


def reader(bootstrap: str) -> Consumer:
    """A reader by assignment. Its back-off is not the default 1 s: so long it would sleep on a full queue."""
    return Consumer(
        client_settings(bootstrap, group_id="bench", enable_auto_commit=False, fetch_queue_backoff_ms=5)
    )


def admin(bootstrap: str) -> AdminClient:
    return AdminClient(dict(client_settings(bootstrap)))


def create_topic(bootstrap: str, *, partitions: int = PARTITIONS) -> str:
    """A fresh topic whose partitions all have a leader that takes writes."""
    topic = new_topic(bootstrap, partitions=partitions)
    write_once_everywhere(producer(bootstrap), topic, partitions)
    return topic


def new_topic(bootstrap: str, *, partitions: int) -> str:
    """A fresh topic, as soon as the cluster has answered."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    client = admin(bootstrap)  # held while its answers are awaited: they fail when it goes
    for answer in client.create_topics([NewTopic(topic, partitions, REPLICAS)]).values():
        answer.result(timeout=ANSWER_S_MAX)
    return topic


def delete_topic(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    for answer in client.delete_topics([topic]).values():
        answer.result(timeout=ANSWER_S_MAX)


def write_once_everywhere(writer: Producer, topic: str, partitions: int) -> None:
    """One message to each partition: connections are open and leaders are known before a clock starts."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for partition in range(partitions):
        writer.produce(topic, bytes(8), partition=partition, on_delivery=delivered)
    if writer.flush(ANSWER_S_MAX) or failures:
        raise LoadError(f"first writes to {topic} failed: {failures or 'no answer'}")


def broker_ids(bootstrap: str) -> frozenset[int]:
    """The brokers that the cluster itself names."""
    return frozenset(_metadata(bootstrap).brokers)


def leader_of(bootstrap: str, topic: str, partition: int) -> int:
    return int(_metadata(bootstrap).topics[topic].partitions[partition].leader)


def is_in_sync(bootstrap: str, topic: str) -> bool:
    """Whether every partition of the topic has a leader and all its replicas in sync."""
    partitions = _metadata(bootstrap).topics[topic].partitions.values()
    return all(partition.leader >= 0 and len(partition.isrs) == REPLICAS for partition in partitions)


def message_count(bootstrap: str, topic: str, partition: int) -> int:
    consumer = reader(bootstrap)
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S_MAX)
        return int(high - low)
    finally:
        consumer.close()


def leader_epochs(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> int:
    """The sum of the partitions' leader epochs: what it grew by is how many elections there were."""
    latest: OffsetSpec = OffsetSpec.latest()
    client = admin(bootstrap)
    answers = client.list_offsets({TopicPartition(topic, number): latest for number in range(partitions)})
    return sum(int(answer.result(timeout=ANSWER_S_MAX).leader_epoch or 0) for answer in answers.values())


def _metadata(bootstrap: str) -> ClusterMetadata:
    return admin(bootstrap).list_topics(timeout=5.0)
