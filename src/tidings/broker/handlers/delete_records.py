"""DeleteRecords (key 21), versions 0-2: move a partition's log start forward.

Answered with the new log start once it is in force, which takes a majority: the move is an entry of the log
itself.
Left out: nothing.
The one rule: what is above the high watermark cannot be deleted.
Tests: tests/broker/handlers/test_delete_records.py
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.broker.gathering import Gathering
from tidings.broker.partition import Partition
from tidings.broker.ports import AppendRefused
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tidings.protocol.schema import Message

TO_HIGH_WATERMARK = -1
NO_OFFSET = -1


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, DeleteRecordsRequest), body
    gathering = Gathering(request)
    deadline_ms = now_ms + max(0, body.timeout_ms)
    seen: set[tuple[str, int]] = set()
    response = DeleteRecordsResponse()
    for topic in body.topics:
        results = []
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=asked.partition_index, low_watermark=NO_OFFSET
            )
            partition = site.partitions.by_name.get((topic.name, asked.partition_index))
            if (topic.name, asked.partition_index) in seen:
                result.error_code = ErrorCode.INVALID_REQUEST
            elif partition is None:
                result.error_code = site.why_missing(topic.name, asked.partition_index)
            else:
                _delete(_Deletion(gathering, partition, result, asked.offset, deadline_ms), now_ms)
            seen.add((topic.name, asked.partition_index))
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return gathering.seal(response)


@dataclass(slots=True)
class _Deletion:
    """One partition's log start on its way to `offset`."""

    gathering: Gathering
    partition: Partition
    result: DeleteRecordsPartitionResult
    offset: int
    deadline_ms: int

    def settle(self, code: ErrorCode) -> None:
        self.tell(code)
        self.gathering.arrived()

    def tell(self, code: ErrorCode) -> None:
        self.result.error_code = code
        if code is ErrorCode.NONE:
            self.result.low_watermark = self.partition.log.log_start_offset


def _delete(deletion: _Deletion, now_ms: int) -> None:
    partition = deletion.partition
    log = partition.log
    if not log.is_leader:
        return deletion.tell(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if not partition.settings.deletes:  # a compacted topic's records are not the log's to drop
        return deletion.tell(ErrorCode.POLICY_VIOLATION)
    if deletion.offset == TO_HIGH_WATERMARK:
        deletion.offset = log.high_watermark
    if not 0 <= deletion.offset <= log.high_watermark:
        return deletion.tell(ErrorCode.OFFSET_OUT_OF_RANGE)
    if deletion.offset <= log.log_start_offset:
        return deletion.tell(ErrorCode.NONE)
    try:
        log.append_log_start(deletion.offset, now_ms)
    except AppendRefused as refused:
        return deletion.tell(refused.code)
    deletion.gathering.expect()
    partition.await_log_start(deletion)
    return None
