"""ApiVersions (key 18), versions 0-4: which requests are served. The first request of most clients.

A version above is answered in version 0 with UNSUPPORTED_VERSION and the whole list, from which the client
picks another.
Left out: features (KIP-584), of which none is supported yet.
The one rule: what is advertised is served, but for Produce 0-2 (apis.py says why).
Tests: tests/broker/handlers/test_api_versions.py
"""

from __future__ import annotations

import re

from tidings.broker.requests import Request
from tidings.broker.site import Site
from tidings.protocol.apis import ADVERTISED_API_VERSIONS, ApiKey, is_served
from tidings.protocol.errors import ErrorCode
from tidings.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tidings.protocol.schema import Message

_SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511


def handle(site: Site, request: Request, now_ms: int) -> Message | None:
    body = request.body
    assert isinstance(body, ApiVersionsRequest), body
    if not is_served(ApiKey.API_VERSIONS, request.api_version):
        return unsupported_version()
    if request.api_version >= _SOFTWARE_SINCE:
        named = (body.client_software_name, body.client_software_version)
        if not all(_SOFTWARE.fullmatch(text) for text in named):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=_api_keys())


def unsupported_version() -> ApiVersionsResponse:
    """The answer, to be written in version 0, to a version that is not served."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_api_keys())


def _api_keys() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(ADVERTISED_API_VERSIONS.items())
    ]
