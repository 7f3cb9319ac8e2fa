"""The fake's OTLP endpoint: what a Langfuse makes of spans, by its own mapping, for what Langfuse SDKs send.

`rows_of(spans)` is the mapping alone. Observations of SDKs are mapped as recorded; of other clients type, model, name
and contents are mapped in the order in which a server looks for them, as far as `CONTENTS` and `TYPES` go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from integrations.otlp.decode import decode_spans
from integrations.raw import RawSpan
from tests.fakes.langfuse.observations import observations_of
from tests.fakes.langfuse.server import FakeLangfuse, Request, Route, answer
from tests.fakes.openai import Act

_OBSERVATION, _TRACE = "langfuse.observation.", "langfuse.trace."
TYPES = {"LLM": "GENERATION", "chat": "GENERATION", "text_completion": "GENERATION", "generate_content": "GENERATION",
         "embeddings": "EMBEDDING", "invoke_agent": "AGENT", "create_agent": "AGENT",
         "execute_tool": "TOOL"}  # fmt: skip
CONTENTS = {
    "input": ("langfuse.observation.input", "traceloop.entity.input", "input.value", "gen_ai.input.messages",
              "gen_ai.tool.call.arguments"),
    "output": ("langfuse.observation.output", "traceloop.entity.output", "output.value", "gen_ai.output.messages",
               "gen_ai.tool.call.result"),
}  # fmt: skip
_MODELS = ("langfuse.observation.model.name", "gen_ai.response.model", "gen_ai.request.model", "llm.model_name")


def part(fake: FakeLangfuse) -> list[Route]:
    def traces(request: Request) -> Act:
        observations_of(fake).put(*rows_of(decode_spans(request.raw)))
        return answer({})

    return [("POST", "/otel/v1/traces", traces)]


def rows_of(spans: Iterable[RawSpan]) -> list[dict[str, Any]]:
    return [_row(span) for span in spans]


def _row(span: RawSpan) -> dict[str, Any]:
    held = span.attributes
    sdk = span.scope_name.startswith("langfuse-sdk")
    contents = {column: _first(held, keys) for column, keys in CONTENTS.items()}
    hinted = held.get("langfuse.internal.is_app_root") is True
    row: dict[str, Any] = {
        "id": span.span_id, "traceId": span.trace_id, "parentObservationId": span.parent_id or "",
        "startTime": _time(span.start_ns), "endTime": _time(span.end_ns), "type": _type(span),
        "name": _first(held, ("gen_ai.tool.name",)) or span.name,
        "level": held.get(_OBSERVATION + "level") or ("ERROR" if span.status_code == 2 else "DEFAULT"),
        "statusMessage": held.get(_OBSERVATION + "status_message") or span.status_message,
        "environment": _first(held, ("langfuse.environment",))
        or _first(span.resource, ("langfuse.environment", "deployment.environment.name", "deployment.environment"))
        or "default",
        "userId": _first(held, ("langfuse.user.id", "user.id")) or "",
        "sessionId": _first(held, ("langfuse.session.id", "session.id", "gen_ai.conversation.id")) or "",
        "traceName": _first(held, (_TRACE + "name",)) or "",
        "release": _first(held, ("langfuse.release",)) or span.resource.get("langfuse.release") or "",
        "version": held.get("langfuse.version") or "", "tags": _tags(held.get(_TRACE + "tags")),
        "isRootObservation": span.parent_id is None or hinted,
        "model": _first(held, _MODELS) if _type(span) != "AGENT" else "",
        **{column: None if value is None else _text(value) for column, value in contents.items()},
        "usageDetails": _totalled(_read(held.get(_OBSERVATION + "usage_details")) or _tokens(held)),
        "costDetails": _read(held.get(_OBSERVATION + "cost_details")) or {},
        "modelParameters": _read(held.get(_OBSERVATION + "model.parameters")) or {},
        "metadata": _metadata(span, sdk=sdk),
    }  # fmt: skip
    return row


def _type(span: RawSpan) -> str:
    said = span.attributes.get(_OBSERVATION + "type")
    if isinstance(said, str):
        return said.upper()
    kind = span.attributes.get("openinference.span.kind") or span.attributes.get("gen_ai.operation.name")
    return TYPES.get(kind, kind.upper()) if isinstance(kind, str) else "SPAN"


def _metadata(span: RawSpan, *, sdk: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in span.attributes.items():
        for prefix in (_TRACE + "metadata", _OBSERVATION + "metadata"):
            if key == prefix:
                read = _read(value)
                found.update(_flat(read) if isinstance(read, dict) else {})
            elif key.startswith(prefix + "."):
                found[key[len(prefix) + 1 :]] = _read(value)
    used = {key for keys in CONTENTS.values() for key in keys}
    if not sdk:
        found |= {f"attributes.{k}": v for k, v in span.attributes.items() if k not in used}
    found |= {"scope.name": span.scope_name, "scope.version": span.scope_version}
    return found | {f"resourceAttributes.{key}": value for key, value in span.resource.items()}


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects under dotted keys; lists by their places."""
    found: dict[str, Any] = {}
    for key, each in value.items():
        inner = {str(i): item for i, item in enumerate(each)} if isinstance(each, list) else each
        if isinstance(inner, dict) and inner:
            found |= _flat(inner, f"{prefix}{key}.")
        else:
            found[prefix + key] = each
    return found


def _totalled(usage: Mapping[str, Any]) -> dict[str, Any]:
    """A total that nobody gave is the sum of everything."""
    counted = [each for each in usage.values() if isinstance(each, int)]
    return {**usage, "total": usage.get("total", sum(counted))} if counted else {}


def _tokens(held: Mapping[str, Any]) -> dict[str, int]:
    """Input without what was cached, as the server counts."""
    read = held.get("gen_ai.usage.input_tokens", held.get("llm.token_count.prompt"))
    made = held.get("gen_ai.usage.output_tokens", held.get("llm.token_count.completion"))
    cached = held.get("gen_ai.usage.cache_read.input_tokens", held.get("llm.token_count.prompt_details.cache_read"))
    if not isinstance(read, int) or not isinstance(made, int):
        return {}
    more = {"input_cached_tokens": cached} if isinstance(cached, int) and cached else {}
    return {"input": read - sum(more.values()), "output": made, **more, "total": read + made}


def _first(held: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((held[key] for key in keys if held.get(key) not in (None, "")), None)


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _tags(value: Any) -> list[str]:
    read = _read(value)
    if isinstance(read, str):
        return [part.strip() for part in read.split(",") if part.strip()]
    return [str(tag) for tag in read] if isinstance(read, list) else []


def _time(ns: int) -> str:
    at = datetime.fromtimestamp(ns // 10**9, UTC).replace(microsecond=ns // 10**6 % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
