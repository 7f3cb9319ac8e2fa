"""The OTLP endpoint of a Langfuse: spans become observations, and log records have no place to go.

As `pages/api/public/otel/v1/traces` of 4.16 does it: protobuf or JSON, gzip or nothing, an ingestion version up to 4,
and the whole export refused when an id is malformed. The answer is an object that nobody is meant to read.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from google.protobuf.message import DecodeError

from tests.fakes.collector import Sent, spans_of
from tests.fakes.langfuse.server import FakeLangfuse, Request, Route, answer
from tests.fakes.openai import Act

_TYPES = {"chat": "GENERATION", "invoke_agent": "AGENT", "execute_tool": "TOOL"}


class Otel:
    """``observations`` are what the spans became, as far as own traces need it."""

    def __init__(self, fake: FakeLangfuse) -> None:
        self.fake = fake
        self.observations: list[dict[str, Any]] = []
        self.versions: list[str | None] = []

    def routes(self) -> list[Route]:
        return [("POST", "/otel/v1/traces", self._take)]

    def _take(self, request: Request) -> Act:
        stated = request.headers.get("x-langfuse-ingestion-version")
        if stated is not None and (not stated.isdigit() or int(stated) > 4):
            return answer({"error": "Invalid ingestion version"}, 400)
        if "application/x-protobuf" not in request.headers.get("content-type", ""):
            return answer({"error": "Invalid content type"}, 400)
        try:
            raw = gzip.decompress(request.raw) if request.headers.get("content-encoding") == "gzip" else request.raw
            sent = list(spans_of(raw))
        except (OSError, zlib.error, DecodeError):
            return answer({"error": "Failed to parse OTel Protobuf Trace"}, 400)
        if any(len(s.message.trace_id) != 16 or len(s.message.span_id) != 8 for s in sent):
            return answer({"error": "Malformed ids"}, 400)
        self.versions.append(stated)
        self.observations += [_observation(s) for s in sent]
        return answer({})


def _observation(sent: Sent) -> dict[str, Any]:
    read = sent.attributes
    cost = read.get("langfuse.observation.cost_details")
    return {
        "id": sent.span_id,
        "traceId": sent.trace_id,
        "parentObservationId": sent.message.parent_span_id.hex() or None,
        "type": _TYPES.get(read.get("gen_ai.operation.name", ""), "SPAN"),
        "name": sent.name,
        "level": "ERROR" if sent.message.status.code == 2 else "DEFAULT",
        "environment": read.get("langfuse.environment")
        or sent.resource.get("langfuse.environment")
        or sent.resource.get("deployment.environment.name", "default"),
        "model": read.get("gen_ai.response.model") or read.get("gen_ai.request.model"),
        "usageDetails": {
            name: read[key]
            for name, key in (("input", "gen_ai.usage.input_tokens"), ("output", "gen_ai.usage.output_tokens"))
            if key in read
        },
        "costDetails": json.loads(cost) if cost else {},
        "tags": read.get("langfuse.trace.tags", []),
        "promptName": read.get("langfuse.observation.prompt.name"),
        "promptVersion": read.get("langfuse.observation.prompt.version"),
        "input": read.get("langfuse.observation.input"),
        "metadata": {
            **{f"attributes.{key}": value for key, value in read.items()},
            **{f"resourceAttributes.{key}": value for key, value in sent.resource.items()},
            "scope.name": sent.scope,
        },
    }
