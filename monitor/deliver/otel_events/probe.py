"""Probe: whether the configured endpoint takes own traces and events, found out by requests that hold none."""

from __future__ import annotations

import asyncio

from sidejudge.integrations.delivery_errors import DestinationUnreachableError, RefusedError
from sidejudge.integrations.post import Poster
from sidejudge.monitor.config.otel_events import OtelEventsSink

_PATHS = {"traces": "/v1/traces", "logs": "/v1/logs"}


def try_endpoint(section: OtelEventsSink) -> tuple[str, str]:
    """The finding, and the remedy, empty when all is well."""
    return asyncio.run(_try(section))


async def _try(section: OtelEventsSink) -> tuple[str, str]:
    headers = {"content-type": "application/x-protobuf", **section.sent_headers}
    for signal in section.signals:
        path = _PATHS[signal]
        try:
            await Poster(section.endpoint + path, section.timeout.seconds).post(b"", headers)
        except DestinationUnreachableError as error:
            return f"{path}: {error.reason}", "check sinks.otel_events.endpoint and that it runs"
        except RefusedError as error:
            remedy = "check endpoint, authorization and headers of sinks.otel_events; Langfuse: signals: [traces]"
            return f"{path}: {error.reason}", remedy
    return f"{section.endpoint} takes {' and '.join(section.signals)}", ""
