"""The running producer's bookkeeping: which acknowledgement ends a pause, and what is none."""

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message

from bench.clients import LoadError
from bench.faults import SteadyWriter

Delivered = Callable[[KafkaError | None, Message], None]


class ScriptedProducer:
    """Acknowledges messages only as the script says; unanswered ones are what flush() counts."""

    def __init__(self, *, error: KafkaError | None = None) -> None:
        self.answering = threading.Event()
        self._error = error
        self._waiting: list[Delivered] = []

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        partition: int = -1,
        on_delivery: Delivered | None = None,
    ) -> None:
        assert on_delivery is not None
        self._waiting.append(on_delivery)

    def poll(self, timeout_s: float) -> int:
        if not self.answering.wait(timeout_s):
            return 0
        waiting, self._waiting = self._waiting, []
        for delivered in waiting:
            delivered(self._error, Message())
        return len(waiting)

    def flush(self, timeout_s: float) -> int:
        self.poll(0.0)
        return len(self._waiting)


def test_the_next_acknowledgement_is_one_of_a_message_sent_later() -> None:
    producer = ScriptedProducer()

    with SteadyWriter(producer, "topic") as writer:
        producer.answering.set()
        first_s = writer.wait_for_message_sent_after(float("-inf"), seconds_max=10.0)
        second_s = writer.wait_for_message_sent_after(first_s, seconds_max=10.0)

    assert second_s > first_s
    assert writer.acknowledged_count >= 2


def test_silence_has_an_end() -> None:
    producer = ScriptedProducer()

    with SteadyWriter(producer, "topic") as writer:
        with pytest.raises(LoadError, match="no acknowledgement within"):
            writer.wait_for_message_sent_after(0.0, seconds_max=0.01)
        producer.answering.set()


def test_a_refused_message_is_no_acknowledgement() -> None:
    producer = ScriptedProducer(error=KafkaError(KafkaError.REQUEST_TIMED_OUT))

    with SteadyWriter(producer, "topic") as writer:
        producer.answering.set()
        with pytest.raises(LoadError, match="refused"):
            writer.wait_for_message_sent_after(float("-inf"), seconds_max=10.0)

    assert writer.acknowledged_count == 0


def test_messages_without_an_answer_at_the_end_are_an_error() -> None:
    with pytest.raises(LoadError, match="never acknowledged"), SteadyWriter(ScriptedProducer(), "topic"):
        pass


def test_what_went_wrong_first_is_what_is_told() -> None:
    with pytest.raises(RuntimeError, match="first"), SteadyWriter(ScriptedProducer(), "topic"):
        raise RuntimeError("first")
