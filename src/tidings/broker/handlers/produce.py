"""Produce (key 0), versions 3-13: append one record batch to each partition named.

acks=-1 is answered once a majority's disks hold the batch, acks=1 once this broker's does; acks=0 is never
answered, and an error closes the connection, as Kafka does, so that the producer looks for the leader anew. A
batch that a producer sends again is answered with its first place, when that is safe. NOT_LEADER_OR_FOLLOWER
names the leader (KIP-951).
Left out: transactions (refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED), errors of single records
(record_errors), and the records inside a batch, which are not looked at.
The one rule: batches are appended in the order in which requests come, before this module returns.
Tests: tests/broker/handlers/test_produce.py
"""

from __future__ import annotations

from tidings.broker.cluster import BrokerRow
from tidings.broker.gathering import Gathering
from tidings.broker.partition import Partition
from tidings.broker.ports import AppendRefused
from tidings.broker.producers import SequenceRefused
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tidings.protocol.records import TRANSACTIONAL_BIT, BatchError, check_produced
from tidings.protocol.schema import Message

ACKS_ALL = -1
ACKS_LEADER = 1
ACKS_NONE = 0
NO_OFFSET = -1
TOPIC_ID_SINCE = 13
_REFUSALS = (AppendRefused, BatchError, SequenceRefused)


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, ProduceRequest), body
    produce = _Produce(site, request, body, now_ms)
    refusal = _refusal_of_all(body)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    produce.append(topic, asked, now_ms) if refusal is None else _refused(asked, refusal)
                    for asked in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )
    if body.acks != ACKS_NONE:
        return produce.seal(response)
    failed = _first_error(response)
    if failed is not None:
        request.close(f"a produce request without acknowledgement failed: {failed.name}")
    return None


class _Produce:
    """One request on its way."""

    __slots__ = ("_acks", "_deadline_ms", "_gathering", "_response", "_seen", "_site", "_version")

    def __init__(self, site: Site, request: Request, body: ProduceRequest, now_ms: int) -> None:
        self._site = site
        self._version = request.api_version
        self._acks = body.acks
        self._deadline_ms = now_ms + max(0, body.timeout_ms)
        self._gathering = Gathering(request)
        self._response: ProduceResponse | None = None
        # Only a request of several partitions can name one twice.
        is_single = len(body.topic_data) == 1 and len(body.topic_data[0].partition_data) == 1
        self._seen: set[Partition] | None = None if is_single else set()

    def append(
        self, topic: TopicProduceData, asked: PartitionProduceData, now_ms: int
    ) -> PartitionProduceResponse:
        """Append the batch of one partition. Its answer, which may still be waited for."""
        index = asked.index
        if self._version < TOPIC_ID_SINCE:
            partition = self._site.partitions.by_name.get((topic.name, index))
        else:
            partition = self._site.partitions.by_id.get((topic.topic_id, index))
        if partition is None:
            return self._refuse_missing(topic, index)
        if self._seen is not None:
            if partition in self._seen:
                return _answer_of_error(
                    index, ErrorCode.INVALID_REQUEST, "the request names the partition twice"
                )
            self._seen.add(partition)
        try:
            return self._append_to(partition, asked, now_ms)
        except _REFUSALS as refusal:
            if refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return self._refuse_leader(partition.group, index)
            return _answer_of_error(index, refusal.code, str(refusal))

    def seal(self, response: ProduceResponse) -> Message | None:
        self._response = response
        for topic in response.responses:
            for answer in topic.partition_responses:
                self._name_leader(answer)
        return self._gathering.seal(response)

    def settle(self, partition: Partition, answer: PartitionProduceResponse, code: ErrorCode) -> None:
        """The batch is safe, or will not be known to be."""
        if code is not ErrorCode.NONE:
            answer.error_code = code
            answer.base_offset = NO_OFFSET
            answer.log_append_time_ms = NO_OFFSET
            if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = self._leader_of(partition.group)
                self._name_leader(answer)
        self._gathering.arrived()

    def _append_to(
        self, partition: Partition, asked: PartitionProduceData, now_ms: int
    ) -> PartitionProduceResponse:
        batch = check_produced(
            asked.records,
            batch_bytes_max=partition.settings.batch_bytes_max,
            produce_version=self._version,
        )
        if batch.header.attributes & TRANSACTIONAL_BIT:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return _answer_of_error(asked.index, code, "transactions are not served")
        placed = partition.append(batch, now_ms)
        log = partition.log
        answer = PartitionProduceResponse(
            index=asked.index,
            base_offset=placed.base_offset,
            log_append_time_ms=placed.append_time_ms,
            log_start_offset=log.log_start_offset,
        )
        if self._acks == ACKS_ALL:
            if log.high_watermark < placed.end_offset:
                self._gathering.expect()
                partition.await_commit(
                    _Appended(self, partition, answer, placed.end_offset, self._deadline_ms)
                )
        elif self._acks == ACKS_LEADER and log.durable_offset < placed.end_offset:
            self._gathering.expect()
            partition.await_durable(_Appended(self, partition, answer, placed.end_offset, self._deadline_ms))
        return answer

    def _refuse_missing(self, topic: TopicProduceData, index: int) -> PartitionProduceResponse:
        site = self._site
        if self._version < TOPIC_ID_SINCE:
            code = site.why_missing(topic.name, index)
            row = site.cluster.topics.get(topic.name)
        else:
            code = site.why_missing_by_id(topic.topic_id, index)
            row = site.cluster.topics_by_id.get(topic.topic_id)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER and row is not None:
            return self._refuse_leader(row.partitions[index].group, index)
        return _answer_of_error(index, code, None)

    def _refuse_leader(self, group: int, index: int) -> PartitionProduceResponse:
        answer = _answer_of_error(index, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        answer.current_leader = self._leader_of(group)
        return answer

    def _leader_of(self, group: int) -> LeaderIdAndEpoch | None:
        leader = self._site.liveness.leader_of(group)
        if leader.broker_id < 0:
            return None
        return LeaderIdAndEpoch(leader_id=leader.broker_id, leader_epoch=leader.epoch)

    def _name_leader(self, answer: PartitionProduceResponse) -> None:
        """Where the leader that an answer names is reached stands once in the whole answer."""
        if answer.current_leader is None or self._response is None:
            return
        endpoints = self._response.node_endpoints
        row = self._site.broker_row(answer.current_leader.leader_id)
        if row is not None and all(endpoint.node_id != row.broker_id for endpoint in endpoints):
            endpoints.append(_endpoint(row))


class _Appended:
    """An appended batch that waits to be safe."""

    __slots__ = ("_answer", "_partition", "_produce", "deadline_ms", "offset")

    def __init__(
        self,
        produce: _Produce,
        partition: Partition,
        answer: PartitionProduceResponse,
        offset: int,
        deadline_ms: int,
    ) -> None:
        self._produce = produce
        self._partition = partition
        self._answer = answer
        self.offset = offset
        self.deadline_ms = deadline_ms

    def settle(self, code: ErrorCode) -> None:
        self._produce.settle(self._partition, self._answer, code)


def _refusal_of_all(body: ProduceRequest) -> ErrorCode | None:
    if body.acks not in (ACKS_ALL, ACKS_LEADER, ACKS_NONE):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if body.transactional_id is not None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


def _refused(asked: PartitionProduceData, code: ErrorCode) -> PartitionProduceResponse:
    return _answer_of_error(asked.index, code, None)


def _answer_of_error(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=NO_OFFSET, error_message=message
    )


def _first_error(response: ProduceResponse) -> ErrorCode | None:
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NONE:
                return ErrorCode(answer.error_code)
    return None


def _endpoint(row: BrokerRow) -> NodeEndpoint:
    return NodeEndpoint(node_id=row.broker_id, host=row.host, port=row.port, rack=row.rack)
