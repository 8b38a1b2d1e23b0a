"""Whether a cluster can be reached is known at once, and its errors come in two kinds."""

import socket

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidings.kafka.connection import client_settings, kafka_errors, refused, require_reachable
from tidings.kafka.errors import Refused, Unreachable


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_broker_that_listens_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        require_reachable(f"127.0.0.1:{listener.getsockname()[1]}")


def test_one_of_several_is_enough(closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        require_reachable(f"127.0.0.1:{closed_port},127.0.0.1:{listener.getsockname()[1]}")


def test_no_broker_is_told_with_the_reason_of_each(closed_port: int) -> None:
    with pytest.raises(Unreachable, match=f"127.0.0.1:{closed_port}: Connection refused; a b:1: "):
        require_reachable(f"127.0.0.1:{closed_port},a b:1")


@pytest.mark.parametrize("text", ["", ":", "127.0.0.1:x"])
def test_an_address_that_is_none_is_not_reachable(text: str) -> None:
    with pytest.raises(Unreachable):
        require_reachable(text)


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
