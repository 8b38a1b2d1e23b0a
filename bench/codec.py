"""Codec benchmark: microseconds per call for the messages of the hot path. Run: python -m bench.codec

Each figure is the best of several rounds, since the other load of a machine only ever adds.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial

from tidings.protocol.codec import (
    ApiKey,
    request_decoder,
    request_encoder,
    response_decoder,
    response_encoder,
)
from tidings.protocol.framing import FrameSplitter, encode_response_frame, parse_request_header
from tidings.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidings.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidings.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ROUNDS = 9
CALLS = 5_000
RECORDS = bytes(16 * 1024)
TOPIC_ID = bytes(range(16))


def main() -> None:
    for title, call in _cases():
        seconds = min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS
        print(f"{title:<58}{seconds * 1e6:8.2f} us")


def _cases() -> list[tuple[str, Callable[[], object]]]:
    return [*_produce_cases(), *_fetch_cases(), *_metadata_cases(), *_framing_cases()]


def _produce_cases() -> list[tuple[str, Callable[[], object]]]:
    cases: list[tuple[str, Callable[[], object]]] = []
    for version in (9, 13):
        request = _produce_request()
        encode = request_encoder(ApiKey.PRODUCE, version)
        decode = request_decoder(ApiKey.PRODUCE, version)
        frame = b"".join(encode(request))
        respond = response_encoder(ApiKey.PRODUCE, version)
        response = _produce_response()
        cases += [
            (f"Produce {version} request decode, 1 partition of 16 KiB", partial(decode, frame, 0)),
            (f"Produce {version} request encode", partial(encode, request)),
            (f"Produce {version} response encode", partial(respond, response)),
        ]
    return cases


def _fetch_cases() -> list[tuple[str, Callable[[], object]]]:
    cases: list[tuple[str, Callable[[], object]]] = []
    for version in (12, 18):
        request = _fetch_request()
        decode = request_decoder(ApiKey.FETCH, version)
        frame = b"".join(request_encoder(ApiKey.FETCH, version)(request))
        response = _fetch_response()
        encode = response_encoder(ApiKey.FETCH, version)
        response_frame = b"".join(encode(response))
        read = response_decoder(ApiKey.FETCH, version)
        cases += [
            (f"Fetch {version} request decode, 1 partition", partial(decode, frame, 0)),
            (f"Fetch {version} response encode, 1 partition of 16 KiB", partial(encode, response)),
            (f"Fetch {version} response decode", partial(read, response_frame, 0)),
        ]
    return cases


def _metadata_cases() -> list[tuple[str, Callable[[], object]]]:
    response = _metadata_response(topics=10, partitions=6)
    encode = response_encoder(ApiKey.METADATA, 12)
    decode = response_decoder(ApiKey.METADATA, 12)
    frame = b"".join(encode(response))
    return [
        ("Metadata 12 response encode, 10 topics x 6 partitions", partial(encode, response)),
        ("Metadata 12 response decode, 10 topics x 6 partitions", partial(decode, frame, 0)),
    ]


def _framing_cases() -> list[tuple[str, Callable[[], object]]]:
    body = b"".join(request_encoder(ApiKey.PRODUCE, 9)(_produce_request()))
    frame = b"\x00\x00\x00\x09\x00\x00\x00\x01\x00\x07rdkafka\x00" + body
    framed = len(frame).to_bytes(4, "big") + frame
    splitter = FrameSplitter(frame_bytes_max=2**24)
    chunks = [bytes(64 * 1024)] * 16
    large = [(2**20).to_bytes(4, "big"), *chunks]
    response = _produce_response()
    return [
        ("Request header parse", partial(parse_request_header, frame)),
        ("Produce 9 response as a frame", partial(encode_response_frame, ApiKey.PRODUCE, 9, 1, response)),
        ("Frame splitter, a chunk of one 16 KiB frame", partial(splitter.feed, framed)),
        ("Frame splitter, 1 MiB in chunks of 64 KiB", lambda: [splitter.feed(chunk) for chunk in large]),
    ]


def _produce_request() -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=memoryview(RECORDS))
    topic = TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _produce_response() -> ProduceResponse:
    partition = PartitionProduceResponse(index=3, base_offset=1_000_000, log_start_offset=0)
    topic = TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def _fetch_request() -> FetchRequest:
    partition = FetchPartition(partition=3, fetch_offset=1_000_000, partition_max_bytes=2**20)
    topic = FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=[partition])
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def _fetch_response() -> FetchResponse:
    partition = PartitionData(
        partition_index=3, high_watermark=1_000_100, last_stable_offset=1_000_100, records=[RECORDS]
    )
    return FetchResponse(
        responses=[FetchableTopicResponse(topic="orders", topic_id=TOPIC_ID, partitions=[partition])]
    )


def _metadata_response(*, topics: int, partitions: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=9092 + node) for node in range(3)
        ],
        cluster_id="cluster",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{topic}",
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=partition,
                        leader_id=partition % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for partition in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


if __name__ == "__main__":
    main()
