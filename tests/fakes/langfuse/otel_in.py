"""What a Langfuse makes of spans, whoever sent them.

`rows_of(spans)` is the mapping alone: as recorded of 4.16 for Langfuse's own SDKs, and for other clients as the
server's source has it (`OtelIngestionProcessor.processToEvent`, langfuse/langfuse, version 4, summer of 2026). Log
records have no place there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sidejudge.integrations.raw import RawSpan
from tests.fakes.langfuse.otel_contents import Details, contents_of, kept_of
from tests.fakes.langfuse.otel_tools import with_tools
from tests.fakes.langfuse.otel_types import type_of
from tests.fakes.langfuse.otel_usage import cost_of, parameters_of, usage_of
from tests.fakes.langfuse.otel_values import plain, read, text

_OBSERVATION, _TRACE, _AI = "langfuse.observation.", "langfuse.trace.", "ai.telemetry.metadata."
_MODELS = (_OBSERVATION + "model.name", "gen_ai.response.model", "ai.model.id", "gen_ai.request.model",
           "llm.response.model", "llm.model_name", "model")  # fmt: skip
_OWN = frozenset(_AI + each for each in ("userId", "sessionId", "tags", "langfusePrompt"))
_LEVELS = {"INFO": "DEFAULT", "WARN": "WARNING", "FATAL": "ERROR"}


def rows_of(spans: Iterable[RawSpan], *, major: int = 4, details: Details = "first") -> list[dict[str, Any]]:
    """The rows of spans, as a server of this major version makes them; ``details`` as in `contents_of`, for 4."""
    return [_row(span, major, details if major > 3 else "none") for span in spans]


def _row(span: RawSpan, major: int, details: Details) -> dict[str, Any]:
    held = {key: plain(value) for key, value in span.attributes.items()}
    resource = {key: plain(value) for key, value in span.resource.items()}
    requested, answered = contents_of(span, details)
    kept = {} if span.scope_name.startswith("langfuse-sdk") else kept_of(span)
    if major > 3:
        requested, kept = with_tools(requested, kept)
    added: dict[str, Any] = {
        **({"attributes": kept} if kept else {}), "resourceAttributes": resource,
        "scope": {"name": span.scope_name, "version": span.scope_version},
    }  # fmt: skip
    own, of_trace = _stated(held, _OBSERVATION), _stated(held, _TRACE)
    hinted = held.get("langfuse.internal.is_app_root") in (True, "true")
    level = held.get(_OBSERVATION + "level") or ("ERROR" if span.status_code == 2 else "DEFAULT")
    row: dict[str, Any] = {
        "id": span.span_id, "traceId": span.trace_id, "parentObservationId": span.parent_id or "",
        "startTime": _time(span.start_ns), "endTime": _time(span.end_ns), "type": type_of(span),
        "name": _name(span.name, held), "level": _LEVELS.get(level, level),
        "statusMessage": held.get(_OBSERVATION + "status_message") or span.status_message,
        "environment": _environment(held, resource),
        "userId": text(_first(held, (
            "langfuse.user.id", "user.id", _OBSERVATION + "metadata.langfuse_user_id",
            _TRACE + "metadata.langfuse_user_id", _AI + "userId",
        )) or ""),
        "sessionId": text(_first(held, (
            "langfuse.session.id", "session.id", "gen_ai.conversation.id",
            _OBSERVATION + "metadata.langfuse_session_id", _TRACE + "metadata.langfuse_session_id", _AI + "sessionId",
        )) or ""),
        "traceName": _first(held, (_TRACE + "name",)) or "",
        "release": _first(held, ("langfuse.release",)) or resource.get("langfuse.release") or "",
        "version": held.get("langfuse.version") or resource.get("service.version") or "",
        "tags": _tags(_first(held, (
            _TRACE + "tags", "langfuse.tags", _OBSERVATION + "metadata.langfuse_tags",
            _TRACE + "metadata.langfuse_tags", _AI + "tags", "tag.tags",
        ))),
        "isRootObservation": span.parent_id is None or hinted,
        "model": _model(held), "input": _text(requested), "output": _text(answered),
        "usageDetails": usage_of(held, span.scope_name), "costDetails": cost_of(held),
        "modelParameters": parameters_of(held),
        # What the application said goes over what the server adds, and what it said of the trace over the rest.
        "metadata": {key: read(value) for key, value in _flat({**added, **own, **of_trace}).items()},
        # The legacy reads know traces, and keep the two apart.
        "v1": {"observation": {**own, **added},
               "trace": {**of_trace, **(own if span.parent_id is None else {}), **added}},
    }  # fmt: skip
    return row


def _name(name: str, held: Mapping[str, Any]) -> str:
    if named := _first(held, ("gen_ai.tool.name", "genkit:name", "logfire.msg", "ai.toolCall.name")):
        return text(named)
    if "ai.operationId" in held:
        function = held.get("ai.telemetry.functionId")
        return f"{function}:{held['ai.operationId']}" if function else text(held["ai.operationId"])
    return name


def _model(held: Mapping[str, Any]) -> str:
    """None for an agent, whose tokens are those of its calls."""
    if held.get("gen_ai.operation.name") in ("invoke_agent", "agent_step"):
        return ""
    return text(_first(held, _MODELS) or "")


def _environment(held: Mapping[str, Any], resource: Mapping[str, Any]) -> str:
    keys = ("langfuse.environment", "deployment.environment.name", "deployment.environment")
    named = next((value for key in keys for value in (held.get(key), resource.get(key)) if value), "default")
    named = str(named).lower()[:40]
    return named if re.fullmatch(r"[a-z0-9_-]+", named) else "default"


def _stated(held: Mapping[str, Any], domain: str) -> dict[str, Any]:
    """Metadata of the application, of an observation or of its trace."""
    whole = read(held.get(domain + "metadata") or held.get("langfuse.metadata"))
    found: dict[str, Any] = dict(whole) if isinstance(whole, dict) else {}
    for key, value in held.items():
        for prefix in (domain + "metadata.", "langfuse.metadata.", _AI):
            if key.startswith(prefix) and key not in _OWN:
                found[key[len(prefix) :]] = value
    return found


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested objects under dotted keys, everything else as text."""
    found: dict[str, str] = {}
    for key, each in value.items():
        if isinstance(each, dict):
            found |= _flat(each, f"{prefix}{key}.")
        else:
            found[prefix + key] = text(each)
    return found


def _first(held: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((held[key] for key in keys if held.get(key) not in (None, "")), None)


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tags(value: Any) -> list[str]:
    stated = read(value)
    if isinstance(stated, str):
        return [part.strip() for part in stated.split(",")] if stated else []
    return [str(tag) for tag in stated] if isinstance(stated, list) else []


def _time(ns: int) -> str:
    at = datetime.fromtimestamp(ns // 10**9, UTC).replace(microsecond=ns // 10**6 % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
