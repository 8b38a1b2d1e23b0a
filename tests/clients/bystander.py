"""Bystander: a stock producer that goes on beside a test and tells whether anything disturbed it.

The one rule: it writes one message after the other with acks=all, so its longest wait is what a client would
have noticed. Must not know: what is done to the brokers meanwhile.
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

from tests.clients.deadline import Deadline
from tests.clients.witness import ANSWER_S_MAX


class Bystander:
    """Use it in a `with` block; ask it whether it is well inside."""

    def __init__(self, writer: Producer, topic: str) -> None:
        self._writer = writer
        self._topic = topic
        self._ends = threading.Event()
        self._acked = threading.Condition()
        self._acked_count = 0
        self._errors: list[str] = []
        self._longest_s = 0.0
        self._thread = threading.Thread(target=self._write, name="bystander")

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(ANSWER_S_MAX)

    def longest_wait_s(self) -> float:
        """The longest that a message took since the last question, once one more has come through."""
        deadline = Deadline(ANSWER_S_MAX, "the bystander's next acknowledgement")
        with self._acked:
            wanted = self._acked_count + 2  # the one on its way may have been written long ago
            while self._acked_count < wanted:
                self._acked.wait(deadline.left_s())
            assert self._errors == []
            longest_s, self._longest_s = self._longest_s, 0.0
            return longest_s

    def _write(self) -> None:
        while not self._ends.is_set():
            began_s = time.monotonic()
            self._writer.produce(self._topic, b"still here", partition=0, on_delivery=self._delivered)
            self._writer.flush(ANSWER_S_MAX)
            with self._acked:
                self._longest_s = max(self._longest_s, time.monotonic() - began_s)
                self._acked_count += 1
                self._acked.notify_all()
            self._ends.wait(0.005)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._errors.append(error.str())
