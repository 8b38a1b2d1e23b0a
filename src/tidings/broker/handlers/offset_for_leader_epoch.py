"""OffsetForLeaderEpoch (key 23), versions 2-4: where a leader epoch ended (KIP-320).

An epoch that this log has never seen is answered with -1 for both numbers.
Left out: nothing.
The one rule: only the leader answers. Tests: tests/broker/handlers/test_offset_for_leader_epoch.py
"""

from __future__ import annotations

from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from tidings.protocol.schema import Message


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, OffsetForLeaderEpochRequest), body
    seen: set[tuple[str, int]] = set()
    response = OffsetForLeaderEpochResponse()
    for topic in body.topics:
        answers = []
        for asked in topic.partitions:
            if (topic.topic, asked.partition) not in seen:  # named twice, it is answered once
                seen.add((topic.topic, asked.partition))
                answers.append(_answer(site, topic.topic, asked))
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response


def _answer(site: Site, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    partition = site.partitions.by_name.get((name, asked.partition))
    if partition is None:
        answer.error_code = site.why_missing(name, asked.partition)
        return answer
    fenced = partition.check_epoch(asked.current_leader_epoch)
    if fenced is not ErrorCode.NONE:
        answer.error_code = fenced
    elif not partition.log.is_leader:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif 0 <= asked.leader_epoch <= partition.log.leader_epoch:
        end = partition.log.epoch_end(asked.leader_epoch)
        answer.leader_epoch = end.epoch
        answer.end_offset = end.end_offset
    return answer
