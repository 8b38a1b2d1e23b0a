"""The generated readers and writers: round trips, versions, nulls, tagged fields, records without copies."""

from __future__ import annotations

import pytest

from tests.protocol.message_values import make_message, served_versions
from tidings.protocol.apis import APIS, ApiKey, is_flexible
from tidings.protocol.codec import request_decoder, request_encoder, response_decoder, response_encoder
from tidings.protocol.decoding import PADDING_BYTES_MAX, compile_decoder
from tidings.protocol.encoding import compile_encoder
from tidings.protocol.errors import ProtocolError
from tidings.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from tidings.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponsePartition,
)
from tidings.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tidings.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidings.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    bytestring,
    float64,
    int32,
    string,
    tagged_struct,
    uuid,
)

TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_request_reads_back_as_what_was_written(key: ApiKey, version: int) -> None:
    for seed in range(20):
        message = make_message(APIS[key].request, version, seed)

        frame = b"".join(request_encoder(key, version)(message))

        assert request_decoder(key, version)(frame, 0) == message, seed


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_response_reads_back_as_what_was_written(key: ApiKey, version: int) -> None:
    for seed in range(20):
        message = make_message(APIS[key].response, version, seed)

        frame = b"".join(response_encoder(key, version)(message))

        assert response_decoder(key, version)(frame, 0) == message, seed


@pytest.mark.parametrize(("key", "version"), served_versions())
def test_a_message_of_defaults_can_be_written_in_every_version(key: ApiKey, version: int) -> None:
    frame = b"".join(response_encoder(key, version)(APIS[key].response()))

    assert response_decoder(key, version)(frame, 0) == APIS[key].response()


def test_reading_starts_at_the_given_position() -> None:
    frame = b"header" + b"".join(request_encoder(ApiKey.METADATA, 9)(MetadataRequest(topics=None)))

    message = request_decoder(ApiKey.METADATA, 9)(frame, 6)

    assert message == MetadataRequest(topics=None)


def test_a_few_bytes_after_the_message_are_skipped() -> None:
    all_topics = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    as_librdkafka_asks = bytes.fromhex("00000000010000")

    assert request_decoder(ApiKey.METADATA, 13)(as_librdkafka_asks, 0) == all_topics


def test_a_frame_that_is_mostly_padding_is_refused() -> None:
    frame = b"".join(request_encoder(ApiKey.METADATA, 9)(MetadataRequest(topics=None)))
    decode = request_decoder(ApiKey.METADATA, 9)

    assert decode(frame + bytes(PADDING_BYTES_MAX), 0) == MetadataRequest(topics=None)
    with pytest.raises(ProtocolError, match="frame longer than its message"):
        decode(frame + bytes(PADDING_BYTES_MAX + 1), 0)


def test_a_field_of_another_version_is_not_written_and_reads_as_its_default() -> None:
    request = ProduceRequest(topic_data=[TopicProduceData(name="orders", topic_id=TOPIC_ID)])

    by_name = request_decoder(ApiKey.PRODUCE, 12)(b"".join(request_encoder(ApiKey.PRODUCE, 12)(request)), 0)
    by_id = request_decoder(ApiKey.PRODUCE, 13)(b"".join(request_encoder(ApiKey.PRODUCE, 13)(request)), 0)

    assert by_name == ProduceRequest(topic_data=[TopicProduceData(name="orders")])
    assert by_id == ProduceRequest(topic_data=[TopicProduceData(topic_id=TOPIC_ID)])


def test_produced_records_are_a_slice_of_the_frame() -> None:
    records = b"a record batch"
    partition = PartitionProduceData(records=memoryview(records))
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[partition])])
    frame = b"".join(request_encoder(ApiKey.PRODUCE, 9)(request))

    message = request_decoder(ApiKey.PRODUCE, 9)(frame, 0)

    assert isinstance(message, ProduceRequest)
    read = message.topic_data[0].partition_data[0].records
    assert read is not None
    assert read.obj is frame
    assert read == records


@pytest.mark.parametrize("version", [4, 12, 18])
def test_fetched_records_are_handed_on_as_they_came(version: int) -> None:
    pieces: list[bytes | memoryview] = [b"first batch", memoryview(b"second batch")]
    partitions = [PartitionData(records=pieces), PartitionData(records=[b"third batch"])]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])

    buffers = response_encoder(ApiKey.FETCH, version)(response)

    handed_on = [buffer for buffer in buffers if b"batch" in bytes(buffer)]
    assert [id(buffer) for buffer in handed_on] == [id(piece) for piece in (*pieces, *partitions[1].records)]
    read = response_decoder(ApiKey.FETCH, version)(b"".join(buffers), 0)
    assert isinstance(read, FetchResponse)
    assert [partition.records for partition in read.responses[0].partitions] == [
        [b"first batchsecond batch"],
        [b"third batch"],
    ]


@pytest.mark.parametrize(("version", "length_bytes"), [(11, b"\0\0\0\0"), (12, b"\1")])
def test_no_records_are_an_empty_byte_string_and_not_null(version: int, length_bytes: bytes) -> None:
    encode = response_encoder(ApiKey.FETCH, version)

    empty = b"".join(encode(FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])))

    tags_of_three_structs = b"\0\0\0" if is_flexible(ApiKey.FETCH, version) else b""
    assert empty.endswith(length_bytes + tags_of_three_structs)


def test_answers_that_java_clients_want_without_nulls_have_none_by_default() -> None:
    partition = DescribeTopicPartitionsResponsePartition()

    assert partition.eligible_leader_replicas == []
    assert partition.last_known_elr == []
    assert CreatableTopicResult().configs == []


def test_a_null_is_refused_in_a_version_that_has_none() -> None:
    with_null = b"".join(
        request_encoder(ApiKey.METADATA, 10)(MetadataRequest(topics=[MetadataRequestTopic(name=None)]))
    )
    without_topic_id = with_null[:1] + with_null[17:]

    with pytest.raises(ProtocolError, match=r"null where none is allowed \(field=name\)"):
        request_decoder(ApiKey.METADATA, 9)(without_topic_id, 0)


def test_a_negative_length_other_than_null_is_refused() -> None:
    transactional_id_of_minus_two_bytes = b"\xff\xfe"

    with pytest.raises(ProtocolError, match="negative length"):
        request_decoder(ApiKey.PRODUCE, 3)(transactional_id_of_minus_two_bytes + bytes(10), 0)


def test_text_that_is_not_utf8_is_refused() -> None:
    frame = b"".join(
        request_encoder(ApiKey.METADATA, 4)(MetadataRequest(topics=[MetadataRequestTopic(name="ab")]))
    )

    with pytest.raises(ProtocolError, match="malformed"):
        request_decoder(ApiKey.METADATA, 4)(frame.replace(b"ab", b"a\xff"), 0)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_an_array_count_beyond_the_frame_is_refused_before_anything_is_made(version: int) -> None:
    compact = is_flexible(ApiKey.PRODUCE, version)
    start = (b"\0" if compact else b"\xff\xff") + bytes(6)
    count = b"\xff\xff\xff\xff\x0f" if compact else b"\x7f\xff\xff\xff"

    with pytest.raises(ProtocolError, match="array longer than its frame"):
        request_decoder(ApiKey.PRODUCE, version)(start + count + bytes(1000), 0)


def test_more_elements_than_the_budget_of_a_message_are_refused() -> None:
    topics = b"".join((b"\x81\x80\x20", b"\1\1\0" * (2**19), b"\0"))
    start = bytes(7)

    with pytest.raises(ProtocolError, match="too many array elements"):
        request_decoder(ApiKey.PRODUCE, 9)(start + topics, 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    # count 2 | tag 5, 3 bytes | tag 300, 0 bytes
    unknown = b"\x02" + b"\x05\x03abc" + b"\xac\x02\x00"
    frame = b"".join(request_encoder(ApiKey.METADATA, 12)(MetadataRequest(topics=None)))
    assert frame.endswith(b"\0")

    message = request_decoder(ApiKey.METADATA, 12)(frame[:-1] + unknown, 0)

    assert message == MetadataRequest(topics=None)


def test_unknown_tagged_fields_are_skipped_among_known_ones() -> None:
    # count 3 | tag 0, the cluster's id | tag 1, the replica's state | tag 9, 1 byte
    tagged = b"\x03" + b"\x00\x03\x03ab" + b"\x01\x0d\0\0\0\7\0\0\0\0\0\0\0\1\0" + b"\x09\x01x"
    frame = b"".join(request_encoder(ApiKey.FETCH, 15)(FetchRequest()))

    message = request_decoder(ApiKey.FETCH, 15)(frame[:-1] + tagged, 0)

    assert isinstance(message, FetchRequest)
    assert message.cluster_id == "ab"
    assert message.replica_state is not None
    assert message.replica_state.replica_id == 7


def test_a_tagged_field_that_does_not_fill_its_size_is_refused() -> None:
    frame = b"".join(request_encoder(ApiKey.FETCH, 15)(FetchRequest()))

    with pytest.raises(ProtocolError, match="does not fill its size"):
        request_decoder(ApiKey.FETCH, 15)(frame[:-1] + b"\x01\x00\x04\x03ab!", 0)


@pytest.mark.parametrize("version", [9, 13, 15])
def test_more_tagged_fields_than_the_budget_are_refused(version: int) -> None:
    key = ApiKey.FETCH if version == 15 else ApiKey.METADATA
    message = FetchRequest() if version == 15 else MetadataRequest()
    frame = b"".join(request_encoder(key, version)(message))

    with pytest.raises(ProtocolError, match="too many array elements"):
        request_decoder(key, version)(frame[:-1] + b"\x81\x80\x10" + bytes(2**19), 0)


def test_a_tagged_struct_of_defaults_is_not_sent() -> None:
    absent = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1))
    defaults = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])

    encode = response_encoder(ApiKey.FETCH, 16)

    assert b"".join(encode(defaults)) == b"".join(encode(absent))


def test_a_struct_behind_a_presence_byte_may_be_null() -> None:
    encode = request_encoder(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    decode = request_decoder(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    with_cursor = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="orders", partition_index=3))

    assert decode(b"".join(encode(with_cursor)), 0) == with_cursor
    assert decode(b"".join(encode(DescribeTopicPartitionsRequest())), 0) == DescribeTopicPartitionsRequest()


def test_encoding_leaves_the_message_as_it_was() -> None:
    response = CreateTopicsResponse(topics=[CreatableTopicResult(name="orders", configs=None)])

    first = response_encoder(ApiKey.CREATE_TOPICS, 7)(response)
    second = response_encoder(ApiKey.CREATE_TOPICS, 7)(response)

    assert first == second


def test_functions_are_compiled_once() -> None:
    assert request_decoder(ApiKey.PRODUCE, 9) is request_decoder(0, 9)


def test_asking_for_what_is_not_served_is_the_callers_mistake() -> None:
    with pytest.raises(AssertionError):
        request_decoder(ApiKey.PRODUCE, 2)


class _Reading(Struct):
    value: float = float64()


class _Sample(Message):
    payload: bytes = bytestring()
    notes: str | None = string(since=1, nullable_since=2)
    readings: list[_Reading] = array(_Reading)
    identity: bytes = uuid(tag=1, since=2)
    size: int = int32(tag=0, since=2, default=-1)
    newest: _Reading | None = tagged_struct(_Reading, tag=2, since=2)


@pytest.mark.parametrize(("version", "flexible"), [(0, False), (1, False), (2, True)])
def test_kinds_that_no_served_message_uses_yet_work_alike(version: int, flexible: bool) -> None:
    encode = compile_encoder(_Sample, version, flexible=flexible)
    decode = compile_decoder(_Sample, version, flexible=flexible)
    for seed in range(20):
        message = make_message(_Sample, version, seed)

        assert decode(b"".join(encode(message)), 0) == message


def test_tagged_fields_go_out_in_the_order_of_their_tags() -> None:
    message = _Sample(identity=TOPIC_ID, size=5, newest=_Reading(value=1.0))

    encoded = b"".join(compile_encoder(_Sample, 2, flexible=True)(message))

    assert encoded == b"".join(
        (
            b"\x01\x01\x01",  # empty payload, empty notes, no readings
            b"\x03",  # three tagged fields
            b"\x00\x04\0\0\0\5",
            b"\x01\x10" + TOPIC_ID,
            b"\x02\x09\x3f\xf0\0\0\0\0\0\0\0",
        )
    )


def test_large_values_take_lengths_of_several_bytes() -> None:
    message = _Sample(payload=bytes(300), notes="n" * 20_000, readings=[_Reading()] * 200)

    encoded = b"".join(compile_encoder(_Sample, 2, flexible=True)(message))

    assert compile_decoder(_Sample, 2, flexible=True)(encoded, 0) == message
