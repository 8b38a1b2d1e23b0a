"""ApiVersions (key 18), versions 0-4: which APIs and features a broker serves.

1 adds the throttle time. 3 is flexible, names the client's software and lists features (KIP-511, KIP-584);
the response *header* stays the old one, since a client that asks cannot know yet what the broker speaks. 4
allows a feature's lowest version to be 0. A version above is answered in version 0 with UNSUPPORTED_VERSION
and the list.
"""

from __future__ import annotations

from tidings.protocol.schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message):
    client_software_name: str = string(since=3)
    client_software_version: str = string(since=3)


class ApiVersion(Struct):
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


class FinalizedFeatureKey(Struct):
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


class ApiVersionsResponse(Message):
    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, tag=0, since=3)
    finalized_features_epoch: int = int64(tag=1, since=3, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, tag=2, since=3)
    zk_migration_ready: bool = boolean(tag=3, since=3)
