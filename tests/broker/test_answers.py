"""Tests of broker/answers.py: an answer is kept exactly as long as the cluster stays as it is."""

from __future__ import annotations

from tidings.broker.answers import ANSWERS_MAX, AnswerCache
from tidings.protocol.messages.metadata import MetadataResponse


def test_the_same_question_gets_the_same_object() -> None:
    cache, answer = AnswerCache(), MetadataResponse()

    cache.put((1, 1), "question", answer)

    assert cache.get((1, 1), "question") is answer
    assert cache.get((1, 1), "another") is None


def test_a_change_of_the_cluster_drops_all_answers() -> None:
    cache = AnswerCache()
    cache.put((1, 1), "question", MetadataResponse())

    assert cache.get((1, 2), "question") is None
    assert cache.get((2, 1), "question") is None
    cache.put((2, 1), "another", MetadataResponse())
    assert cache.get((2, 1), "question") is None


def test_only_so_many_answers_are_kept() -> None:
    cache = AnswerCache()
    for question in range(ANSWERS_MAX + 1):
        cache.put((1, 1), question, MetadataResponse())

    assert cache.get((1, 1), ANSWERS_MAX - 1) is not None
    assert cache.get((1, 1), ANSWERS_MAX) is None
