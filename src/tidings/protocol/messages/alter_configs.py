"""AlterConfigs (key 33), versions 0-2: replace all settings of a topic or broker.

IncrementalAlterConfigs is its successor, but KafkaJS uses it. 1 answers before throttling. 2 is flexible.
"""

from __future__ import annotations

from tidings.protocol.schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = string()
    value: str | None = string(nullable_since=0)


class AlterConfigsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()


class AlterConfigsResponse(Message):
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
