"""Clients share their settings, and what goes wrong is told in words that are ours."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidings.kafka.connection import client_settings, kafka_errors, refused
from tidings.kafka.errors import Refused, Unreachable


def test_settings_say_where_and_more() -> None:
    settings = client_settings("a:1", {"acks": "all"})

    assert settings["bootstrap.servers"] == "a:1"
    assert settings["acks"] == "all"


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE])
def test_a_lost_cluster_is_unreachable(code: int) -> None:
    with pytest.raises(Unreachable), kafka_errors():
        raise KafkaException(KafkaError(code))


def test_an_answer_that_says_no_is_a_refusal_with_its_name() -> None:
    with pytest.raises(Refused, match="already exists") as caught, kafka_errors():
        raise KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS, "already exists"))

    assert caught.value.name == "TOPIC_ALREADY_EXISTS"


def test_silence_is_a_refusal_that_says_so() -> None:
    assert "no answer in time" in str(refused(KafkaError(KafkaError._TIMED_OUT)))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError.TOPIC_ALREADY_EXISTS, "Topic already exists"),
        (KafkaError._UNKNOWN_PARTITION, "Unknown partition"),
        (KafkaError._MSG_TIMED_OUT, "no majority of the partition's brokers stored it in time"),
    ],
)
def test_the_words_of_the_client_are_not_shown(code: int, words: str) -> None:
    assert str(refused(KafkaError(code))).endswith(words)
    assert not str(refused(KafkaError(code))).startswith(("Broker:", "Local:"))
