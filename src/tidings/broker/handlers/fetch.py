"""Fetch (key 1), versions 4-18: whole batches from an offset on, as soon as there are enough of them.

A reader sees only what is below the high watermark. With less than min_bytes the request parks on its
partitions, without a task, and counts what comes there; it never parks longer than it asked to. A partition
that is named twice is answered once.
Batches in memory are answered at once, others are read from disk first. An error or a batch that must come
from disk is reason enough to answer. An offset behind the end of this replica is out of range only when a
majority has confirmed that it leads and an entry of its own epoch is committed: what a reader has seen is
never denied by a leader that is new or was replaced.
Left out: fetch sessions (KIP-227: always declined by session id 0), reading from followers (KIP-392),
transactions (nothing is ever aborted, so read_committed sees what read_uncommitted does), tiers.
The one rule: the first partition with anything to read gives at least one batch, whatever the limits (of the
request, of an answer, of the memory that is left for answers); all others keep them.
Tests: tests/broker/handlers/test_fetch.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidings.broker.parked import Parked
from tidings.broker.partition import Partition
from tidings.broker.ports import NO_EPOCH, TimerHandle
from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from tidings.protocol.schema import Message

FETCH_WAIT_MS_MAX = 60_000  # who asks for more gets an empty answer then: parked requests do not pile up
NO_OFFSET = -1
TOPIC_ID_SINCE = 13
_OFFSET_NOT_AVAILABLE_SINCE = 11


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, FetchRequest), body
    if body.session_epoch > 0:  # goes on with a session, and none was ever given out
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return _Fetch(site, request, body, now_ms).start(now_ms)


@dataclass(slots=True)
class _Target:
    """A partition that is asked for, and the replica of it if this broker has one."""

    asked: FetchPartition
    partition: Partition | None
    missing: ErrorCode  # why there is no partition
    group: int | None


@dataclass(slots=True)
class _Unread:
    """What has to be found out before the answer can leave: batches from disk, or whether this broker
    leads."""

    target: _Target
    data: PartitionData
    bytes_max: int
    is_first: bool


class _Round:
    """One look at all partitions: what there is to read now, within the limits of the request."""

    __slots__ = ("byte_count", "bytes_left", "datas", "from_disk", "is_urgent", "unconfirmed")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_left = bytes_max
        self.byte_count = 0
        self.is_urgent = False
        self.datas: list[PartitionData] = []
        self.from_disk: list[_Unread] = []
        self.unconfirmed: list[_Unread] = []

    def look(self, target: _Target) -> None:
        data = PartitionData(partition_index=target.asked.partition, high_watermark=NO_OFFSET)
        self.datas.append(data)
        partition = target.partition
        if partition is None:
            self._fail(data, target.missing)
        elif not (partition.is_open and partition.log.is_leader):
            self._fail(data, _fenced(target) or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif fenced := _fenced(target):
            self._fail(data, fenced)
        else:
            self._look_at_log(target, partition, data)

    def take(self, data: PartitionData, batches: Sequence[bytes], *, bytes_max: int, is_first: bool) -> None:
        """Put batches in the answer, unless they are more than it has room for; the first ones always fit."""
        byte_count = sum(map(len, batches))
        if byte_count > bytes_max and not is_first:
            return
        data.records = list(batches)
        self.byte_count += byte_count
        self.bytes_left -= byte_count

    def _fail(self, data: PartitionData, code: ErrorCode) -> None:
        data.error_code = code
        self.is_urgent = True

    def _look_at_log(self, target: _Target, partition: Partition, data: PartitionData) -> None:
        log = partition.log
        offset = target.asked.fetch_offset
        high_watermark = log.high_watermark
        data.high_watermark = high_watermark
        data.last_stable_offset = high_watermark
        data.log_start_offset = log.log_start_offset
        if target.asked.last_fetched_epoch != NO_EPOCH and self._diverges(target, partition, data):
            return
        if offset < log.log_start_offset:
            self._fail(data, ErrorCode.OFFSET_OUT_OF_RANGE)
        elif offset > log.end_offset:
            if log.term_start_committed:
                self.unconfirmed.append(_Unread(target, data, 0, is_first=False))
        elif offset < high_watermark:
            self._read(target, partition, data)

    def _read(self, target: _Target, partition: Partition, data: PartitionData) -> None:
        is_first = self.byte_count == 0 and not self.from_disk
        bytes_max = min(target.asked.partition_max_bytes, self.bytes_left)
        if bytes_max <= 0 and not is_first:
            return
        bytes_max = max(bytes_max, 0)
        log = partition.log
        batches = log.read(target.asked.fetch_offset, bytes_max, log.high_watermark)
        if batches is not None:
            self.take(data, batches, bytes_max=bytes_max, is_first=is_first)
            return
        self.from_disk.append(_Unread(target, data, bytes_max, is_first))
        self.bytes_left -= bytes_max

    def _diverges(self, target: _Target, partition: Partition, data: PartitionData) -> bool:
        """Whether the reader's last batch is no part of this log: then where its epoch ended here
        (KIP-595)."""
        asked = target.asked
        end = partition.log.epoch_end(asked.last_fetched_epoch)
        if end.epoch == NO_EPOCH:
            self._fail(data, ErrorCode.OFFSET_OUT_OF_RANGE)
            return True
        if end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
            data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
            self.is_urgent = True
            return True
        return False


class _Fetch:
    """One request, from its first look to its answer."""

    __slots__ = (
        "_available_bytes",
        "_bytes_max",
        "_bytes_min",
        "_deadline_ms",
        "_missing_count",
        "_parked",
        "_request",
        "_round",
        "_site",
        "_targets",
        "_timer",
        "_topics",
        "_version",
    )

    def __init__(self, site: Site, request: Request, body: FetchRequest, now_ms: int) -> None:
        self._site = site
        self._request = request
        self._version = request.api_version
        self._deadline_ms = now_ms + min(max(0, body.max_wait_ms), FETCH_WAIT_MS_MAX)
        self._bytes_max = min(body.max_bytes, site.config.fetch_bytes_max)
        self._bytes_min = min(body.min_bytes, self._bytes_max)
        self._topics = _once_each(site, request.api_version, body.topics)
        self._targets = [target for _, targets in self._topics for target in targets]
        self._available_bytes = 0
        self._parked: list[Parked] = []
        self._round = _Round(0)
        self._timer: TimerHandle | None = None
        self._missing_count = 0

    def start(self, now_ms: int) -> Message | None:
        if self._has_enough(now_ms):
            return self._finish(now_ms)
        self._timer = self._site.timers.call_at(self._deadline_ms, self._answer_now)
        self._park()
        return None

    def _park(self) -> None:
        self._available_bytes = self._round.byte_count
        self._parked = [
            Parked(target.partition, target.asked.fetch_offset, self._moved)
            for target in self._targets
            if target.partition is not None
        ]

    def _moved(self, new_bytes: int | None, now_ms: int) -> None:
        """A partition has got more bytes; None: it is not what it was."""
        if new_bytes is not None:
            self._available_bytes += new_bytes
            if self._available_bytes >= self._bytes_min:
                self._answer_now(now_ms)
        elif self._has_enough(now_ms):
            self._answer_now(now_ms)
        else:
            self._unpark()
            self._park()

    def _answer_now(self, now_ms: int) -> None:
        """Answer with what there is: as much as was waited for, or the time is up."""
        self._leave()
        self._has_enough(now_ms)
        response = self._finish(now_ms)
        if response is not None:
            self._request.answer(response)

    def _has_enough(self, now_ms: int) -> bool:
        current = self._round = _Round(min(self._bytes_max, self._request.room()))
        for target in self._targets:
            current.look(target)
        return (
            current.is_urgent
            or bool(current.from_disk)
            or bool(current.unconfirmed)
            or current.byte_count >= self._bytes_min
            or now_ms >= self._deadline_ms
            or not self._targets
        )

    def _unpark(self) -> None:
        for parked in self._parked:
            parked.leave()
        self._parked = []

    def _leave(self) -> None:
        self._unpark()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish(self, now_ms: int) -> Message | None:
        """Ask for what is missing, if anything; else the answer."""
        current = self._round
        self._missing_count = len(current.from_disk) + len(current.unconfirmed)
        if current.from_disk:
            self._request.reserve(sum(unread.bytes_max for unread in current.from_disk))
        for unread in current.from_disk:
            assert unread.target.partition is not None
            log = unread.target.partition.log
            offset = unread.target.asked.fetch_offset
            log.read_later(offset, unread.bytes_max, unread.data.high_watermark, self._taking(unread))
        for unread in current.unconfirmed:
            assert unread.target.partition is not None
            unread.target.partition.log.confirm_leadership(self._judging(unread), now_ms)
        return self._response() if self._missing_count == 0 else None

    def _taking(self, unread: _Unread) -> Callable[[list[bytes] | None], None]:
        def take(batches: list[bytes] | None) -> None:
            if batches is None:
                unread.data.error_code = _why_unreadable(unread)
            else:
                self._round.take(unread.data, batches, bytes_max=unread.bytes_max, is_first=unread.is_first)
            self._arrived()

        return take

    def _judging(self, unread: _Unread) -> Callable[[bool], None]:
        def judge(is_leader: bool) -> None:
            partition = unread.target.partition
            assert partition is not None
            if not (is_leader and partition.is_open):
                unread.data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif unread.target.asked.fetch_offset > partition.log.end_offset:
                unread.data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            self._arrived()

        return judge

    def _arrived(self) -> None:
        self._missing_count -= 1
        if self._missing_count == 0:
            self._request.answer(self._response())

    def _response(self) -> FetchResponse:
        response = FetchResponse()
        datas = iter(self._round.datas)
        for topic, targets in self._topics:
            parts = []
            for target in targets:
                data = next(datas)
                self._complete(response, target, data)
                parts.append(data)
            response.responses.append(
                FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=parts)
            )
        return response

    def _complete(self, response: FetchResponse, target: _Target, data: PartitionData) -> None:
        """What is the same for every partition, once it is clear what its answer is."""
        asked = target.asked
        if data.error_code == ErrorCode.NONE:
            log = target.partition.log if target.partition is not None else None
            if log is not None and asked.fetch_offset > log.end_offset:
                # This leader cannot know yet what was committed before it: neither "there" nor "out of
                # range".
                has_code = self._version >= _OFFSET_NOT_AVAILABLE_SINCE
                data.error_code = (
                    ErrorCode.OFFSET_NOT_AVAILABLE if has_code else ErrorCode.NOT_LEADER_OR_FOLLOWER
                )
        elif data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and target.group is not None:
            leader = self._site.liveness.leader_of(target.group)
            row = self._site.broker_row(leader.broker_id)
            if row is not None:
                data.current_leader = LeaderIdAndEpoch(leader_id=leader.broker_id, leader_epoch=leader.epoch)
                if all(endpoint.node_id != row.broker_id for endpoint in response.node_endpoints):
                    endpoint = NodeEndpoint(
                        node_id=row.broker_id, host=row.host, port=row.port, rack=row.rack
                    )
                    response.node_endpoints.append(endpoint)


def _once_each(
    site: Site, version: int, topics: Sequence[FetchTopic]
) -> list[tuple[FetchTopic, list[_Target]]]:
    """The partitions of each topic, where they are named first: there are no more than this broker knows, or
    the request is answered at once."""
    seen: set[tuple[str, bytes, int]] = set()
    targets_by_topic = []
    for topic in topics:
        targets = []
        for asked in topic.partitions:
            which = topic.topic, topic.topic_id, asked.partition
            if which not in seen:
                seen.add(which)
                targets.append(_target(site, version, topic, asked))
        targets_by_topic.append((topic, targets))
    return targets_by_topic


def _target(site: Site, version: int, topic: FetchTopic, asked: FetchPartition) -> _Target:
    index = asked.partition
    by_name = version < TOPIC_ID_SINCE
    if by_name:
        partition = site.partitions.by_name.get((topic.topic, index))
    else:
        partition = site.partitions.by_id.get((topic.topic_id, index))
    if partition is not None:
        return _Target(asked, partition, ErrorCode.NONE, partition.group)
    if by_name:
        missing = site.why_missing(topic.topic, index)
        row = site.cluster.topics.get(topic.topic)
    else:
        missing = site.why_missing_by_id(topic.topic_id, index)
        row = site.cluster.topics_by_id.get(topic.topic_id)
    has_group = missing is ErrorCode.NOT_LEADER_OR_FOLLOWER and row is not None
    return _Target(
        asked, None, missing, row.partitions[index].group if has_group and row is not None else None
    )


def _fenced(target: _Target) -> ErrorCode | None:
    if target.partition is None:
        return None
    code = target.partition.check_epoch(target.asked.current_leader_epoch)
    return code if code is not ErrorCode.NONE else None


def _why_unreadable(unread: _Unread) -> ErrorCode:
    """Removed while it was looked for, or damaged on this broker's disk."""
    partition = unread.target.partition
    assert partition is not None
    if unread.target.asked.fetch_offset < partition.log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.KAFKA_STORAGE_ERROR
