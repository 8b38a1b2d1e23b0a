"""Confluent-kafka, the Python binding of librdkafka, against the cluster."""

from __future__ import annotations

import pytest

from tests.clients.contract import AdministratorContract, ReaderContract, SeekerContract, WriterContract
from tests.clients.librdkafka import Librdkafka


class TestConfluentKafka(WriterContract, ReaderContract, SeekerContract, AdministratorContract):
    CLIENT = "confluent-kafka"

    @pytest.fixture
    def client(self, stock: Librdkafka) -> Librdkafka:
        return stock
