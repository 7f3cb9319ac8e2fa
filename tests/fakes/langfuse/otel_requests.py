"""The fake's OTLP endpoint: what it takes, and what it refuses in which words, as recorded of 4.16.

Spans become observations by `rows_of`. An answer of 200 is the job in the server's queue, not an OTLP response.
"""

from __future__ import annotations

import gzip
import json
import uuid
import zlib
from collections.abc import Iterator
from typing import Any

from sidejudge.integrations.otlp.wire.decode import UndecodableError, decode_spans
from sidejudge.integrations.otlp.wire.decode_json import decode_json
from sidejudge.integrations.raw import RawSpan
from tests.fakes.langfuse.observations import observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import FakeLangfuse, Request, Route, answer, page
from tests.fakes.openai import Act

_IDS = "traceId and spanId are required on every span, and each must be a string or a byte array."
_ARRAYS = (
    "scopeSpans, spans, attributes and events must all be arrays — OTLP attributes are a list of {key, value} entries, "
    "not a JSON object."
)


def part(fake: FakeLangfuse) -> list[Route]:
    """Traces are taken, metrics answered and dropped; logs are a page of the web application."""

    def traces(request: Request) -> Act:
        version = request.headers.get("x-langfuse-ingestion-version", "")
        if version and not version.isdigit():
            return answer({"error": f'Invalid x-langfuse-ingestion-version: "{version}".'}, 400)
        if version and int(version) > 4:
            stated = f'Unsupported x-langfuse-ingestion-version: "{version}". Maximum supported: "4".'
            return answer({"error": stated}, 400)
        try:
            spans = _spans(request)
        except _Refused as refused:
            return answer({"error": str(refused)}, 400)
        if not spans:
            return answer({})
        observations_of(fake).put(*rows_of(spans))
        return answer(_job(fake, version, request))

    return [
        ("POST", "/otel/v1/traces", traces),
        ("POST", "/otel/v1/metrics", lambda _: answer({"message": "OK"})),
        ("POST", "/otel/v1/logs", lambda _: page()),
    ]


class _Refused(Exception):  # noqa: N818 - it names what became of the request
    pass


def _spans(request: Request) -> list[RawSpan]:
    body, kind = request.raw, request.headers.get("content-type", "")
    if request.headers.get("content-encoding") == "gzip":
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            raise _Refused("Failed to decompress request body") from None
    if "application/x-protobuf" in kind:
        try:
            return decode_spans(body)
        except UndecodableError:
            raise _Refused("Failed to parse OTel Protobuf Trace") from None
    if "application/json" not in kind:
        raise _Refused("Invalid content type")
    try:
        parsed = json.loads(body)
    except ValueError:
        raise _Refused("Failed to parse OTel JSON Trace") from None
    _examine(parsed)
    return decode_json(body).spans


def _examine(parsed: dict[str, Any]) -> None:
    """One span that cannot be processed has the whole export refused."""
    every = list(_each(parsed))
    wrong = [(scope, span) for scope, span in every if _faults(span)]
    if not wrong:
        return
    scopes = ", ".join(dict.fromkeys(scope for scope, _ in wrong))
    why = _IDS if "spanId" in (found := _faults(wrong[0][1])) or "traceId" in found else _ARRAYS
    raise _Refused(
        f"Invalid OTLP trace export: {len(wrong)} of {len(every)} span(s) cannot be processed ({found}). {why} "
        f"The entire export was rejected and no spans were ingested. Instrumentation scopes: {scopes}. This "
        "endpoint accepts OpenTelemetry traces only — if you are exporting OpenTelemetry logs, point your log exporter "
        "elsewhere."
    )


def _each(parsed: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource_spans in parsed.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            name = scope_spans.get("scope", {}).get("name", "")
            for span in scope_spans.get("spans", []):
                yield name, span


def _faults(span: dict[str, Any]) -> str:
    absent = [f"{key}:absent" for key in ("traceId", "spanId") if key not in span]
    odd = [f"{key}:not_an_array" for key in ("attributes", "events") if not isinstance(span.get(key, []), list)]
    return ", ".join(absent or odd)


def _job(fake: FakeLangfuse, version: str, request: Request) -> dict[str, Any]:
    made, now, project = str(uuid.uuid4()), fake.now, fake.project["id"]
    key = f"events/otel/{project}/{uuid.uuid4()}.json"
    payload = {
        "data": {"fileKey": key, "publicKey": "pk-lf-test"},
        "authCheck": {
            "validKey": True, "scope": {"projectId": project, "accessLevel": "project", "orgId": "org-test"},
        },
        "sdkName": request.headers.get("x-langfuse-sdk-name", "unknown"),
        "sdkVersion": request.headers.get("x-langfuse-sdk-version", "unknown"), "ingestionVersion": version,
    }  # fmt: skip
    return {
        "name": "otel-ingestion-job",
        "data": {"id": made, "timestamp": now, "name": "otel-ingestion-job", "payload": payload},
        "opts": {
            "attempts": 6, "removeOnComplete": True, "removeOnFail": 100000,
            "backoff": {"type": "exponential", "delay": 5000}, "traceparent": "", "baggage": "",
        },
        "id": made, "progress": 0, "returnvalue": None, "stacktrace": None, "priority": 0, "attemptsStarted": 0,
        "attemptsMade": 0, "stalledCounter": 0, "timestamp": 0, "queueQualifiedName": "bull:otel-ingestion-queue",
    }  # fmt: skip
