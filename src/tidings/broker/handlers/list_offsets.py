"""ListOffsets (key 2), versions 1-11: the offset of a time, or of the start or end of a partition.

The latest offset is the high watermark, told after a majority confirmed that this broker still leads, and not
before an entry of its own epoch is committed (OFFSET_NOT_AVAILABLE): the end that a client has seen never
goes back. A time is looked up exactly to the record, whose batch is decompressed beside the loop. "Not found"
is offset -1 without an error.
Left out: tiers (-4 is the log start, -5 and -6 find nothing); read_committed sees what read_uncommitted does.
The one rule: no answer is older than the request. Tests: tests/broker/handlers/test_list_offsets.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tidings.broker.gathering import Gathering
from tidings.broker.partition import Partition
from tidings.broker.ports import TIME_OF_NEWEST
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode, ProtocolError
from tidings.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidings.protocol.record_codec import find_timestamp, max_timestamp_record
from tidings.protocol.records import read_header
from tidings.protocol.schema import Message

LATEST = -1
EARLIEST = -2
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The version from which a negative timestamp has a meaning.
_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    TIME_OF_NEWEST: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_OFFSET_NOT_AVAILABLE_SINCE = 5
# What one lookup may decompress: some hundred times a batch of the usual largest size.
DECODED_BYTES_MAX = 128 * 1024 * 1024


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, ListOffsetsRequest), body
    gathering = Gathering(request)
    seen: set[tuple[str, int]] = set()
    response = ListOffsetsResponse()
    for topic in body.topics:
        answers = []
        for asked in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            if (topic.name, asked.partition_index) in seen:
                answer.error_code = ErrorCode.INVALID_REQUEST
            else:
                seen.add((topic.name, asked.partition_index))
                lookup = _Lookup(site, gathering, answer, request.api_version)
                lookup.start(topic.name, asked, now_ms)
            answers.append(answer)
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return gathering.seal(response)


@dataclass(frozen=True, slots=True)
class _Found:
    """A record by its place, or where its batch could not be read the place of that."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class _Lookup:
    """What one partition is asked for."""

    site: Site
    gathering: Gathering
    answer: ListOffsetsPartitionResponse
    api_version: int

    def start(self, name: str, asked: ListOffsetsPartition, now_ms: int) -> None:
        partition = self.site.partitions.by_name.get((name, asked.partition_index))
        if partition is None:
            self.answer.error_code = self.site.why_missing(name, asked.partition_index)
            return
        refusal = self._refusal(partition, asked)
        if refusal is not ErrorCode.NONE:
            self.answer.error_code = refusal
        elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            self.answer.offset = partition.log.log_start_offset
        elif asked.timestamp == LATEST:
            self.gathering.expect()
            partition.log.confirm_leadership(partial(self._tell_latest, partition), now_ms)
        elif asked.timestamp >= 0 or asked.timestamp == TIME_OF_NEWEST:
            self.gathering.expect()
            then = partial(self._read_batch, asked.timestamp)
            partition.log.find_batch_by_time(asked.timestamp, then)

    def _refusal(self, partition: Partition, asked: ListOffsetsPartition) -> ErrorCode:
        if asked.timestamp < 0 and self.api_version < _SINCE.get(asked.timestamp, self.api_version + 1):
            return ErrorCode.UNSUPPORTED_VERSION
        fenced = partition.check_epoch(asked.current_leader_epoch)
        if fenced is not ErrorCode.NONE:
            return fenced
        if not partition.log.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        needs_newest = asked.timestamp not in (EARLIEST, EARLIEST_LOCAL)
        if needs_newest and not partition.log.term_start_committed:
            if self.api_version >= _OFFSET_NOT_AVAILABLE_SINCE:
                return ErrorCode.OFFSET_NOT_AVAILABLE
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NONE

    def _tell_latest(self, partition: Partition, is_leader: bool) -> None:
        if is_leader and partition.is_open:
            self.answer.offset = partition.log.high_watermark
            self.answer.leader_epoch = partition.log.leader_epoch
        else:
            self.answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.gathering.arrived()

    def _read_batch(self, timestamp: int, found: list[bytes] | None) -> None:
        if found:
            self.site.offload.run(find_record, found[0], timestamp, then=self._tell_record)
            return
        if found is None:
            self.answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR  # a later record would hide earlier ones
        self.gathering.arrived()

    def _tell_record(self, found: object) -> None:
        assert isinstance(found, _Found), found
        self.answer.offset = found.offset
        self.answer.timestamp = found.timestamp
        self.answer.leader_epoch = found.leader_epoch
        self.gathering.arrived()


def find_record(batch: bytes, timestamp: int) -> _Found:
    """The record of a batch that a timestamp asks for. Producers may have written what cannot be read: then
    the start of the batch, from where a reader misses nothing."""
    header = read_header(batch)
    try:
        if timestamp == TIME_OF_NEWEST:
            record = max_timestamp_record(batch, decoded_bytes_max=DECODED_BYTES_MAX)
        else:
            record = find_timestamp(batch, timestamp, decoded_bytes_max=DECODED_BYTES_MAX)
    except ProtocolError:
        record = None
    if record is None:
        return _Found(header.base_offset, header.max_timestamp, header.leader_epoch)
    return _Found(record.offset, record.timestamp, header.leader_epoch)
