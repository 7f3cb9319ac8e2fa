"""Spans are untrusted: normalising and extracting neither fail nor yield what JSON cannot hold."""

from __future__ import annotations

import json
from dataclasses import fields

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidejudge.integrations.dialects import DIALECTS, GENERIC, Dialect, normalise
from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.trace import Trace

KEYS = (
    "langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output", "langfuse.trace.tags",
    "langfuse.observation.usage_details", "langfuse.observation.cost_details", "langfuse.observation.level",
    "langfuse.trace.metadata.ticket", "langfuse.trace.metadata", "langfuse.observation.metadata.lc_agent_name",
    "langfuse.internal.is_app_root", "langfuse.trace.input", "langfuse.trace.output", "langfuse.environment",
    "openinference.span.kind", "input.value", "output.value", "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content", "llm.input_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.input_messages.0.message", "llm.input_messages.x", "llm.output_messages.0.message.contents.0.message_content",
    "llm.token_count.prompt", "llm.token_count.completion", "llm.cost.total", "llm.model_name", "tool.name",
    "retrieval.documents.0.document.content", "metadata", "tag.tags", "session.id", "user.id", "graph.node.id",
    "gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
    "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.call.id",
    "gen_ai.agent.name", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.request.model",
    "gen_ai.response.id", "gen_ai.retrieval.documents", "app.metadata.task", "app.tags", "error.type", "input",
    "tool.parameters", "tool.arguments", "graph.node.name", "traceloop.span.kind", "traceloop.entity.output",
    "gen_ai.workflow.nodes", "crewai.crew.tasks", "crewai.crew.tasks_output", "crewai.crew.result",
    "model_request_parameters",
)  # fmt: skip
WORDS = (
    "LLM", "AGENT", "TOOL", "RETRIEVER", "CHAIN", "generation", "agent", "tool", "retriever", "chat", "invoke_agent",
    "execute_tool", "retrieval", "ERROR", '{"messages": [{"role": "user", "content": "Hi"}]}', '[[{"role": "ai"}]]',
    '{"args": [1], "kwargs": {}}', '{"tool_call_id": 1, "content": null}', '{"input": -1, "output": "NaN"}', "[", "{}",
    '"quoted"', "ChatMessage(_role=<R.USER: 'user'>, _content=[TextContent(text='x')])", "9" * 400,
    '"\\ud83d"', '["\\ud83d", NaN]', "\x00", "NaN",
    '{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}', "[" * 5000, '{"a":' * 300,
    '{"lc": 1, "id": [], "kwargs": {"content": [{"type": "tool_use", "name": "n", "input": {}}]}}', "true", "-0",
    '{"raw": 1, "tasks_output": [{"description": "d"}], "coworker": "c"}', '{"langgraph_checkpoint_ns": "a:1|b:2"}',
    '{"args": [[1], {}], "kwargs": {"a": 1}, "messages": ["x content=\'y\\\\\' type=z", {"content": "z"}]}',
    '{"output_tools": [{"name": []}, 1]}',
    '{"current_agent_name": "a", "input": [{}], "tool_name": "t", "raw_output": 1}',
    "x)FinalAnswerStep(output=[)", '["agent", [1]]', "task",
    "1e999", '{"role": "tool", "tool_call_id": "c", "content": "[NaN]"}',
)  # fmt: skip
SCOPES = ("", "langfuse-sdk", "openinference.instrumentation.haystack", "openinference.instrumentation.llama_index",
          "openinference.instrumentation.openai_agents", "openinference.instrumentation.smolagents",
          "openinference.instrumentation.crewai", "openinference.instrumentation.autogen_agentchat",
          "openinference.instrumentation.langchain", "openinference.instrumentation.dspy", "strands.telemetry.tracer",
          "openinference.instrumentation.litellm", "opentelemetry.instrumentation.crewai.instrumentation",
          "opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.llamaindex", "pydantic-ai",
          "agent_framework", "gcp.vertex.agent")  # fmt: skip

leaves = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20) | st.sampled_from(WORDS) | st.binary(max_size=8)
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=12), values, max_size=12)
ids = st.sampled_from(["a" * 16, "b" * 16, "c" * 16, "d" * 16])
raw_spans = st.builds(
    RawSpan,
    trace_id=st.just("1" * 32),
    span_id=ids,
    parent_id=st.none() | ids,
    name=st.text(max_size=12) | st.sampled_from(["Agent.run", "AgentWorkflow.run_agent_step", "handoff to x", "tool"]),
    start_ns=st.integers(0, 9),
    end_ns=st.integers(0, 9),
    attributes=attributes,
    events=st.lists(
        st.builds(
            RawEvent,
            name=st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "gen_ai.tool.message", "log"]),
            time_ns=st.integers(0, 9),
            attributes=st.dictionaries(
                st.sampled_from(["exception.type", "content", "id", "message"]), values, max_size=3
            ),
        ),
        max_size=2,
    ).map(tuple),
    status_code=st.integers(0, 3),
    status_message=st.text(max_size=12),
    scope_name=st.sampled_from(SCOPES),
    scope_version=st.sampled_from(["", "3.15.0", "5.0.4", "x"]),
    resource=attributes,
)


@settings(max_examples=60)
@given(raw_spans)
def test_no_dialect_chokes_on_any_attributes(raw: RawSpan) -> None:
    span = normalise(raw)
    assert (span.trace_id, span.span_id, span.parent_id) == (raw.trace_id, raw.span_id, raw.parent_id)
    assert "dialect" not in span.provenance, span.provenance.get("dialect")


@settings(max_examples=60)
@given(raw_spans)
def test_what_is_remembered_of_names_changes_nothing(raw: RawSpan) -> None:
    unknown = (*DIALECTS,)  # of which nothing is remembered
    assert repr(normalise(raw)) == repr(normalise(raw)) == repr(normalise(raw, dialects=unknown))


@settings(max_examples=50)
@given(st.lists(raw_spans, max_size=6), st.sampled_from(["batch", "pressure", "idle"]))
@example([], "batch")
def test_no_trace_whatever_its_shape_stops_the_extraction(raws: list[RawSpan], completion: str) -> None:
    spans = [normalise(raw) for raw in raws]
    case = extract(Trace.of("1" * 32, spans, completion))
    assert case.case_id == "1" * 32
    for field in fields(Case):
        if field.name not in {"transcript", "tools_used", "completion", "trace", "unread"}:
            orjson.dumps(getattr(case, field.name))
    for call in case.tools_used or ():
        orjson.dumps([call.arguments, call.result, call.error])


@settings(max_examples=50)
@given(st.lists(raw_spans, max_size=5), st.randoms())
def test_the_order_in_which_spans_arrive_changes_nothing(raws: list[RawSpan], random: object) -> None:
    by_id = {raw.span_id: raw for raw in raws}
    spans = [normalise(raw) for raw in by_id.values()]
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert extract(Trace.of("1" * 32, spans, "batch")) == extract(Trace.of("1" * 32, shuffled, "batch"))


def test_each_span_has_the_service_and_the_environment_of_its_own_process() -> None:
    resources: list[dict[str, AttributeValue]] = [
        {"service.name": "shop", "deployment.environment": "test"}, {"service.name": "stock"}, {},
    ]  # fmt: skip
    reported = [("shop", "test"), ("stock", None), (None, None)]
    for number in (0, 0, 1, 2, 0, 2, 1):
        span = normalise(_raw({"input": "x"}, resources[number]))
        assert (span.service, span.environment) == reported[number]
    own = normalise(_raw({"langfuse.environment": "live", "service.name": "no label of a span"}, resources[0]))
    assert (own.service, own.environment, own.provenance["environment"]) == ("shop", "live", "langfuse.environment")
    empty = normalise(_raw({"langfuse.environment": ""}, resources[0]))
    assert (empty.environment, empty.provenance["environment"]) == ("test", "deployment.environment")


def _raw(attributes: dict[str, AttributeValue], resource: dict[str, AttributeValue]) -> RawSpan:
    return RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id=None, name="n", start_ns=1, end_ns=2, attributes=attributes,
        resource=resource,
    )  # fmt: skip


def test_a_failing_dialect_leaves_the_span_to_the_generic_one_with_a_note() -> None:
    def fail(raw: RawSpan) -> Span:
        raise RuntimeError(f"cannot read {raw.name}")

    broken = Dialect(name="broken", speaks=lambda raw: raw.name == "odd", normalise=fail)
    raw = RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id=None, name="odd", start_ns=1, end_ns=2,
        attributes={"session.id": "s", "input": "Hi"},
    )  # fmt: skip
    span = normalise(raw, dialects=(broken, *DIALECTS))
    assert (span.dialect, span.session_id, span.input) == ("generic", "s", "Hi")
    assert span.provenance["dialect"] == "generic, after an error in broken: RuntimeError: cannot read odd"


def test_a_failing_generic_dialect_leaves_the_span_s_place_in_the_tree() -> None:
    raw = RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id="b" * 16, name="n", start_ns=1, end_ns=2, resource=None
    )
    span = normalise(raw)
    assert (span.parent_id, span.kind, span.dialect) == ("b" * 16, SpanKind.OTHER, GENERIC.name)
    assert "AttributeError" in span.provenance["dialect"]


def test_a_text_of_ten_megabytes_is_carried_whole() -> None:
    text = "x" * 10_000_000
    raw = RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id=None, name="n", start_ns=1, end_ns=2,
        attributes={
            "openinference.span.kind": "LLM",
            "input.value": json.dumps({"messages": [{"role": "user", "content": text}]}),
            "output.value": "ChatMessage(text='" + text,
        },
    )  # fmt: skip
    span = normalise(raw)
    assert span.input == text
    assert "dialect" not in span.provenance


@pytest.mark.parametrize(("message", "wanted"), [
    ("LookupError('no such thing')", "LookupError: no such thing"),
    ('LookupError("it\'s gone",)', "LookupError: it's gone"),
    ("other('no such thing')", "LookupError: other('no such thing')"),
    ("no such thing", "LookupError: no such thing"),
])  # fmt: skip
def test_an_error_is_told_alike_whether_its_message_was_printed_with_the_type_or_not(message: str, wanted: str) -> None:
    raw = RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="step", start_ns=1, end_ns=2,
        status_code=2, status_message=message, attributes={"error.type": "LookupError"},
    )  # fmt: skip
    assert normalise(raw).error == wanted


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat", "gen_ai.usage.cost": -1.0},
        {"gen_ai.operation.name": "chat", "gen_ai.usage.cost": 1e308},
        {"langfuse.observation.type": "generation", "langfuse.observation.cost_details": '{"total": -0.5}'},
        {"openinference.span.kind": "LLM", "llm.cost.total": -2},
    ],
)
def test_a_cost_that_nobody_can_pay_is_none(attributes):
    raw = RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="call", start_ns=1, end_ns=2, attributes=attributes
    )
    span = normalise(raw)
    assert span.cost_usd is None
    assert "cost_usd" not in span.provenance
