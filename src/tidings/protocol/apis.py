"""APIs: which requests are served, in which versions, and the messages of each. One row per API.

The one rule: what has no row here is not served, and what is served is advertised exactly (but see Produce).
Nothing here knows bytes or what a request does. Tests: tests/protocol/test_apis.py
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tidings.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from tidings.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidings.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from tidings.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tidings.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from tidings.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tidings.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tidings.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from tidings.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tidings.protocol.messages.fetch import FetchRequest, FetchResponse
from tidings.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tidings.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidings.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidings.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tidings.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidings.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from tidings.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidings.protocol.schema import Message


class ApiKey(IntEnum):
    """The served APIs by their numbers."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    CREATE_PARTITIONS = 37
    INCREMENTAL_ALTER_CONFIGS = 44
    DESCRIBE_CLUSTER = 60
    DESCRIBE_TOPIC_PARTITIONS = 75


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `flexible_since` is the first version with compact lengths and tagged fields (KIP-482)."""

    key: ApiKey
    version_min: int
    version_max: int
    flexible_since: int
    request: type[Message]
    response: type[Message]


# key, lowest version, highest version, first flexible version, messages
_ROWS = (
    Api(ApiKey.PRODUCE, 3, 13, 9, ProduceRequest, ProduceResponse),
    Api(ApiKey.FETCH, 4, 18, 12, FetchRequest, FetchResponse),
    Api(ApiKey.LIST_OFFSETS, 1, 11, 6, ListOffsetsRequest, ListOffsetsResponse),
    Api(ApiKey.METADATA, 0, 13, 9, MetadataRequest, MetadataResponse),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, 3, FindCoordinatorRequest, FindCoordinatorResponse),
    Api(ApiKey.API_VERSIONS, 0, 4, 3, ApiVersionsRequest, ApiVersionsResponse),
    Api(ApiKey.CREATE_TOPICS, 2, 7, 5, CreateTopicsRequest, CreateTopicsResponse),
    Api(ApiKey.DELETE_TOPICS, 1, 6, 4, DeleteTopicsRequest, DeleteTopicsResponse),
    Api(ApiKey.DELETE_RECORDS, 0, 2, 2, DeleteRecordsRequest, DeleteRecordsResponse),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 5, 2, InitProducerIdRequest, InitProducerIdResponse),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4, DescribeConfigsRequest, DescribeConfigsResponse),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, 2, AlterConfigsRequest, AlterConfigsResponse),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, 2, CreatePartitionsRequest, CreatePartitionsResponse),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        0,
        1,
        1,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    ),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, DescribeClusterRequest, DescribeClusterResponse),
    Api(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        0,
        0,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    ),
)

APIS: dict[int, Api] = {api.key: api for api in _ROWS}

API_VERSIONS: dict[int, tuple[int, int]] = {api.key: (api.version_min, api.version_max) for api in _ROWS}

# Produce 0-2 are not served, but old librdkafka turns compression off towards a broker that does not list
# them (KAFKA-18659), so Kafka lists them too.
ADVERTISED_API_VERSIONS: dict[int, tuple[int, int]] = API_VERSIONS | {
    ApiKey.PRODUCE: (0, API_VERSIONS[ApiKey.PRODUCE][1])
}


def is_served(api_key: int, version: int) -> bool:
    versions = API_VERSIONS.get(api_key)
    return versions is not None and versions[0] <= version <= versions[1]


def is_flexible(api_key: int, version: int) -> bool:
    """Whether lengths are compact and tagged fields travel. False for an API that is not known."""
    api = APIS.get(api_key)
    return api is not None and version >= api.flexible_since
