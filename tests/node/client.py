"""A client of the tests' world: Kafka requests to the broker that leads, and what they are answered."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.world import Asked, make_batch
from tests.node.machine import Machine
from tests.node.world import World
from tidings.protocol.apis import ApiKey
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidings.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tidings.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tidings.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidings.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidings.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidings.protocol.record_codec import decode_records
from tidings.protocol.records import read_header

PRODUCE_VERSION = 9
FETCH_VERSION = 11
LIST_OFFSETS_VERSION = 6
TIMEOUT_MS = 30_000
_DECODED_BYTES_MAX = 1_000_000
LATEST = -1
EARLIEST = -2


class Client:
    """Asks one broker at a time; the world goes on while it waits."""

    def __init__(self, world: World) -> None:
        self._world = world

    # -- topics

    def create_topic(
        self,
        name: str = "t",
        *,
        at: int = 1,
        assignments: Sequence[Sequence[int]] = ((1, 2, 3),),
        configs: dict[str, str] | None = None,
    ) -> list[int]:
        """A topic whose partitions are placed as said; their groups."""
        answer = self.wait(self.send_create_topic(name, at=at, assignments=assignments, configs=configs))
        (result,) = answer.answer(CreateTopicsResponse).topics
        assert result.error_code == ErrorCode.NONE, result
        return self.groups_of(name, at=at)

    def send_create_topic(
        self,
        name: str = "t",
        *,
        at: int = 1,
        assignments: Sequence[Sequence[int]] = ((1, 2, 3),),
        configs: dict[str, str] | None = None,
    ) -> Asked:
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                for index, replicas in enumerate(assignments)
            ],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        body = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        return self._world[at].request(ApiKey.CREATE_TOPICS, 5, body)

    def delete_topic(self, name: str = "t", *, at: int = 1) -> None:
        answer = self.wait(self.send_delete_topic(name, at=at))
        (result,) = answer.answer(DeleteTopicsResponse).responses
        assert result.error_code == ErrorCode.NONE, result

    def send_delete_topic(self, name: str = "t", *, at: int = 1) -> Asked:
        body = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
        return self._world[at].request(ApiKey.DELETE_TOPICS, 5, body)

    def groups_of(self, name: str = "t", *, at: int = 1) -> list[int]:
        topic = self._world[at].node.broker.cluster.topics[name]
        return [row.group for row in topic.partitions]

    # -- records

    def send_batch(
        self, batch: bytes, *, to: Machine, acks: int = -1, topic: str = "t", index: int = 0
    ) -> Asked:
        part = PartitionProduceData(index=index, records=memoryview(batch))
        body = ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[part])],
        )
        return to.request(ApiKey.PRODUCE, PRODUCE_VERSION, body)

    def send_values(self, *values: bytes, to: Machine, acks: int = -1, topic: str = "t") -> Asked:
        return self.send_batch(
            make_batch(*values, timestamps=self._times(values)), to=to, acks=acks, topic=topic
        )

    def produce(self, *values: bytes, group: int, topic: str = "t") -> int:
        """One acknowledged batch with these values; its first offset."""
        asked = self.send_values(*values, to=self._world.lead(group), topic=topic)
        answer = produced(self.wait(asked))
        assert answer.error_code == ErrorCode.NONE, answer
        return answer.base_offset

    def produce_many(self, count: int, *, group: int, topic: str = "t", size: int = 1) -> None:
        """So many acknowledged batches of one record each."""
        for number in range(count):
            self.produce(b"%d" % number + bytes(size), group=group, topic=topic)

    def send_fetch(
        self, offset: int, *, to: Machine, wait_ms: int = 0, topic: str = "t", bytes_max: int = 10_000_000
    ) -> Asked:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
        body = FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[part])]
        )
        return to.request(ApiKey.FETCH, FETCH_VERSION, body)

    def fetch(self, offset: int, *, to: Machine, topic: str = "t") -> PartitionData:
        return fetched(self.wait(self.send_fetch(offset, to=to, topic=topic)))

    def read_all(self, *, to: Machine, topic: str = "t", offset: int = 0) -> list[bytes]:
        """All values from an offset on, as a reader of this broker gets them. Each record has the offset it
        should have: none is missing."""
        values: list[bytes] = []
        while True:
            data = self.fetch(offset, to=to, topic=topic)
            assert data.error_code == ErrorCode.NONE, data
            if not data.records:
                return values
            for batch in data.records:
                header = read_header(batch)
                assert header.base_offset == offset, (header.base_offset, offset)
                values += [
                    record.value or b""
                    for record in decode_records(batch, decoded_bytes_max=_DECODED_BYTES_MAX)
                ]
                offset += header.record_count

    def offset_of(self, timestamp: int, *, to: Machine, topic: str = "t") -> ListOffsetsPartitionResponse:
        """What ListOffsets says for a timestamp, LATEST or EARLIEST."""
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        body = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
        answer = self.wait(to.request(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, body))
        (response,) = answer.answer(ListOffsetsResponse).topics
        (offset,) = response.partitions
        return offset

    def delete_records(self, offset: int, *, group: int, topic: str = "t") -> None:
        """Move the log start of partition 0 up."""
        self.wait(self.send_delete_records(offset, to=self._world.lead(group), topic=topic))

    def send_delete_records(self, offset: int, *, to: Machine, topic: str = "t") -> Asked:
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        body = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=TIMEOUT_MS
        )
        return to.request(ApiKey.DELETE_RECORDS, 2, body)

    def wait(self, asked: Asked) -> Asked:
        self._world.run_until(lambda: asked.is_answered)
        return asked

    def _times(self, values: Sequence[bytes]) -> tuple[int, ...]:
        return (self._world.now_ms,) * len(values)


def produced(asked: Asked) -> PartitionProduceResponse:
    (response,) = asked.answer(ProduceResponse).responses
    (answer,) = response.partition_responses
    return answer


def fetched(asked: Asked) -> PartitionData:
    (response,) = asked.answer(FetchResponse).responses
    (data,) = response.partitions
    return data
