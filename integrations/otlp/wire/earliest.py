"""The earliest start of the spans in a kept chunk."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from .kept import LOGS
from .schema import classes


def earliest_start(payload: bytes) -> int | None:
    """When the first span of a chunk began, in ns since the epoch; None where no span can be read."""
    if payload[:1] == LOGS:
        return None
    try:
        request = classes("flat")["Request"].FromString(payload)
    except DecodeError:
        return None
    return min(
        (span.start for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans),
        default=None,
    )
