"""Whatever a client's attributes turn into, its dialect reads them: no dialect chokes, and no extraction does."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace
from tests.conformance.test_dialects import CLIENTS

ROUNDS = 3
"""Ways in which each span is spoilt; every span of a client's six recordings is."""

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 0.5, "", " ", "null", "[]", "{}", '""', "[[]]", "[null]", '{"": null}', "NaN", "1e999",
    '"\\ud800"', "\x00", b"\xff", [], {}, [None], [[]], {"": {}}, ["a", 1, None], "[" * 2000, '{"a":' * 2000,
    "(" * 500, "{'a': <x", "Name(", "9" * 5000, '{"messages": {}}', '{"messages": [[[[[[[[1]]]]]]]]}',
    '[{"role": 1, "content": {"text": {"value": []}}}]', '{"lc": 1, "id": {}, "kwargs": {"type": [], "content": 3}}',
    '[{"role": "assistant", "tool_calls": [1, {"function": []}]}]', '{"args": 1, "kwargs": []}',
    '{"output": {"output": 1}}', '[{"role": "tool", "content": [{"name": "id", "type": ["string", "null"]}]}]',
)  # fmt: skip


SCOPES = (
    "", "langfuse-sdk", "openinference.instrumentation.haystack", "openinference.instrumentation.llama_index",
    "openinference.instrumentation.openai_agents", "openinference.instrumentation.smolagents", "langsmith",
    "traceloop.tracer", "opentelemetry.instrumentation.langchain", "mlflow.tracing.provider", "ai", "gen_ai",
    "pydantic-ai", "logfire", "logfire.openai_agents", "gcp.vertex.agent", "strands.telemetry.tracer", "litellm",
    "agent_framework", "semantic_kernel.x", "haystack",
)  # fmt: skip
"""Under which any client's attributes may be met with: then another dialect has to read them."""


def _spoilt(value: Any, rng: random.Random, others: list[Any]) -> Any:
    """The value, changed in one of the ways in which clients change: another, cut short, or a part replaced."""
    way = rng.randrange(4)
    if way == 0 or not value:
        return rng.choice(ODD)
    if way == 1:
        return rng.choice(others)
    if not isinstance(value, str):
        return _within(value, rng) if isinstance(value, list | dict) else str(value)
    if way == 2:
        return value[: rng.randrange(len(value))]
    try:
        return json.dumps(_within(json.loads(value), rng))
    except (ValueError, TypeError):
        return value + rng.choice(("}", "'", "\\", "\ud800"))


def _within(value: Any, rng: random.Random) -> Any:
    """One value somewhere inside replaced by an odd one."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        return {**value, key: _within(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], _within(value[at], rng), *value[at + 1 :]]
    odd = rng.choice(ODD)
    return odd.decode("latin-1") if isinstance(odd, bytes) else odd


def _attributes(attributes: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    found = dict(attributes)
    others = list(found.values()) or [None]
    for key in rng.sample(sorted(found), k=min(len(found), rng.randrange(1, 6))):
        value = found.pop(key)
        if rng.random() < 0.85:
            renamed = key.replace(".0.", f".{'9' * rng.choice((1, 9, 12, 400))}.") if rng.random() < 0.1 else key
            found[renamed] = _spoilt(value, rng, others)
    return found


def _changed(raw: RawSpan, rng: random.Random) -> RawSpan:
    events = tuple(
        RawEvent(name=event.name, time_ns=event.time_ns, attributes=_attributes(event.attributes, rng))
        for event in raw.events
    )
    name = raw.name if rng.random() < 0.9 else rng.choice(("", ".", "handoff", "\ud800"))
    scope = raw.scope_name if rng.random() < 0.8 else rng.choice(SCOPES)
    attributes = _attributes(raw.attributes, rng)
    return replace(raw, name=name, scope_name=scope, attributes=attributes, events=events, status_code=rng.randrange(3))


@pytest.mark.parametrize("client", CLIENTS)
def test_no_dialect_chokes_on_what_its_client_s_attributes_may_turn_into(shared: Path, client: str) -> None:
    rng = random.Random(client)
    files = sorted((shared / "corpus" / "otlp" / client).rglob("*.pb"))
    spans = read_files(files).spans
    assert spans
    for _ in range(ROUNDS):
        by_trace: dict[str, list[Any]] = {}
        for raw in spans:
            span = normalise(_changed(raw, rng))
            assert "dialect" not in span.provenance, span.provenance["dialect"]
            by_trace.setdefault(span.trace_id, []).append(span)
        for trace_id, normalised in by_trace.items():
            case = extract(Trace.of(trace_id, normalised, "batch"))
            json.dumps([case.input, case.model_output, dict(case.metadata)], default=repr)
