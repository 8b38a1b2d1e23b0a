"""Confluent-kafka, the Python binding of librdkafka, against the cluster."""

from __future__ import annotations

import pytest

from tests.clients import murmur2
from tests.clients.contract import (
    KEYS,
    PARTITIONS,
    AdministratorContract,
    ReaderContract,
    RefusalContract,
    SeekerContract,
    WriterContract,
)
from tests.clients.librdkafka import Librdkafka, deliver
from tests.clients.topics import Topics


class TestConfluentKafka(
    WriterContract, ReaderContract, SeekerContract, AdministratorContract, RefusalContract
):
    CLIENT = "confluent-kafka"

    @pytest.fixture
    def client(self, stock: Librdkafka) -> Librdkafka:
        return stock

    def test_refusals_say_why(self, client: Librdkafka, topics: Topics, without_groups: None) -> None:
        topic = topics.create()

        assert "consumer groups are not served" in client.ask_for_group(topic)
        assert "transactions are not served" in client.ask_for_transactions()

    def test_the_default_partitioner_is_not_javas(self, client: Librdkafka, topics: Topics) -> None:
        topic = topics.create(partitions=PARTITIONS)

        received = deliver(client.producer({}), [{"topic": topic, "key": key} for key in KEYS])

        assert [message.partition() for message in received] != [
            murmur2.partition(key, PARTITIONS) for key in KEYS
        ]
