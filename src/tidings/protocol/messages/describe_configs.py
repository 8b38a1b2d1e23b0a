"""DescribeConfigs (key 32), versions 1-4: the settings of topics and brokers and where each comes from.

1 brought the source of a setting and its synonyms (KIP-226), 2 answers before throttling, 3 adds type and
documentation (KIP-569). 4 is flexible. Null keys ask for all settings.
"""

from __future__ import annotations

from tidings.protocol.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    nullable_string_array,
    string,
)


class DescribeConfigsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = nullable_string_array(nullable_since=0)


class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


class DescribeConfigsSynonym(Struct):
    name: str = string()
    value: str | None = string(nullable_since=0)
    source: int = int8()


class DescribeConfigsResourceResult(Struct):
    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = int8(since=3)
    documentation: str | None = string(since=3, nullable_since=0)


class DescribeConfigsResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message):
    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
