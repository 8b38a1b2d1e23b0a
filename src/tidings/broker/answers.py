"""Answers: those that stay right until the cluster changes, kept so that the same question costs nothing.

The one rule: a kept answer is never changed, and is dropped as soon as the metadata or what is known of the
living brokers is another. The same question gets the same object, so that whoever encodes it may keep the
bytes by it.
It must not know what the answers say. Tests: tests/broker/test_answers.py
"""

from __future__ import annotations

from collections.abc import Hashable

from tidings.protocol.schema import Message

ANSWERS_MAX = 64  # distinct questions between two changes; clients of one kind all ask the same


class AnswerCache:
    """Answers to questions about the cluster as it is in one version."""

    def __init__(self) -> None:
        self._version: tuple[int, int] = (-1, -1)
        self._answers: dict[Hashable, Message] = {}

    def get(self, version: tuple[int, int], question: Hashable) -> Message | None:
        return self._answers.get(question) if version == self._version else None

    def put(self, version: tuple[int, int], question: Hashable, answer: Message) -> None:
        if version != self._version:
            self._version = version
            self._answers.clear()
        if len(self._answers) < ANSWERS_MAX:
            self._answers[question] = answer
