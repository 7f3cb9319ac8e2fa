"""Forms of single instrumentations that no recording shows, or shows only among much else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.case.grounds import sources
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall, Usage
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.trace.usage import model_calls


def _raw(name: str, scope: str, /, *, number: int = 1, parent: int | None = None, **given: Any) -> RawSpan:
    return RawSpan(
        trace_id="1" * 32, span_id=f"{number:016x}", parent_id=None if parent is None else f"{parent:016x}",
        name=name, start_ns=number, end_ns=100 - number, scope_name=scope, **given,
    )  # fmt: skip


@pytest.mark.parametrize(("scope", "attributes", "dialect"), [
    ("", {"langfuse.observation.type": "generation"}, "langfuse"),
    ("", {"openinference.span.kind": "LLM"}, "openinference"),
    ("", {"traceloop.span.kind": "workflow"}, "openllmetry"),
    ("opentelemetry.instrumentation.openai.v1", {"gen_ai.operation.name": "chat"}, "openllmetry"),
    ("opentelemetry.instrumentation.openai.v1", {"llm.request.type": "chat"}, "openllmetry_old"),
    ("opentelemetry.instrumentation.openai_agents", {"gen_ai.provider.name": "openai"}, "openllmetry"),
    ("opentelemetry.instrumentation.openai_agents", {"gen_ai.system": "openai_agents"}, "openllmetry"),
    ("opentelemetry.instrumentation.openai_agents",
     {"gen_ai.system": "openai", "llm.request.type": "chat", "gen_ai.prompt.0.role": "user"}, "openllmetry_old"),
    ("opentelemetry.instrumentation.openai_agents",
     {"gen_ai.provider.name": "openai", "gen_ai.system": "openai"}, "openai_agents"),
    ("weave.openai_agents", {"gen_ai.operation.name": "chat"}, "weave"),
    ("", {"langsmith.span.kind": "chain"}, "langsmith"),
    ("", {"mlflow.spanType": '"CHAIN"'}, "mlflow"),
    ("mlflow.tracing.provider", {"gen_ai.operation.name": "chat"}, "mlflow"),
    ("opentelemetry.instrumentation.openai_v2", {"mlflow.spanType": '"LLM"', "gen_ai.operation.name": "chat"}, "genai"),
    ("", {"ai.operationId": "ai.generateText"}, "vercel_ai"),
    ("gen_ai", {"gen_ai.operation.name": "chat"}, "vercel_ai"),
    ("pydantic-ai", {"logfire.msg": "agent run"}, "pydantic_ai"),
    ("logfire.openai", {"gen_ai.operation.name": "chat"}, "logfire"),
    ("gcp.vertex.agent", {}, "google_adk"),
    ("strands.telemetry.tracer", {}, "strands"),
    ("", {"gen_ai.provider.name": "strands-agents"}, "strands"),
    ("agent_framework", {"gen_ai.operation.name": "chat"}, "agent_framework"),
    ("semantic_kernel.functions.kernel_function", {}, "semantic_kernel"),
    ("haystack", {}, "haystack"),
    ("litellm", {"gen_ai.operation.name": "chat"}, "litellm"),
    ("litellm", {"langfuse.observation.type": "generation", "openinference.span.kind": "LLM"}, "litellm"),
    ("com.anthropic.sdk.python", {"gen_ai.operation.name": "chat"}, "genai"),
    ("", {"gen_ai.system": "openai"}, "genai"),
    ("openlit.instrumentation.openai", {"gen_ai.operation.name": "chat"}, "openlit"),
    ("openlit.instrumentation.openai", {"openinference.span.kind": "TOOL"}, "openlit"),
    ("opentelemetry.instrumentation.openai.v1",
     {"openinference.span.kind": "LLM", "llm.request.type": "chat", "gen_ai.prompt.0.role": "user"}, "openllmetry_old"),
    ("opentelemetry.instrumentation.openai.v1", {"openinference.span.kind": "LLM", "input.value": ""}, "openinference"),
    ("opentelemetry.instrumentation.httpx", {"http.method": "GET"}, "generic"),
])  # fmt: skip
def test_each_span_is_told_by_its_own_signs(scope: str, attributes: dict[str, Any], dialect: str) -> None:
    span = normalise(_raw("step", scope, attributes=attributes))
    assert (span.dialect, span.provenance.get("dialect")) == (dialect, None)


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


@pytest.mark.parametrize(("scope", "attributes", "switch"), [
    ("opentelemetry.instrumentation.openai.v1", CHAT, "TRACELOOP_TRACE_CONTENT"),
    ("", {"llm.request.type": "chat"}, "TRACELOOP_TRACE_CONTENT"),
    ("gcp.vertex.agent", CHAT | {"gcp.vertex.agent.llm_request": "{}"}, "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS"),
    ("opentelemetry.instrumentation.openai_agents",
     CHAT | {"gen_ai.system": "openai", "gen_ai.provider.name": "openai"}, "OTEL_INSTRUMENTATION_GENAI"),
    ("semantic_kernel.x", CHAT, "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"),
    ("agent_framework", CHAT, "ENABLE_SENSITIVE_DATA"),
    ("pydantic-ai", CHAT, "include_content"),
    ("logfire.openai", CHAT | {"logfire.scrubbed": "[]"}, "scrubbing"),
    ("gen_ai", CHAT, "recordInputs"),
    ("ai", {"ai.operationId": "ai.generateText.doGenerate"}, "recordInputs"),
    ("ai", {"ai.operationId": "ai.toolCall"}, "recordInputs"),
    ("mlflow.tracing.provider", CHAT, "MLFLOW_ENABLE_OTEL_GENAI_SEMCONV"),
    ("langsmith", {"langsmith.span.kind": "llm"}, "LANGSMITH_HIDE_INPUTS"),
    ("litellm", CHAT, "turn_off_message_logging"),
    ("haystack", {"haystack.component.type": "OpenAIChatGenerator"}, "HAYSTACK_CONTENT_TRACING_ENABLED"),
    ("openlit.instrumentation.openai", CHAT, "capture_message_content"),
])  # fmt: skip
def test_a_model_call_without_contents_names_the_switch(scope: str, attributes: dict[str, Any], switch: str) -> None:
    span = normalise(_raw("step", scope, attributes=attributes))
    assert switch in str(span.capture_switch)
    case = extract(Trace.of(span.trace_id, [span], "batch"))
    assert case.content_captured is False
    assert switch in str(case.capture_switch)


@pytest.mark.parametrize(("sent", "value"), [({"ai.response.text": ""}, 0.0), ({}, None)])
def test_an_empty_answer_of_the_ai_sdk_is_none_and_one_that_was_not_sent_is_unknown(
    sent: dict[str, str], value: float | None
) -> None:
    asked = '[{"role":"user","content":[{"type":"text","text":"Where?"}]}]'
    whole = {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt":"Where?"}'}
    spans = [
        _raw("ai.generateText", "ai", attributes=whole),
        _raw("ai.generateText.doGenerate", "ai", number=2, parent=1, attributes={
            "ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": asked, **sent,
        }),
    ]  # fmt: skip
    case = extract(Trace.of(spans[0].trace_id, [normalise(span) for span in spans], "batch"))
    (found,) = [
        each.result for each in score(case, RUBRICS["run_health"], created_at="").scores if each.metric == "answered"
    ]
    assert getattr(found, "value", None) == value


@pytest.mark.parametrize(("operation", "outcome", "events", "error"), [
    ("ai.generateText", {"ai.response.finishReason": "stop"}, (), None),
    ("ai.streamText.doStream", {"ai.response.finishReason": "tool-calls"}, (), None),
    ("ai.toolCall", {"ai.toolCall.result": '"here"'}, (), None),
    ("ai.toolCall", {}, (), "no such order"),
    ("ai.generateText", {}, (), "no such order"),
    ("ai.streamText", {"ai.response.finishReason": "error"}, (), "no such order"),
    ("ai.generateText", {"ai.response.finishReason": "stop"}, ("exception",), "E: no such order"),
    ("invoke_agent", {"gen_ai.response.finish_reasons": ["stop"]}, (), None),
    ("invoke_agent", {}, (), "no such order"),
    ("chat", {"gen_ai.response.finish_reasons": ["error"]}, (), "no such order"),
    ("agent_step", {}, (), None),
    ("agent_step", {}, ("exception",), "E: no such order"),
    ("execute_tool", {"gen_ai.tool.call.result": '"here"'}, (), None),
    ("execute_tool", {}, (), "no such order"),
])  # fmt: skip
def test_an_error_that_openinference_s_processor_hands_on_is_none_of_the_ai_sdk_s_span(
    operation: str, outcome: dict[str, Any], events: tuple[str, ...], error: str | None
) -> None:
    """It gives the first error of a trace to every span that ends after it."""
    raised = tuple(RawEvent(name=name, time_ns=1, attributes={"exception.type": "E"}) for name in events)
    scope, named = ("ai", "ai.operationId") if operation.startswith("ai.") else ("gen_ai", "gen_ai.operation.name")
    kind = {"execute_tool": "TOOL", "chat": "LLM"}.get(operation, "CHAIN")
    span = normalise(_raw(
        operation, scope, status_code=2, status_message="no such order", events=raised,
        attributes={named: operation, "openinference.span.kind": kind, **outcome},
    ))  # fmt: skip
    assert (span.error, span.tool and span.tool.error) == (error, error if span.tool else None)
    assert (span.tool is not None) == operation.endswith(("toolCall", "tool"))


@pytest.mark.parametrize(("scope", "asked", "answer"), [
    (
        "openinference.instrumentation.google_genai",
        {"openinference.span.kind": "LLM", "llm.input_messages.0.message.content": "Where?",
         "llm.input_messages.0.message.role": "user", "llm.output_messages.0.message.role": "model"},
        {"output.value": '{"sdk_http_response":{"headers":{"server":"s"}},"candidates":[{"content":{"parts":[{"text":'
         '""}],"role":"model"},"finish_reason":"STOP"}],"model_version":"m"}'},
    ),
    (
        "opentelemetry.instrumentation.google_generativeai",
        CHAT | {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]'},
        {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "file_data=None '
         'text=\'\' thought=None"}]}]'},
    ),
    (
        "opentelemetry.instrumentation.cohere",
        {"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Where?",
         "gen_ai.completion.0.role": "assistant"},
        {"gen_ai.completion.0.content": '[{"type": "text", "text": ""}]'},
    ),
])  # fmt: skip
def test_an_answer_whose_only_part_has_no_text_is_none(scope: str, asked: Any, answer: dict[str, str]) -> None:
    span = normalise(_raw("chat", scope, attributes=asked | answer))
    found = score(extract(Trace.of(span.trace_id, [span], "batch")), RUBRICS["run_health"], created_at="").scores
    assert [getattr(each.result, "value", None) for each in found if each.metric == "answered"] == [0.0]


@pytest.mark.parametrize("repeated", [0, 1, 2])
def test_calls_that_google_s_sdk_carried_out_count_once_though_the_streamed_answer_repeats_them(repeated: int) -> None:
    asked = {"parts": [{"text": "Where?"}], "role": "user"}
    call = {"parts": [{"function_call": {"name": "find", "args": {"q": "x"}}}], "role": "model"}
    found = {"parts": [{"function_response": {"name": "find", "response": {"result": "Oslo"}}}], "role": "user"}
    parts = [*call["parts"] * repeated, {"text": "Oslo."}]
    returned = {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finish_reason": "STOP"}],
        "automatic_function_calling_history": [asked, call, found],
    }
    span = normalise(_raw("GenerateContentStream", "openinference.instrumentation.google_genai", attributes={
        "openinference.span.kind": "LLM", "input.value": json.dumps({"contents": [asked]}),
        "output.value": json.dumps(returned),
    }))  # fmt: skip
    case = extract(Trace.of(span.trace_id, [span], "batch"))
    assert case.tools_used is not None
    assert [call.result for call in case.tools_used] == ["Oslo", *[None] * (repeated - 1)]
    assert case.model_output == "Oslo."


def test_a_run_of_the_openai_agents_sdk_for_javascript_that_raises_is_its_trace_s_top() -> None:
    def step(name: str, number: int, kind: str, **more: str) -> RawSpan:
        return _raw(
            name, "@arizeai/openinference-instrumentation-openai-agents", number=number, parent=number - 1,
            status_code=2, status_message="E: down", attributes={"openinference.span.kind": kind} | more,
        )  # fmt: skip

    spans = [
        step("Agent workflow", 2, "CHAIN"),
        step("desk", 3, "AGENT", **{"graph.node.id": "desk"}),
        step("turn", 4, "CHAIN"),
    ]
    trace = Trace.of(spans[0].trace_id, [normalise(span) for span in spans], "batch")
    assert [span.root_hint for span in trace.spans] == [True, False, False]
    scores = score(extract(trace), RUBRICS["run_health"], created_at="").scores
    assert [getattr(each.result, "value", None) for each in scores if each.metric == "completed"] == [0.0]


def test_a_run_of_openllmetry_s_in_javascript_that_raises_has_failed_unless_it_went_on() -> None:
    """Its decorators end no span of what raises, and Anthropic's input tokens are without those of the cache."""

    def call(number: int, **given: Any) -> RawSpan:
        return _raw("chat m", "@traceloop/instrumentation-anthropic", number=number, parent=1, **given)

    used = {"gen_ai.usage.input_tokens": 16, "gen_ai.usage.output_tokens": 7, "gen_ai.usage.cache_read.input_tokens": 4}
    first, again = (replace(call(number, attributes=CHAT | used), end_ns=number + 1) for number in (2, 4))
    raised = replace(call(3, attributes=CHAT, status_code=2, status_message="Error: down"), end_ns=4)
    for raws, value in (([first, raised], 0.0), ([first, raised, again], None), ([first], None)):
        trace = Trace.of(first.trace_id, [normalise(raw) for raw in raws], "batch")
        scores = score(extract(trace), RUBRICS["run_health"], created_at="").scores
        (found,) = [each.result for each in scores if each.metric == "completed"]
        assert getattr(found, "value", None) == value
    assert normalise(first).usage == Usage(input=20, output=7, cached_input=4)


def _agents_of_openai(scope: str, asked: str, answered: str | None, **more: str) -> dict[str, object]:
    """The signs of a run of OpenAI's agents, which asks a model once."""

    def step(number: int, operation: str, **attributes: Any) -> RawSpan:
        both = {"gen_ai.provider.name": "openai", "gen_ai.system": "openai", "gen_ai.operation.name": operation}
        return _raw(operation, scope, number=number, parent=number - 1 or None, attributes=both | attributes)

    said = {} if answered is None else {"gen_ai.output.messages": answered}
    spans = [
        step(1, "invoke_agent"),
        step(2, "invoke_agent", **{"gen_ai.agent.name": "desk"}),
        step(3, "chat", **{
            "gen_ai.agent.name": "OpenAI Agent", "gen_ai.request.model": "m", "gen_ai.input.messages": asked,
            **said, **more,
        }),
    ]  # fmt: skip
    case = extract(Trace.of(spans[0].trace_id, [normalise(span) for span in spans], "batch"))
    scores = score(case, RUBRICS["run_health"], created_at="").scores
    found = {each.metric: getattr(each.result, "value", None) for each in scores}
    return {"agents": case.agents_called, "output": case.model_output, **found}


ASKED = '[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]'


@pytest.mark.parametrize(("printed", "output", "answered"), [
    ("Here.", "Here.", 1.0),
    ("ResponseOutputMessage(id='1', content=[ResponseOutputText(text='', type='output_text')], role='assistant')",
     None, 0.0),
    ("{'id': '1', 'output': [{'content': [{'text': 'Here.', 'type': 'output_text'}], 'role': 'assistant'}]}",
     "Here.", 1.0),
    ("", None, 0.0),
])  # fmt: skip
def test_openai_s_agents_through_opentelemetry_s_own_package(printed: str, output: str | None, answered: float) -> None:
    sent = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": printed}]}])
    found = _agents_of_openai("opentelemetry.instrumentation.openai_agents", ASKED, sent)
    assert (found["agents"], found["output"] or None, found["answered"]) == (("desk",), output, answered)


def test_an_answer_in_parts_that_only_mentions_an_object_is_whole_through_opentelemetry_s_own_package() -> None:
    parts = [{"type": "text", "content": text} for text in ("Return a ResponseEntity(body).", "Then try again.")]
    sent = json.dumps([{"role": "assistant", "parts": parts}])
    found = _agents_of_openai("opentelemetry.instrumentation.openai_agents", ASKED, sent)
    assert found["output"] == "Return a ResponseEntity(body).\nThen try again."


def test_a_run_of_openai_s_agents_that_raises_has_failed_though_the_trace_s_span_is_ok() -> None:
    folder = Path(__file__).parents[2] / "data" / "otlp" / "otel-openai-agents-v2" / "error"
    spans = [normalise(raw) for raw in read_files(sorted(folder.glob("*.pb"))).spans]
    scores = score(extract(Trace.of(spans[0].trace_id, spans, "batch")), RUBRICS["run_health"], created_at="").scores
    found = {each.metric: getattr(each.result, "value", None) for each in scores}
    assert (found["completed"], found["answered"]) == (0.0, 0.0)


@pytest.mark.parametrize(("id_of_response", "answered"), [(None, None), ("resp_1", 0.0)])
def test_an_answer_that_weave_leaves_out_is_unknown(id_of_response: str | None, answered: float | None) -> None:
    """Through Chat Completions it sends what is no text, and the answer of a stream, as a message without parts."""
    more = {} if id_of_response is None else {"gen_ai.response.id": id_of_response}
    found = _agents_of_openai("weave.openai_agents", ASKED, '[{"role": "assistant", "parts": []}]', **more)
    assert (found["answered"], found["completed"]) == (answered, 1.0)


@pytest.mark.parametrize(("name", "kind"), [
    ("task.workflow_name", SpanKind.CHAIN), ("turn.agent_name", SpanKind.CHAIN), ("guardrail.name", SpanKind.GUARDRAIL),
    ("handoff.to_agent", SpanKind.OTHER),
])  # fmt: skip
def test_weave_s_own_steps_are_no_agents_and_a_run_s_own_id_is_no_session(name: str, kind: SpanKind) -> None:
    own = {f"weave.openai_agents.{name}": "desk", "weave.openai_agents.trace_id": "trace_1"}
    for session, wanted in (("trace_1", None), ("ticket-7", "ticket-7")):
        span = normalise(_raw("step", "weave.openai_agents", attributes=own | {"gen_ai.conversation.id": session}))
        assert (span.kind, span.session_id) == (kind, wanted)


@pytest.mark.parametrize(("scope", "attributes"), [
    ("langfuse-sdk", {"langfuse.observation.type": "generation", "langfuse.observation.model.name": "m"}),
    ("ai", {"ai.operationId": "ai.generateText.doGenerate", "ai.response.model": "m"}),
    ("opentelemetry.instrumentation.openai.v1", CHAT),
])  # fmt: skip
def test_an_application_s_name_of_the_agent_on_a_model_call_is_read_whatever_the_client(
    scope: str, attributes: dict[str, Any]
) -> None:
    span = normalise(_raw("step", scope, attributes=attributes | {"agent_name": "triage"}))
    assert (span.kind, span.agent) == (SpanKind.LLM, "triage")


def test_what_describes_an_error_is_no_answer() -> None:
    attributes = CHAT | {"gen_ai.input.messages": ASKED, "weave.openai_agents.error.data": '{"error": "503: busy"}'}
    span = normalise(_raw("chat", "weave.openai_agents", status_code=2, status_message="failed", attributes=attributes))
    scores = score(extract(Trace.of(span.trace_id, [span], "batch")), RUBRICS["run_health"], created_at="").scores
    assert [getattr(each.result, "value", None) for each in scores if each.metric == "answered"] == [0.0]


def test_pydantic_ai_since_format_2() -> None:
    ran = [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "look_up", "arguments": '{"n": 1}'}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "name": "look_up", "result": "here"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Here."}], "finish_reason": "stop"},
    ]
    span = normalise(_raw("invoke_agent support", "pydantic-ai", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support", "metadata": '{"ticket": 7}',
        "pydantic_ai.all_messages": json.dumps(ran), "final_result": "Here.",
    }))  # fmt: skip
    assert (span.kind, span.agent, span.input, span.output) == (SpanKind.AGENT, "support", "Where is it?", "Here.")
    assert (span.system_prompt, dict(span.metadata)) == ("Be brief.", {"ticket": 7})
    (call,) = extract(Trace.of(span.trace_id, [span], "batch")).tools_used or ()
    assert (call.name, call.arguments, call.result) == ("look_up", {"n": 1}, "here")


def test_pydantic_ai_before_format_2_counts_and_names_everything_once() -> None:
    stated = [
        {"event.name": "gen_ai.system.message", "content": "Be brief.", "role": "system"},
        {"event.name": "gen_ai.user.message", "content": "Where is it?", "role": "user"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}]}},
    ]  # fmt: skip
    spans = [
        _raw("agent run", "pydantic-ai", number=1, attributes={
            "agent_name": "support", "model_name": "m", "final_result": "Here.", "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 2, "all_messages_events": json.dumps(stated[:2]),
        }),
        _raw("chat m", "pydantic-ai", number=2, parent=1, attributes=CHAT | {
            "events": json.dumps(stated), "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2,
            "operation.cost": 0.5,
        }),
        _raw("running tools", "pydantic-ai", number=3, parent=1, attributes={"tools": ["look_up"]}),
        _raw("running tool", "pydantic-ai", number=4, parent=3, attributes={
            "gen_ai.tool.name": "look_up", "gen_ai.tool.call.id": "c", "tool_arguments": '{"n": 1}',
            "tool_response": "here",
        }),
    ]  # fmt: skip
    normalised = [normalise(raw) for raw in spans]
    case = extract(Trace.of(normalised[0].trace_id, normalised, "batch"))
    assert (case.input, case.model_output, case.agents_called) == ("Where is it?", "Here.", ("support",))
    (call,) = case.tools_used or ()
    assert (call.name, call.arguments, call.result, call.call_id) == ("look_up", {"n": 1}, "here", "c")
    assert (case.input_tokens, case.output_tokens, case.cost_usd) == (5, 2, 0.5)
    assert normalised[1].provenance["output"] == "events: gen_ai.choice"


def _part(kind: str, **named: str) -> dict[str, str]:
    return {"type": kind, **named}


def _withheld_run(history: int = 0) -> Trace:
    """A run of Pydantic AI with ``include_content=False``: two turns, of which ``history`` messages are of before."""
    text, call = _part("text"), _part("tool_call", id="c1", name="track")
    turns: list[dict[str, Any]] = [
        {"role": "user", "parts": [text, {"type": "uri", "modality": "image"}]},
        {"role": "assistant", "parts": [text, call]},
        {"role": "user", "parts": [_part("tool_call_response", id="c1", name="track")]},
        {"role": "assistant", "parts": [text]},
    ]
    both = json.dumps([*turns, turns[0], turns[3]] if history else turns)
    ran: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    ran |= {"pydantic_ai.all_messages": both} | ({"pydantic_ai.new_message_index": history} if history else {})
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m", "gen_ai.usage.output_tokens": 5}
    asks = chat | {"gen_ai.input.messages": json.dumps(turns[:1]), "gen_ai.output.messages": json.dumps(turns[1:2])}
    ends = chat | {"gen_ai.input.messages": json.dumps(turns[:3]), "gen_ai.output.messages": json.dumps(turns[3:])}
    used = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "track", "gen_ai.tool.call.id": "c1"}
    spans = [_raw("invoke_agent desk", "pydantic-ai", attributes=ran)]
    if not history:
        spans.append(_raw("chat m", "pydantic-ai", number=2, parent=1, attributes=asks))
        spans.append(_raw("execute_tool track", "pydantic-ai", number=3, parent=1, attributes=used))
    spans.append(_raw("chat m", "pydantic-ai", number=4, parent=1, attributes=ends))
    return Trace.of("1" * 32, [normalise(each) for each in spans], "batch")


def test_parts_of_which_the_types_alone_were_sent_are_contents_that_were_not_captured() -> None:
    case = extract(_withheld_run())
    assert (case.content_captured, case.model_output) == (False, None)
    assert case.capture_switch == "InstrumentationSettings(include_content=True)"
    assert case.tools_used == (ToolCall(name="track", call_id="c1"),), "neither arguments nor an empty result"
    verdict = score(case, RUBRICS["run_health"], created_at="")
    assert verdict.passed, "what the run answered was not sent, so nobody can say that it did not answer"
    answered = next(each.result for each in verdict.scores if each.metric == "answered")
    assert isinstance(answered, Unavailable)


def test_events_of_messages_without_contents_show_which_tools_were_called_and_no_answer() -> None:
    """OpenTelemetry's instrumentation of OpenAI without contents, in its older form."""
    calls: Any = [{"id": "c1", "type": "function", "function": {"name": "track"}}]

    def event(name: str, **given: Any) -> RawEvent:
        return RawEvent(name=f"gen_ai.{name}", time_ns=0, attributes=given)

    history = (event("user.message"), event("assistant.message", tool_calls=calls), event("tool.message", id="c1"))
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 5}
    asks = event("choice", index=0, message={"role": "assistant", "tool_calls": calls})
    ends = event("choice", index=0, message={"role": "assistant"})
    first = normalise(_raw("chat m", "", attributes=chat, events=(history[0], asks)))
    second = normalise(_raw("chat m", "", number=2, attributes=chat, events=(*history, ends)))
    for spans, called in (([first, second], ["track"]), ([second], [])):
        case = extract(Trace.of("1" * 32, spans, "batch"))
        assert [call.name for call in case.tools_used or ()] == called, "what stands in the history alone is no call"
        assert (case.content_captured, case.model_output) == (False, None)
        assert case.capture_switch is not None


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "assistant"},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": "", "name": "desk"},
    ],
)
@pytest.mark.parametrize(("asked", "value"), [({"content": "Where?"}, 0.0), ({}, None)])
def test_an_answer_without_words_beside_a_question_in_words_is_empty(message: Any, asked: Any, value: Any) -> None:
    """OpenTelemetry's instrumentations of OpenAI for Node.js and Python, Semantic Kernel: no part, or a stream's."""
    events = (
        RawEvent(name="gen_ai.user.message", time_ns=0, attributes=asked),
        RawEvent(name="gen_ai.choice", time_ns=0, attributes={"index": 0, "finish_reason": "stop", "message": message}),
    )
    span = normalise(_raw("chat m", "", attributes=CHAT, events=events))
    case = extract(Trace.of(span.trace_id, [span], "batch"))
    (found,) = [
        each.result for each in score(case, RUBRICS["run_health"], created_at="").scores if each.metric == "answered"
    ]
    assert getattr(found, "value", None) == value


@pytest.mark.parametrize(
    ("answer", "finish", "results"),
    [("Oslo has", "length", (1.0, 0.0)), (None, "stop", (0.0, None)), ("Oslo has 7 degrees.", "stop", (1.0, 1.0))],
)
@pytest.mark.parametrize(
    "by", ["agent_framework", "opentelemetry.instrumentation.ag2", "opentelemetry.instrumentation.anthropic"]
)
def test_what_ag2_records_of_a_call_s_usage_is_no_call(
    by: str, answer: str | None, finish: str, results: tuple[Any]
) -> None:
    asked = {"gen_ai.input.messages": json.dumps([{"role": "user", "content": "How warm?"}])}
    said = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": answer}])} if answer else {}
    used = {"gen_ai.response.model": "m-1", "gen_ai.usage.input_tokens": 32, "gen_ai.usage.output_tokens": 12}
    ended = {"gen_ai.response.finish_reasons": [finish]}
    call = _raw("chat m", by, parent=7, attributes={**CHAT, **asked, **said, **used, **ended})
    record = _raw("record_usage model_call", "", number=99, parent=7, attributes={"ag2.span.type": "usage", **used})
    root = _raw("invoke_agent a", "", number=7, attributes={"gen_ai.operation.name": "invoke_agent"})
    case = extract(Trace.of("1" * 32, [normalise(root), normalise(call), normalise(record)], "batch"))
    assert (case.input_tokens, case.output_tokens) == (32, 12)
    scores = {each.metric: each.result for each in score(case, RUBRICS["run_health"], created_at="").scores}
    found = (scores["answered"], scores["answer_intact"])
    assert tuple(getattr(result, "value", None) for result in found) == results


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "parts": [{"type": "refusal", "content": "No."}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"refusal": "No."}}},
    ],
)
def test_a_refusal_beside_an_empty_content_is_what_the_model_said(answer: dict[str, Any]) -> None:
    given = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([answer])}
    assert normalise(_raw("chat m", "", attributes=given)).output == "No."


def test_a_call_that_langchain_sorts_out_because_of_its_arguments_failed_and_no_answer_follows() -> None:
    sorted_out = {"type": "invalid_tool_call", "id": "c1", "name": "look_up", "args": '{"n": ', "error": "No JSON."}
    answer = {"role": "assistant", "content": "", "tool_calls": [], "invalid_tool_calls": [sorted_out]}
    span = normalise(_raw("ChatOpenAI", "langfuse-sdk", attributes={
        "langfuse.observation.type": "generation", "langfuse.observation.input": '[{"role": "user", "content": "Hi"}]',
        "langfuse.observation.output": json.dumps(answer),
    }))  # fmt: skip
    case = extract(Trace.of(span.trace_id, [span], "batch"))
    assert case.tools_used == (ToolCall(name="look_up", arguments='{"n": ', call_id="c1", error="No JSON."),)
    found = {each.metric: each.result for each in score(case, RUBRICS["run_health"], created_at="").scores}
    assert [getattr(found[metric], "value", None) for metric in ("answered", "tool_success")] == [0.0, 0.0]


def test_calls_of_an_earlier_turn_are_not_made_again_where_contents_are_withheld() -> None:
    assert extract(_withheld_run(history=4)).tools_used == ()


def test_logfire_s_openai_agents_are_told_by_their_templates() -> None:
    def step(template: str, number: int, parent: int | None, **attributes: Any) -> RawSpan:
        return _raw(template, "logfire.openai_agents", number=number, parent=parent,
                    attributes={"logfire.msg_template": template} | attributes)  # fmt: skip

    normalised = [normalise(raw) for raw in (
        step("OpenAI Agents trace: {name}", 1, None, name="Agent workflow"),
        step("Agent run: {name!r}", 2, 1, name="orchestrator"),
        step("Handoff: {from_agent} → {to_agent}", 3, 2, from_agent="orchestrator", to_agent="Research Desk"),
        step("Agent run: {name!r}", 4, 1, name="Research Desk"),
        step("Function: {name}", 5, 4, name="look_up", input='{"n": 1}', output="here"),
    )]  # fmt: skip
    case = extract(Trace.of("1" * 32, normalised, "batch"))
    assert case.agents_called == ("orchestrator", "Research Desk")
    assert [(t.name, t.handoff, t.result) for t in case.tools_used or ()] == [
        ("transfer_to_research_desk", True, None), ("look_up", False, "here"),
    ]  # fmt: skip


def test_logfire_s_pending_spans_say_nothing_yet() -> None:
    span = normalise(_raw("chat", "logfire.openai", attributes=CHAT | {
        "logfire.span_type": "pending_span", "gen_ai.input.messages": '[{"role": "user", "content": "Hi"}]',
        "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2,
    }))  # fmt: skip
    assert (span.dialect, span.kind, span.usage, span.input) == ("logfire", SpanKind.OTHER, None, None)


def test_an_empty_answer_of_logfire_s_openai_agents_is_none_of_the_events_beside_it() -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}
    events: list[dict[str, Any]] = [
        {"role": "user", "content": "Where?"}, {"role": "assistant", "tool_calls": [called]},
        {"role": "tool", "id": "c1", "content": "Here.", "name": "look_up"}, {"role": "assistant", "content": ""},
    ]  # fmt: skip
    stated = [{"event.name": f"gen_ai.{event['role']}.message"} | event for event in events]
    given = {"events": json.dumps(stated), "gen_ai.request.model": "m"}
    for attributes in (given | {"response": json.dumps({"object": "response", "output": [said]})}, given):
        span = normalise(_raw("Responses API", "logfire.openai_agents", attributes=CHAT | attributes))
        assert span.output in ("", None)
        assert [message.text for message in span.output_messages] in ([], [""])


def test_logfire_s_request_for_a_stream_is_no_call_beside_its_record() -> None:
    offered = CHAT | {"gen_ai.tool.definitions": '[{"name": "look_up"}]'}
    answered = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}]'}
    request = normalise(_raw("Chat Completion", "logfire.openai", number=2, attributes=offered))
    record = normalise(replace(_raw("took", "logfire.openai", attributes=offered | answered), start_ns=99))
    trace = Trace.of("1" * 32, [request, record], "batch")
    case = extract(trace)
    assert ([call.name for call in model_calls(trace)], case.tools_used) == (["took"], ())
    assert (case.model_output, case.latency_model_ms) == ("Hi.", None)


@pytest.mark.parametrize("response", [
    {"combined_chunk_content": "Hi.", "chunk_count": 2, "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    {"message": {"role": "assistant", "content": "Hi."}, "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
])  # fmt: skip
def test_a_call_of_earlier_logfire_has_its_answer_and_its_tokens_in_its_response(response: dict[str, Any]) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
    attributes = {"request_data": json.dumps(asked), "response_data": json.dumps(response)}
    span = normalise(_raw("Chat Completion", "logfire.openai", attributes=CHAT | attributes))
    assert (span.kind, span.input, span.output) == (SpanKind.LLM, "Hello?", "Hi.")
    assert span.usage == Usage(input=5, output=2)


def test_a_stream_without_a_text_may_have_called_tools_in_earlier_logfire() -> None:
    response = {"response_data": '{"combined_chunk_content": "", "chunk_count": 0}'}
    span = normalise(_raw("took", "logfire.anthropic", attributes=CHAT | response))
    assert (span.kind, span.output) == (SpanKind.LLM, None)
    assert [message.withheld for message in span.output_messages] == [True]


def test_logfire_s_own_tag_is_no_tag_of_the_application() -> None:
    assert normalise(_raw("chat", "logfire.openai", attributes=CHAT | {"logfire.tags": ["a", "LLM"]})).tags == ("a",)


def test_an_agent_framework_s_agent_answers_with_its_last_text() -> None:
    stated = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "look_up", "arguments": {"n": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "here"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Here."}]},
    ]
    span = normalise(_raw("invoke_agent a", "agent_framework", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.output.messages": json.dumps(stated),
    }))  # fmt: skip
    assert (span.agent, span.output) == ("a", "Here.")


def test_adk_s_schema_2_is_read_as_the_conventions() -> None:
    span = normalise(_raw("execute_tool look_up", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up", "gen_ai.tool.call.id": "c",
        "gen_ai.tool.call.arguments": '{"n": 1}', "gen_ai.tool.call.result": '{"result": "here"}',
    }))  # fmt: skip
    assert span.tool is not None
    assert (span.tool.arguments, span.tool.result, span.tool.call_id) == ({"n": 1}, "here", "c")


@pytest.mark.parametrize(
    ("response", "output", "error"),
    [
        ({"content": {"role": "model", "parts": [{"text": "Here."}]}, "modelVersion": "m-1"}, "Here.", None),
        ({"content": {"role": "model", "parts": [{"text": "He"}]}, "partial": True}, "", None),
        (
            {"content": {"role": "model", "parts": [{"text": "He"}]}, "partial": True, "finishReason": "STOP"},
            "He",
            None,
        ),
        ({"errorCode": "STOP", "finishReason": "STOP"}, "", None),
        ({"error_code": "SAFETY", "error_message": "blocked"}, "", "blocked"),
        ({"errorCode": "OTHER"}, "", "OTHER"),
        ({}, None, None),
    ],
)
def test_adk_s_response_is_an_answer_a_part_of_one_or_an_error(response, output, error) -> None:
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
        "config": {"systemInstruction": "Be brief."},
    }
    span = normalise(_raw("call_llm", "gcp.vertex.agent", attributes={
        "gcp.vertex.agent.llm_request": json.dumps(asked), "gcp.vertex.agent.llm_response": json.dumps(response),
        "gen_ai.request.model": "m",
    }))  # fmt: skip
    assert (span.output, span.error, span.system_prompt, span.unread) == (output, error, "Be brief.", ())


def test_what_adk_sends_in_place_of_contents_is_neither_an_argument_nor_a_result() -> None:
    span = normalise(_raw("execute_tool look_up", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up",
        "gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}",
    }))  # fmt: skip
    assert span.tool is not None
    assert (span.tool.name, span.tool.arguments, span.tool.result) == ("look_up", None, None)


def test_a_list_where_adk_sends_a_text_makes_no_span_unreadable() -> None:
    span = normalise(_raw("execute_tool look_up", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up",
        "gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": ["here"],
    }))  # fmt: skip
    assert span.tool is not None
    assert (span.dialect, span.tool.arguments, span.tool.result) == ("google_adk", {}, ["here"])


@pytest.mark.parametrize(("sent", "output"), [("[]", ""), ('[{"text": "[]"}]', "[]")])
def test_an_answer_of_strands_without_blocks_is_empty_and_a_list_in_a_block_is_meant(sent: str, output: str) -> None:
    choice = RawEvent(name="gen_ai.choice", time_ns=1, attributes={"message": sent, "finish_reason": "endTurn"})
    span = normalise(_raw("chat", "strands.telemetry.tracer", attributes=CHAT, events=(choice,)))
    assert (span.output, span.unread) == (output, ())


def test_semantic_kernel_s_functions_go_by_their_own_names_in_spans_and_messages() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "tools-look_up-all", "arguments": '{"n": 1}'}}]
    chat = normalise(_raw("chat m", "semantic_kernel.x", attributes=CHAT | {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "tool_calls": calls}]),
    }))  # fmt: skip
    assert chat.output_messages[0].tool_calls[0].name == "look_up-all"
    tool = normalise(_raw("execute_tool", "semantic_kernel.x", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "tools-look_up",
        "gen_ai.tool.call.arguments": '{"n": 1, "instructions_override": null}',
    })).tool  # fmt: skip
    assert tool is not None
    assert (tool.name, tool.arguments) == ("look_up", {"n": 1})


@pytest.mark.parametrize(("name", "returned", "call_id", "kind"), [
    ("AFsQdgjOkhrDlrOq", None, None, SpanKind.CHAIN),
    ("p-ask", "[ChatMessageContent(inner_content=None)]", None, SpanKind.CHAIN),
    ("p-ask", '["[[StreamingChatMessageContent(choice_index=0)]]"]', None, SpanKind.CHAIN),
    ("p-ask", "[TextContent(text='It is four.')]", None, SpanKind.CHAIN),
    ("p-ask", "[ChatMessageContent(inner_content=None)]", "call_1", SpanKind.TOOL),
    ("p-look_up", "found [ChatMessageContent(]", None, SpanKind.TOOL),
    ("p-look_up", None, None, SpanKind.TOOL),
])  # fmt: skip
def test_a_prompt_that_the_application_runs_with_semantic_kernel_is_no_tool(
    name: str, returned: str | None, call_id: str | None, kind: SpanKind
) -> None:
    span = normalise(_raw("execute_tool", "semantic_kernel.functions.kernel_function", attributes={
        key: value for key, value in {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": '{"q": 1}', "gen_ai.tool.call.result": returned,
        }.items() if value is not None
    }))  # fmt: skip
    assert (span.kind, span.tool is not None) == (kind, kind is SpanKind.TOOL)
    assert (span.input is None) == (span.output is None and kind is not SpanKind.TOOL)


@pytest.mark.parametrize(("text", "value"), [("Oslo.", 1.0), ("", 0.0)])
def test_what_a_node_of_dify_s_answers_is_its_text_beside_usage_and_reasoning(text: str, value: float) -> None:
    """As its providers of traces send it; the step that begins a workflow returns the question as well."""
    prompts = [{"role": "user", "text": "Which capital?", "files": []}]
    node = {"text": text, "reasoning_content": "Norway's.", "usage": {"prompt_tokens": 3}, "finish_reason": "stop"}
    sent = (("CHAIN", {"q": "?"}, {"answer": text}), ("CHAIN", {"q": "?"}, {"q": "?"}), ("LLM", prompts, node))
    spans = [
        normalise(_raw(kind, "unified_otel_dify", number=number, parent=1 if number > 1 else None, attributes={
            "openinference.span.kind": kind, "input.value": json.dumps(given), "output.value": json.dumps(returned),
        }))
        for number, (kind, given, returned) in enumerate(sent, 1)
    ]  # fmt: skip
    assert spans[-1].output == (text or None)
    scored = score(extract(Trace.of("1" * 32, spans, "batch")), RUBRICS["run_health"], created_at="").scores
    assert next(getattr(each.result, "value", None) for each in scored if each.metric == "answered") == value


@pytest.mark.parametrize("beside", [
    {"files": [{"type": "image", "url": "https://a.example/b.png"}]}, {"structured_output": {"city": "Oslo"}},
    {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}, {"text": None, "parsed": {"a": 1}},
])  # fmt: skip
def test_an_empty_text_beside_what_may_be_the_answer_is_no_empty_answer(beside: Any) -> None:
    """A model of images in Dify's workflows, and clients whose answer has the same names."""
    returned = {"text": "", "usage": {"prompt_tokens": 3}, "finish_reason": "stop", "reasoning_content": "", **beside}
    span = normalise(_raw("LLM", "unified_otel_dify", attributes={
        "openinference.span.kind": "LLM", "input.value": '[{"role": "user", "text": "Draw it."}]',
        "output.value": json.dumps(returned),
    }))  # fmt: skip
    scored = score(extract(Trace.of("1" * 32, [span], "batch")), RUBRICS["run_health"], created_at="").scores
    assert next(getattr(each.result, "value", None) for each in scored if each.metric == "answered") == 1.0


@pytest.mark.parametrize(("by", "value"), [("agno", 0.0), ("openai", None)])
def test_a_stream_of_agno_s_in_which_nothing_came_is_an_empty_answer(by: str, value: float | None) -> None:
    asked = {"messages": [{"role": "user", "content": "Which capital?"}]}
    span = normalise(_raw("OpenAIChat.invoke_stream", f"openinference.instrumentation.{by}", attributes={
        "openinference.span.kind": "LLM", "input.value": json.dumps(asked), "output.value": '{"messages": []}',
    }))  # fmt: skip
    scored = score(extract(Trace.of("1" * 32, [span], "batch")), RUBRICS["run_health"], created_at="").scores
    assert next(getattr(each.result, "value", None) for each in scored if each.metric == "answered") == value


_REPLY = (
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='{}')], _name=None, _meta={{}})"
)


@pytest.mark.parametrize(("ended", "value"), [
    ("text", 1.0), ("length", 0.0), ("content_filter", 0.0), (7, 1.0), (["length"], 1.0),
])  # fmt: skip
def test_an_agent_of_haystack_s_states_that_its_last_answer_was_cut_off(ended: object, value: float) -> None:
    state = {"messages": [_REPLY.format("It is")], "exit_reason": ended}
    span = normalise(_raw("Agent.run", "openinference.instrumentation.haystack", attributes={
        "openinference.span.kind": "CHAIN", "output.value": json.dumps(state),
    }))  # fmt: skip
    scored = score(extract(Trace.of("1" * 32, [span], "batch")), RUBRICS["run_health"], created_at="").scores
    assert next(getattr(each.result, "value", None) for each in scored if each.metric == "answer_intact") == value
    assert span.kind is SpanKind.AGENT


def test_an_empty_reply_of_haystack_s_generators_is_an_empty_answer() -> None:
    span = normalise(_raw("OpenAIChatGenerator.run", "openinference.instrumentation.haystack", attributes={
        "openinference.span.kind": "LLM", "output.value": json.dumps({"replies": [_REPLY.format("")]}),
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "How warm?",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "",
    }))  # fmt: skip
    assert (span.output, span.unread) == ("", ())


def test_the_ai_sdk_s_results_are_quoted_once_however_much_they_look_like_json() -> None:
    tool = normalise(_raw("ai.toolCall", "ai", attributes={
        "ai.operationId": "ai.toolCall", "ai.toolCall.name": "t", "ai.toolCall.result": json.dumps('{"a": 1}'),
    })).tool  # fmt: skip
    assert tool is not None
    assert tool.result == '{"a": 1}'


@pytest.mark.parametrize("kind", ["agent", "span", "generation"])
@pytest.mark.parametrize(("output", "read"), [
    ('{"error":"Error: 500 backend exploded"}', None),
    ('{"error":"no such order"}', '{"error":"no such order"}'),
])  # fmt: skip
def test_what_langfuse_s_observe_in_javascript_says_was_raised_is_no_answer(kind, output, read) -> None:
    span = normalise(_raw("Angler", "langfuse-sdk", attributes={
        "langfuse.observation.type": kind, "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "500 backend exploded", "langfuse.observation.output": output,
    }))  # fmt: skip
    assert (span.error, span.output) == ("500 backend exploded", read)


def test_what_sentry_renames_of_the_ai_sdk_is_read() -> None:
    """Sentry's SDK (10) renames what the AI SDK calls a tool, and takes the instructions out of its prompts."""
    moved = {"gen_ai.system_instructions": '[{"type": "text", "content": "You are an angler."}]'}
    tool = normalise(_raw("execute_tool bite_time", "ai", attributes={
        "ai.operationId": "ai.toolCall", "gen_ai.tool.name": "bite_time", "gen_ai.tool.call.id": "call_a1",
        "ai.toolCall.args": '{"place": "Void"}', "ai.toolCall.result": '"At dusk."',
    })).tool  # fmt: skip
    assert tool == ToolCall(name="bite_time", arguments={"place": "Void"}, result="At dusk.", call_id="call_a1")
    for operation in ("ai.generateText", "ai.generateText.doGenerate"):
        span = normalise(_raw("x", "ai", attributes={"ai.operationId": operation} | moved))
        assert span.system_prompt == "You are an angler."


def test_the_ai_sdk_s_usage_is_that_of_its_calls_alone() -> None:
    counts = {"ai.usage.promptTokens": 3, "ai.usage.completionTokens": 1}
    whole = normalise(_raw("ai.generateText", "ai", attributes={"ai.operationId": "ai.generateText"} | counts))
    call = normalise(_raw("x", "ai", attributes={"ai.operationId": "ai.generateText.doGenerate"} | counts))
    embedded = normalise(_raw("x", "ai", attributes={"ai.operationId": "ai.embed.doEmbed"}))
    assert (whole.kind, whole.usage) == (SpanKind.CHAIN, None)
    assert (call.kind, call.usage) == (SpanKind.LLM, Usage(input=3, output=1))
    assert embedded.kind is SpanKind.EMBEDDING


@pytest.mark.parametrize(("returned", "wanted"), [
    ({"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}},
     Usage(input=9, output=2, cached_input=4)),
    ({"usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4}},
     Usage(input=9, output=2, cached_input=4)),
    ({}, Usage(input=7, output=1, cached_input=3)),
])  # fmt: skip
def test_mlflow_s_usage_is_the_response_s_own_before_mlflow_s(returned: dict[str, Any], wanted: Usage) -> None:
    span = normalise(_raw("Completions", "mlflow.tracing.provider", attributes={
        "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": json.dumps(returned),
        "mlflow.chat.tokenUsage": '{"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 3}',
    }))  # fmt: skip
    assert span.usage == wanted


@pytest.mark.parametrize(("given", "wanted"), [
    ({"tool_name": "look_up", "arguments": {"n": 1}}, {"n": 1}),
    ({"tool_name": "other", "arguments": {"n": 1}}, {"tool_name": "other", "arguments": {"n": 1}}),
])  # fmt: skip
def test_openllmetry_s_mcp_puts_the_request_of_a_tool_around_its_arguments(given: Any, wanted: object) -> None:
    span = normalise(_raw("look_up.tool", "opentelemetry.instrumentation.mcp.instrumentation", attributes={
        "traceloop.span.kind": "tool", "traceloop.entity.name": "look_up", "traceloop.entity.input": json.dumps(given),
    }))  # fmt: skip
    assert span.tool == ToolCall(name="look_up", arguments=wanted)


def test_a_workflow_s_state_in_its_message_is_unwrapped_and_what_a_person_said_is_not() -> None:
    stated = json.dumps([{"role": "user", "parts": [{"type": "text", "content": '{"question": "Where?"}'}]}])
    for operation, wanted in (("invoke_workflow", "Where?"), ("chat", '{"question": "Where?"}')):
        attributes = {"gen_ai.operation.name": operation, "gen_ai.input.messages": stated}
        assert normalise(_raw("step", "", attributes=attributes)).input == wanted


def test_an_agent_of_which_only_the_operation_is_told_has_no_name() -> None:
    for name, wanted in (("invoke_agent", None), ("invoke_agent scout", "scout"), ("the scout", "the scout")):
        span = normalise(_raw(name, "", attributes={"gen_ai.operation.name": "invoke_agent"}))
        assert (span.kind, span.agent) == (SpanKind.AGENT, wanted)


def test_openlit_s_functions_say_what_they_return_and_anthropic_s_tokens_include_cached_ones() -> None:
    function = normalise(_raw("desk", "openlit", attributes={"gen_ai.output.messages": "Here."}))
    assert function.output == "Here."
    counts = {"input_tokens": 5, "output_tokens": 2, "cache_read.input_tokens": 3, "cache_creation.input_tokens": 4}
    for provider, wanted in (("anthropic", 12), ("openai", 5)):
        span = normalise(_raw("chat m", f"openlit.instrumentation.{provider}", attributes=CHAT | {
            "gen_ai.provider.name": provider, **{f"gen_ai.usage.{key}": count for key, count in counts.items()},
        }))  # fmt: skip
        assert span.usage == Usage(input=wanted, output=2, cached_input=3)


@pytest.mark.parametrize(("kind", "wanted"), [("responses", None), ("chat_completions", [])])
def test_openlit_for_javascript_leaves_the_calls_of_responses_out(kind: str, wanted: list[str] | None) -> None:
    answers: list[list[dict[str, str]]] = [[], [{"type": "text", "content": "Four."}]]
    spans = [
        _raw("chat m", "@openlit/instrumentation-openai", number=number, parent=1, attributes=CHAT | {
            "openai.api.type": kind, "gen_ai.tool.definitions": '[{"type": "function", "name": "weather"}]',
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        }) for number, parts in zip((3, 2), answers, strict=True)
    ]  # fmt: skip
    desk = _raw("desk", "shop")
    case = extract(Trace.of("1" * 32, [normalise(span) for span in (desk, *spans)], "root"))
    assert case.model_output == "Four."
    assert case.tools_used == (None if wanted is None else tuple(wanted))


@pytest.mark.parametrize(("path", "named", "wanted"), [
    ("tools:1|agent:2", "scout", "scout"), ("research:1|agent:2", None, "research"), ("agent:2", None, "agent"),
    ("tools:1|agent:2", None, "agent"),
])  # fmt: skip
def test_a_node_of_langgraph_is_a_step_of_the_agent_that_it_speaks_for(
    path: str, named: str | None, wanted: str
) -> None:
    stated = json.dumps({"messages": [{"type": "ai", "content": "", "name": named, "tool_calls": []}]})
    spans = (
        normalise(_raw("agent", "openinference.instrumentation.langchain", attributes={
            "openinference.span.kind": "AGENT", "metadata": json.dumps({"langgraph_checkpoint_ns": path}),
            "output.value": stated,
        })),
        normalise(_raw("agent", "langfuse-sdk", attributes={
            "langfuse.observation.type": "agent", "langfuse.observation.output": stated,
            "langfuse.observation.metadata.langgraph_checkpoint_ns": path,
        })),
    )  # fmt: skip
    assert [(span.kind, span.agent, span.output) for span in spans] == [(SpanKind.CHAIN, wanted, None)] * 2


def test_the_model_of_a_call_that_failed_is_the_one_among_its_parameters() -> None:
    attributes = {"openinference.span.kind": "LLM", "llm.invocation_parameters": '{"model": "m", "top_p": 1}'}
    span = normalise(_raw("ChatCompletion", "openinference.instrumentation.openai", attributes=attributes))
    assert (span.model, span.requested_model) == (None, "m")
    assert span.provenance["requested_model"] == "llm.invocation_parameters"


def test_adk_s_requests_and_answers_of_tools_are_unwrapped_in_openinference() -> None:
    requested = {"user_id": "u", "new_message": {"role": "user", "parts": [{"text": "Where?"}]}, "state_delta": None}
    run = normalise(_raw("invocation", "openinference.instrumentation.google_adk", attributes={
        "openinference.span.kind": "CHAIN", "input.value": json.dumps(requested),
    }))  # fmt: skip
    assert run.input == "Where?"
    ends = {"author": "a", "actions": {"state_delta": {}}, "id": "e", "invocation_id": "i"}
    failed = {"error_code": "InternalServerError", "error_message": "no"}
    empty = {"error_code": "MODEL_RETURNED_NO_CONTENT", "content": {"parts": [], "role": "model"}}
    says = {"content": {"parts": [{"text": "Here."}], "role": "model"}}
    nothing = {"content": {"parts": [{"text": ""}], "role": "model"}}
    shows = {"content": {"parts": [{"inline_data": {"mime_type": "image/png", "data": "x"}}], "role": "model"}}
    for event, stated in (
        (failed, ""), (empty, ""), (nothing, ""), (says, "Here."), (shows, json.dumps(shows | ends)),
    ):  # fmt: skip
        span = normalise(_raw("invocation", "openinference.instrumentation.google_adk", attributes={
            "openinference.span.kind": "CHAIN", "output.value": json.dumps(event | ends),
        }))  # fmt: skip
        assert span.output == stated
    for returned, wanted in (({"result": "here"}, "here"), ({"rows": 3, "left": 0}, {"rows": 3, "left": 0})):
        answer = {"id": "c", "name": "look_up", "response": returned}
        span = normalise(_raw("execute_tool look_up", "openinference.instrumentation.google_adk", attributes={
            "openinference.span.kind": "TOOL", "tool.name": "look_up", "output.value": json.dumps(answer),
            "gen_ai.tool.call.arguments": "{}",
        }))  # fmt: skip
        assert span.tool == ToolCall(name="look_up", arguments={}, result=wanted)


def test_what_adk_puts_together_of_tools_side_by_side_is_no_tool() -> None:
    span = normalise(_raw("execute_tool (merged)", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)",
        "gcp.vertex.agent.tool_call_args": "N/A", "gcp.vertex.agent.tool_response": "{}",
    }))  # fmt: skip
    assert (span.kind, span.tool, span.input, span.output) == (SpanKind.CHAIN, None, None, None)
    after = normalise(_raw("execute_tool (merged tools)", "trpc.agent.go", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)",
        "trpc.go.agent.tool_call_args": "N/A", "trpc.go.agent.tool_response": "{}",
    }))  # fmt: skip
    assert after.tool is None


def test_the_steps_of_dapr_agents_around_a_tool_are_no_tools() -> None:
    given = {"openinference.span.kind": "TOOL", "agent.name": "travel", "input.value": "{}"}
    for name in ("WorkflowTask.run_tool", "travel.tool_batch"):
        assert normalise(_raw(name, "dapr_agents", attributes=given)).tool is None
    run = normalise(_raw("execute_tool lookup", "dapr_agents", attributes={**given, "tool.name": "lookup"}))
    assert run.tool is not None


def test_beeai_s_answers_in_a_schema_are_said_and_calls_that_run_together_have_no_arguments() -> None:
    calls = {"final_answer": '{"high": "noon", "bft": 4}', "tide": '{"day": 1}{"day": 2}'}
    flat = {
        f"llm.output_messages.0.message.tool_calls.{n}.tool_call.function.{key}": value
        for n, (name, given) in enumerate(calls.items()) for key, value in (("name", name), ("arguments", given))
    }  # fmt: skip
    span = normalise(_raw("OpenAIChatModel", "openinference.instrumentation.beeai", attributes={
        "openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant", **flat,
    }))  # fmt: skip
    assert span.output == calls["final_answer"]
    assert span.output_messages[0].tool_calls == (ToolCall(name="tide"),)


def test_an_exception_in_the_place_of_an_answer_is_none_of_beeai_s_nor_is_that_it_was_sent() -> None:
    scope = "openinference.instrumentation.beeai"
    printed = "ToolCallError(beeai_framework.errors): no tool calls\n- Generated: Oslo."
    held = {"openinference.span.kind": "LLM", "output.value": printed, "output.mime_type": "text/plain"}
    call = normalise(_raw("OpenAIChatModel", scope, status_code=2, status_message=printed, attributes=held))
    assert (call.output, call.unread) == (None, ())
    assert call.error == "beeai_framework.errors.ToolCallError: no tool calls\n- Generated: Oslo."
    sent = {"input.value": '{"input": {"response": "Oslo."}}', "output.value": "Message has been sent"}
    held = {"openinference.span.kind": "TOOL", "tool.name": "final_answer", "metadata.class_name": "FinalAnswerTool"}
    assert normalise(_raw("final_answer", scope, attributes={**held, **sent})).output is None


def test_a_response_that_only_calls_tools_is_no_answer_in_mlflow() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "bite_time", "arguments": "{}"}}
    returned = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    span = normalise(_raw("litellm-completion", "mlflow.tracing.provider", attributes={
        "mlflow.spanType": '"LLM"', "mlflow.spanOutputs": json.dumps(returned | {"model": "m"}),
    }))  # fmt: skip
    assert span.output is None
    assert [made.name for message in span.output_messages for made in message.tool_calls] == ["bite_time"]


def test_mlflow_s_texts_are_unquoted_once() -> None:
    span = normalise(_raw("step", "mlflow.tracing.provider", attributes={
        "mlflow.spanType": '"CHAIN"', "mlflow.spanInputs": '{"input": "go"}', "mlflow.spanOutputs": '"{\\"a\\": 1}"',
    }))  # fmt: skip
    assert (span.input, span.output) == ("go", '{"a": 1}')


def test_an_agent_of_haystack_s_that_ends_without_a_word_has_no_answer() -> None:
    silent = {"role": "assistant", "name": None, "meta": {"finish_reason": "stop"}, "content": [{"text": ""}]}
    asked = {"role": "user", "content": [{"text": "Q"}]}
    run = normalise(_raw("haystack.agent.run", "haystack", attributes={"haystack.agent.output": json.dumps(
        {"messages": [asked, silent], "step_count": 3, "exit_reason": "max_agent_steps", "last_message": silent}
    )}))  # fmt: skip
    assert (run.kind, run.output, run.unread) == (SpanKind.AGENT, "", ())


@pytest.mark.parametrize("answer", ["", "Here."])
def test_a_module_of_dspy_s_whose_only_field_is_empty_answers_nothing(answer: str) -> None:
    written = f"[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]"
    asked = {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
             "llm.input_messages.0.message.content": "Q", "llm.output_messages.0.message.role": "assistant",
             "llm.output_messages.0.message.content": written}  # fmt: skip
    module = {"openinference.span.kind": "CHAIN", "input.value": "Q", "output.value": json.dumps({"answer": answer})}
    scope = "openinference.instrumentation.dspy"
    spans = [normalise(_raw("Desk.forward", scope, attributes=module)),
             normalise(_raw("LM.__call__", scope, number=2, parent=1, attributes=asked))]  # fmt: skip
    assert extract(Trace.of("1" * 32, spans, "batch")).model_output == (answer or None)


def test_haystack_s_plain_generators_and_retrievers_are_read() -> None:
    generator = normalise(_raw("haystack.component.run", "haystack", attributes={
        "haystack.component.type": "OpenAIGenerator", "haystack.component.input": '{"prompt": "Where?"}',
        "haystack.component.output":
            '{"replies": ["Here."], "meta": [{"model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}]}',
    }))  # fmt: skip
    assert (generator.input, generator.output, generator.model) == ("Where?", "Here.", "m")
    assert generator.usage == Usage(input=3, output=1)
    retriever = normalise(_raw("haystack.component.run", "haystack", attributes={
        "haystack.component.type": "InMemoryBM25Retriever", "haystack.component.input": '{"query": "where"}',
        "haystack.component.output": '{"documents": [{"id": "1", "content": "It is here."}]}',
    }))  # fmt: skip
    assert (retriever.kind, retriever.documents) == (SpanKind.RETRIEVER, ("It is here.",))
    pipeline = normalise(_raw("haystack.pipeline.run", "haystack", attributes={
        "haystack.pipeline.input_data": '{"retriever": {"query": "Where?"}, "builder": {"question": "Where?"}}',
    }))  # fmt: skip
    assert (pipeline.kind, pipeline.input) == (SpanKind.CHAIN, "Where?")


def test_litellm_s_raw_span_is_a_model_call_whoever_provides_it() -> None:
    span = normalise(_raw("raw_gen_ai_request", "litellm", attributes={
        "llm.anthropic.messages": "[{'role': 'user', 'content': 'Where?'}]", "llm.anthropic.id": "msg_1",
        "llm.anthropic.role": "assistant", "llm.anthropic.content": "[{'type': 'text', 'text': 'Here.'}]",
        "llm.anthropic.usage": "{'input_tokens': 5, 'output_tokens': 2, 'cache_read_input_tokens': 4}",
        "llm.anthropic.model": "claude",
    }))  # fmt: skip
    assert (span.kind, span.input, span.output, span.model) == (SpanKind.LLM, "Where?", "Here.", "claude")
    assert (span.usage, span.response_id) == (Usage(input=9, output=2, cached_input=4), "msg_1")


ANSWERED = "[{'type': 'message', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': 'He'}]}]"


@pytest.mark.parametrize(
    ("provider", "answered", "finish"),
    [
        ("None", {"output": ANSWERED, "status": "incomplete"}, "length"),
        ("None", {"output": ANSWERED, "status": "incomplete", "incomplete_details": "{'reason': 'content_filter'}"},
         "content_filter"),
        ("bedrock", {"output": "{'message': {'role': 'assistant', 'content': [{'text': 'He'}]}}",
                     "stopReason": "max_tokens"}, "length"),
        ("anthropic", {"messages": "[]", "content": "[{'type': 'text', 'text': 'He'}]", "role": "assistant",
                       "stop_reason": "max_tokens"}, "length"),
        ("groq", {"messages": "[]", "choices": "[{'finish_reason': 'length', "
                                               "'message': {'role': 'assistant', 'content': 'He'}}]"}, "length"),
        ("gemini", {"contents": "[]", "candidates": "[{'content': {'parts': [{'text': 'He'}], 'role': 'model'}, "
                                                    "'finishReason': 'MAX_TOKENS'}]"}, "length"),
    ],
)  # fmt: skip
def test_litellm_s_raw_span_states_why_a_model_stopped(provider: str, answered: dict[str, str], finish: str) -> None:
    attributes = {f"llm.{provider}.{key}": value for key, value in answered.items()}
    span = normalise(_raw("raw_gen_ai_request", "litellm", attributes=attributes))
    assert (span.kind, span.output, span.finish_reason) == (SpanKind.LLM, "He", finish)


@pytest.mark.parametrize(("operation", "kind"), [
    ("acompletion", SpanKind.LLM), ("atext_completion", SpanKind.LLM), ("aresponses", SpanKind.LLM),
    ("anthropic_messages", SpanKind.LLM), ("aembedding", SpanKind.EMBEDDING), ("embedding", SpanKind.EMBEDDING),
])  # fmt: skip
def test_a_call_of_litellm_s_proxy_that_fails_is_a_failed_run(operation: str, kind: SpanKind) -> None:
    spans = [normalise(raw) for raw in (
        _raw("POST /chat/completions", "fastapi", status_code=2, attributes={"error.type": "500"}),
        _raw("litellm_request", "litellm", number=2, parent=1, status_code=2, attributes={
            "gen_ai.operation.name": operation, "gen_ai.request.model": "m", "litellm.call_id": "c",
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "When?"}]}]',
            "error.type": "InternalServerError", "error.message": "The server had an error",
        }),
    )]  # fmt: skip
    assert spans[1].kind is kind
    verdict = score(extract(Trace.of("1" * 32, spans, "batch")), RUBRICS["run_health"], created_at="")
    assert verdict.passed is False


def test_steps_of_litellm_s_proxy_that_name_a_model_are_no_calls_of_it() -> None:
    """Of its second form; a step of FastAPI's is decorated too."""
    asked = {"litellm.api_key.hash": "h", "gen_ai.request.model": "m"}
    for scope, name in (("fastapi", "fastapi.dependencies"), ("litellm", "route m")):
        span = normalise(_raw(name, scope, attributes=asked))
        assert (span.dialect, span.kind, span.requested_model) == ("litellm", SpanKind.OTHER, None)
    call = asked | {"gen_ai.operation.name": "chat", "litellm.call_id": "c"}
    assert normalise(_raw("chat m", "litellm", attributes=call)).kind is SpanKind.LLM


def test_litellm_s_raw_span_of_embeddings_is_no_model_that_answers() -> None:
    span = normalise(_raw("raw_gen_ai_request", "litellm", attributes={
        "llm.None.input": "x", "llm.None.data": "[{'embedding': [0.1], 'index': 0, 'object': 'embedding'}]",
        "llm.None.usage": "{'prompt_tokens': 3, 'total_tokens': 3}",
    }))  # fmt: skip
    assert (span.kind, span.usage) == (SpanKind.EMBEDDING, Usage(input=3, output=None))


def test_a_stream_s_object_that_a_client_prints_is_no_answer_and_counts_of_nothing_are_none() -> None:
    answers = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 0, "llm.token_count.completion": 0}
    printed = normalise(_raw("Completions", "", attributes=answers | {
        "input.value": "When?", "output.value": "<openai.Stream object at 0x7fc851275370>",
    }))  # fmt: skip
    assert (printed.input, printed.output) == ("When?", None), "OpenInference of Portkey"
    for instructions in ('"<openai.Omit object at 0x7fa890fdc750>"', "null"):
        given = {"mlflow.spanType": '"LLM"', "instructions": instructions, "mlflow.spanInputs": '{"input": "When?"}'}
        assert normalise(_raw("Response", "", attributes=given)).system_prompt is None, "MLflow of OpenAI's Agents SDK"
    streamed = normalise(_raw("create_stream", "", attributes=answers | {"output.value": "At dawn."}))
    assert (streamed.output, streamed.usage) == ("At dawn.", None), "OpenInference of AutoGen"


def test_litellm_s_metadata_is_what_the_caller_gave_and_not_its_bookkeeping() -> None:
    span = normalise(_raw("gen", "litellm", attributes=CHAT | {
        "metadata.user_api_key_hash": "", "metadata.requester_metadata": "{'ticket': 7}",
    }))  # fmt: skip
    assert span.metadata == {"ticket": 7}


def test_a_call_that_is_told_again_without_its_id_is_one_call() -> None:
    parent = CHAT | {
        "gen_ai.completion.0.function_call.name": "look_up", "gen_ai.completion.0.function_call.arguments": '{"n": 1}',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": []}]',
    }  # fmt: skip
    raw = {
        "llm.openai.messages": "[{'role': 'user', 'content': 'Where?'}]",
        "llm.openai.choices": "[{'message': {'role': 'assistant', 'tool_calls': [{'id': 'c', 'function': "
        "{'name': 'look_up', 'arguments': '{\"n\": 1}'}}]}}]",
    }
    normalised = [normalise(_raw("gen", "litellm", attributes=parent)),
              normalise(_raw("gen", "litellm", number=2, parent=1, attributes=raw))]  # fmt: skip
    (call,) = extract(Trace.of("1" * 32, normalised, "batch")).tools_used or ()
    assert (call.name, call.arguments, call.call_id) == ("look_up", {"n": 1}, "c")


def test_numbered_messages_of_old_openllmetry_are_ordered_by_number() -> None:
    attributes: dict[str, Any] = {"llm.request.type": "chat"}
    for number in range(12):
        attributes |= {f"gen_ai.prompt.{number}.role": "user", f"gen_ai.prompt.{number}.content": f"m{number}"}
    attributes |= {"gen_ai.completion.0.content": "Here.", "gen_ai.completion.0.role": "assistant"}
    span = normalise(_raw("openai.chat", "", attributes=attributes))
    assert [message.text for message in span.input_messages] == [f"m{number}" for number in range(12)]
    assert (span.input, span.output) == ("m11", "Here.")


def test_the_only_argument_of_langsmith_s_traceable_function_is_the_question() -> None:
    for given, wanted in (({"q": "Where?"}, "Where?"), ({"q": "Where?", "n": 3}, {"q": "Where?", "n": 3})):
        attributes = {"langsmith.span.kind": "chain", "gen_ai.prompt": json.dumps(given)}
        assert normalise(_raw("ask", "langsmith", attributes=attributes)).input == wanted


@pytest.mark.parametrize(("node", "agent"), [("__start__", None), ("model_request", "desk")])
def test_the_step_that_begins_a_graph_is_no_run_of_an_agent_in_langsmith(node: str, agent: str | None) -> None:
    metadata = {"langsmith.metadata.lc_agent_name": "desk", "langsmith.metadata.langgraph_node": node}
    assert normalise(_raw("shop", "langsmith", attributes={"langsmith.span.kind": "chain", **metadata})).agent == agent


@pytest.mark.parametrize(("method", "kind"), [("trace", SpanKind.AGENT), ("traceable", SpanKind.CHAIN)])
def test_a_function_within_a_run_of_claude_s_agents_is_no_agent_in_langsmith(method: str, kind: SpanKind) -> None:
    inherited = {"ls_integration": "claude-agent-sdk", "ls_agent_type": "subagent", "ls_method": method}
    attributes = {"langsmith.span.kind": "chain"} | {f"langsmith.metadata.{key}": it for key, it in inherited.items()}
    span = normalise(_raw("clerk", "langsmith", attributes=attributes))
    assert (span.kind, span.agent) == (kind, "clerk" if kind is SpanKind.AGENT else None)


def test_a_run_of_langsmith_s_in_javascript_has_failed_by_its_exception_and_returns_what_outputs_holds() -> None:
    event = RawEvent(
        name="exception", time_ns=1, attributes={"exception.type": "Error", "exception.message": "Error: down"}
    )
    tool = {"langsmith.span.kind": "tool", "gen_ai.tool.name": "find", "gen_ai.prompt": '{"order": "A-17"}'}
    raised = normalise(_raw("find", "langsmith", status_code=1, attributes=tool, events=(event,)))
    ran = normalise(_raw("find", "langsmith", status_code=1, attributes=tool | {
        "gen_ai.completion": '{"outputs": "shipped"}',
    }))  # fmt: skip
    assert (raised.error, ran.error) == ("Error: down", None)
    assert raised.tool is not None
    assert ran.tool is not None
    assert (raised.tool.error, ran.tool.result) == ("Error: down", "shipped")
    asked = {"input": [{"role": "user", "content": "Where?"}], "instructions": "Be brief."}
    llm = {"langsmith.span.kind": "llm", "gen_ai.prompt": json.dumps(asked)}
    assert normalise(_raw("ChatOpenAI", "langsmith", attributes=llm)).system_prompt == "Be brief."


def test_langsmith_s_wrapped_clients_put_the_api_s_own_request_and_response_there() -> None:
    span = normalise(_raw("ChatOpenAI", "langsmith", attributes={
        "langsmith.span.kind": "llm", "gen_ai.prompt": '{"messages": [{"role": "user", "content": "Where?"}]}',
        "gen_ai.completion": '{"model": "m-1", "choices": [{"message": {"role": "assistant", "content": "Here."}}]}',
        "langsmith.metadata.temperature": 0.2, "langsmith.metadata.ticket": 7, "langsmith.span.tags": "a, seq:step:1",
    }))  # fmt: skip
    assert (span.input, span.output, span.model, span.tags) == ("Where?", "Here.", "m-1", ("a",))
    assert span.metadata == {"ticket": 7}


def test_an_empty_answer_in_the_api_s_own_response_is_one_for_langsmith() -> None:
    part = {"type": "output_text", "text": ""}
    answered = {"object": "response", "output": [{"type": "message", "role": "assistant", "content": [part]}]}
    span = normalise(_raw("ChatOpenAI", "langsmith", attributes={
        "langsmith.span.kind": "llm", "gen_ai.prompt": '{"input": "Where?"}', "gen_ai.completion": json.dumps(answered),
    }))  # fmt: skip
    assert (span.output, span.unread) == ("", ())


@pytest.mark.parametrize("kind", ["llm", "tool", "chain"])
def test_langsmith_s_empty_maps_are_hidden_contents_and_no_answer(kind: str) -> None:
    for given in ("{}", '{"input": "Where?"}'):
        span = normalise(_raw("step", "langsmith", attributes={
            "langsmith.span.kind": kind, "gen_ai.prompt": given, "gen_ai.completion": "{}",
        }))  # fmt: skip
        assert (span.output, span.tool and span.tool.result) == (None, None)
        assert (span.input is None) == (given == "{}")


@pytest.mark.parametrize(("stopped", "called"), [("end_turn", ()), ("tool_use", None)])
def test_a_model_call_of_claude_code_shows_by_its_stop_whether_it_called_a_tool(
    stopped: str, called: tuple[ToolCall, ...] | None
) -> None:
    run, model = {"gen_ai.operation.name": "invoke_agent", "user_prompt": "Where?"}, {**CHAT, "stop_reason": stopped}
    spans = [
        _raw("claude_code.interaction", "com.anthropic.claude_code.tracing", attributes=run),
        _raw("claude_code.llm_request", "com.anthropic.claude_code.tracing", number=2, parent=1, attributes=model),
    ]
    case = extract(Trace.of("1" * 32, list(map(normalise, spans)), "batch"))
    assert case.tools_used == called


def test_what_a_tool_of_a_server_was_given_stands_in_a_record_of_claude_code_s_interaction() -> None:
    ran = {
        "tool_name": "mcp_tool", "tool_use_id": "c1", "tool_input": '{"city": "Oslo"}',
        "tool_parameters": '{"mcp_server_name": "shop", "mcp_tool_name": "get_weather"}',
    }  # fmt: skip
    records = (
        RawEvent(name="tool_result", time_ns=5, attributes=ran),
        RawEvent(name="tool_result", time_ns=6, attributes={}),
    )
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "c1",
    }  # fmt: skip
    returned = (RawEvent(name="tool.output", time_ns=4, attributes={"output": "7 degrees"}),)
    run = {"gen_ai.operation.name": "invoke_agent", "user_prompt": "Where?"}
    scope = "com.anthropic.claude_code.tracing"
    spans = [
        _raw("claude_code.interaction", scope, attributes=run, events=records),
        _raw("claude_code.tool", scope, number=2, parent=1, attributes=tool, events=returned),
    ]
    case = extract(Trace.of("1" * 32, list(map(normalise, spans)), "batch"))
    assert case.tools_used == (
        ToolCall(name="get_weather", arguments={"city": "Oslo"}, result="7 degrees", call_id="c1"),
    )


def _mlflow(name: str, kind: str, number: int, given: object, returned: object, **more: str) -> RawSpan:
    held = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": returned, **more}
    return _raw(
        name, "mlflow.tracing.provider", number=number, parent=1 if number > 1 else None,
        attributes={key: json.dumps(value) for key, value in held.items()},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({"tools_should_include": ["weather"]}, None),
        ({"tools_should_exclude": ["mail"]}, None),
        ({"tools_may_include": ["weather"], "closed": True}, None),
        ({"min_calls": {"weather": 1}}, None),
        ({"max_calls": {"*": 1}}, 1.0),
        ({"max_calls": {"*": 0}}, 0.0),
        ({"max_calls": {"weather": 1}}, 1.0),
        ({"max_calls": {"weather": 0}}, None),
        ({"any_of": [["weather", "mail"]]}, None),
        *(({relation: [["weather", "mail"]]}, None) for relation in ("before", "after", "not_after", "not_both")),
        ({"tools_in_order": ["SimpleTool.__call__"]}, 1.0),
        ({"arguments": {"weather": {"city": "Oslo"}}}, None),
        ({"result_use": ["weather"]}, None),
        ({"agents_should_include": ["ToolCallingAgent"]}, 1.0),
        ({"tools_should_include": ["SimpleTool.__call__"]}, 1.0),
    ],
)
def test_which_tools_of_smolagents_ran_is_not_known_by_their_class(asked: dict[str, Any], value: float | None) -> None:
    given = {"sanitize_inputs_outputs": True, "kwargs": {"city": "Oslo"}}
    run = {"agent_name": "ToolCallingAgent", "tools": "[{}]"}
    spans = [
        _mlflow("ToolCallingAgent.run", "AGENT", 1, {"task": "How warm is it?"}, {"_value": "7 degrees."}, **run),
        _mlflow("SimpleTool.__call__", "TOOL", 2, given, {"_value": "7 degrees"}),
    ]
    case = extract(Trace.of("1" * 32, [normalise(span) for span in spans], "batch"))
    assert case.agents_called == ("ToolCallingAgent",)
    assert case.tools_used is not None
    assert [(call.arguments, call.result) for call in case.tools_used] == [({"city": "Oslo"}, "7 degrees")]
    verdict = score(case.drawn(1.0, parse_scenario("contract", asked)), RUBRICS["workflow"], created_at="")
    results = {each.metric: each.result for each in verdict.scores}
    decided = [found.value for found in results.values() if isinstance(found, Scored)]
    assert (None if verdict.passed is None else min(decided)) == value
    assert any(
        isinstance(found, Unavailable) and "not show its name" in found.reason for found in results.values()
    ) is (value is None)


def test_a_conversation_with_claude_code_in_mlflow_has_its_answer_its_tools_and_the_agents_that_it_ran() -> None:
    asked = {"prompt": "Where?", "subagent_type": "clerk"}
    spans = [
        _mlflow(
            "claude_code_conversation", "AGENT", 1, {"prompt": "Where?"}, {"status": "completed", "response": "x."}
        ),
        _mlflow("tool_Agent", "TOOL", 2, asked, {"result": "Oslo"}, tool_name="Agent", tool_id="c1"),
        _mlflow("tool_mcp__a__find", "TOOL", 3, {"q": "x"}, {"result": "y"}, tool_name="mcp__a__find", tool_id="c2"),
    ]
    case = extract(Trace.of("1" * 32, list(map(normalise, spans)), "batch"))
    assert (case.input, case.model_output, case.agents_called) == ("Where?", "x.", ("clerk",))
    assert case.tools_used == (
        ToolCall(name="Agent", arguments=asked, result="Oslo", call_id="c1", handoff=True),
        ToolCall(name="mcp__a__find", arguments={"q": "x"}, result="y", call_id="c2"),
    )


def test_a_conversation_with_claude_code_in_mlflow_that_ended_without_a_word_gave_no_answer() -> None:
    silent = _mlflow("claude_code_conversation", "AGENT", 1, {"prompt": "Where?"}, {"status": "completed"})
    case = extract(Trace.of("1" * 32, [normalise(silent)], "batch"))
    assert score(case, RUBRICS["run_health"], created_at="").blockers == ("answered",)


def test_an_agent_that_an_agent_of_claude_s_runs_has_its_name_through_logfire() -> None:
    run, tool = {"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "execute_tool"}
    given = {
        "gen_ai.tool.name": "Agent",
        "gen_ai.tool.call.arguments": '{"prompt": "Where?", "subagent_type": "clerk"}',
    }
    scope = "logfire.claude_agent_sdk"
    spans = [_raw("invoke_agent", scope, attributes=run), _raw("x", scope, number=2, parent=1, attributes=tool | given)]
    case = extract(Trace.of("1" * 32, list(map(normalise, spans)), "batch"))
    assert case.agents_called == ("clerk",)
    assert [(call.name, call.handoff) for call in case.tools_used or ()] == [("Agent", True)]


def test_a_run_of_burr_s_whose_action_failed_gave_no_answer_though_it_has_a_state() -> None:
    """Its bridge to Langfuse sends the state in place of what went in and what came out, and no error of the run."""
    asked = {"messages": [{"role": "user", "content": "Where?"}]}
    state = {**asked, "answer": None, "__SEQUENCE_ID": 1, "__PRIOR_STEP": "ask"}
    sent = [
        ("run", {"input": {"messages": [], "answer": None}, "output": state}),
        ("ask", {"input": {"inputs": {"question": "Where?"}, "state": {}}, "output": {"result": {}, "state": asked}}),
        ("answer", {"input": {"inputs": {}, "state": asked}}),
    ]
    spans = [
        normalise(_raw(
            name, "burr.integrations.langfuse", number=number, parent=1 if number > 1 else None,
            status_code=2 if name == "answer" else 1,
            attributes={f"langfuse.observation.{key}": json.dumps(held) for key, held in contents.items()},
        ))
        for number, (name, contents) in enumerate(sent, 1)
    ]  # fmt: skip
    case = extract(Trace.of("1" * 32, spans, "batch"))
    assert (case.input, case.model_output) == ("Where?", None)


def test_a_run_of_mirascope_that_ends_without_a_word_after_a_tool_gave_no_answer() -> None:
    """It puts what the model was given beside what it answered, in parts of its own."""
    asked, call = {"type": "text", "content": "Where?"}, {"type": "tool_call", "id": "c1", "name": "find"}
    given = [
        {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {"role": "assistant", "content": [{**call, "args": '{"q": "x"}'}]},
        {"role": "user", "content": [{"type": "tool_output", "id": "c1", "name": "find", "result": "nowhere"}]},
    ]
    returned = {"type": "tool_call_response", "id": "c1", "response": "nowhere"}
    spans = [
        _raw("run", "mirascope.ops", attributes={"mirascope.type": "trace", "mirascope.trace.output": ""}),
        _raw("chat", "mirascope.llm", number=2, parent=1, attributes=CHAT | {
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [asked]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{**call, "arguments": {"q": "x"}}]}]),
        }),
        _raw("chat", "mirascope.llm", number=3, parent=1, attributes=CHAT | {
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [asked, returned]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [], "finish_reason": "stop"}]),
            "mirascope.response.messages": json.dumps(given),
        }),
    ]  # fmt: skip
    spans[2] = replace(spans[2], start_ns=spans[1].end_ns, end_ns=spans[1].end_ns + 5)
    case = extract(Trace.of("1" * 32, list(map(normalise, spans)), "batch"))
    verdict = score(case, RUBRICS["run_health"], created_at="")
    assert verdict.blockers == ("answered",)


def _interaction(*answers: dict[str, str]) -> RawSpan:
    run = {"gen_ai.operation.name": "invoke_agent", "user_prompt": "Where?"}
    events = tuple(RawEvent(name="assistant_response", time_ns=5, attributes=dict(each)) for each in answers)
    return _raw("claude_code.interaction", "com.anthropic.claude_code.tracing", attributes=run, events=events)


@pytest.mark.parametrize("source", ["sdk", "repl_main_thread", "repl_main_thread:outputStyle:x", None])
def test_claude_code_answers_with_what_the_conversation_says_not_with_the_title_it_gets(source: str | None) -> None:
    said = {"response": "In Oslo."} | ({} if source is None else {"query_source": source})
    title = {"response": '{"title": "A place"}', "query_source": "generate_session_title"}
    assert normalise(_interaction(said, title)).output == "In Oslo."
    assert normalise(_interaction(title)).output is None


def test_the_form_that_claude_code_was_asked_for_is_its_answer_whatever_it_writes_beside() -> None:
    form = {"tool_name": "StructuredOutput", "success": "true", "tool_use_id": "c1", "tool_input": '{"place": "Oslo"}'}
    said = {"response": "Let me see.", "query_source": "sdk"}
    raw = _interaction(said)
    events = (RawEvent(name="tool_result", time_ns=4, attributes=dict(form)), *raw.events)
    assert normalise(replace(raw, events=events)).output == '{"place": "Oslo"}'
    failed = (RawEvent(name="tool_result", time_ns=4, attributes=form | {"success": "false"}), *raw.events)
    assert normalise(replace(raw, events=failed)).output == "Let me see."


def test_an_answer_that_claude_code_does_not_send_is_none() -> None:
    assert normalise(_interaction({"response": "<REDACTED>", "query_source": "sdk"})).output is None


@pytest.mark.parametrize(
    ("source", "kind"),
    [("generate_session_title", SpanKind.OTHER), ("sdk", SpanKind.LLM), (None, SpanKind.LLM)],
)
def test_a_call_of_claude_code_beside_the_conversation_is_no_run(source: str | None, kind: SpanKind) -> None:
    attributes = {**CHAT, "llm_request.context": "standalone", "input_tokens": 31, "output_tokens": 11}
    attributes |= {} if source is None else {"query_source_safe": source}
    span = normalise(_raw("claude_code.llm_request", "com.anthropic.claude_code.tracing", attributes=attributes))
    assert span.kind is kind
    assert span.usage == Usage(input=31, output=11)


@pytest.mark.parametrize("text", ["", "Here."])
def test_the_last_step_of_a_workflow_of_llamaindex_answers_with_its_response_s_text(text: str) -> None:
    response = {"role": "assistant", "blocks": [{"block_type": "text", "text": text}]}
    span = normalise(_raw("BaseWorkflowAgent.task", "opentelemetry.instrumentation.llamaindex", attributes={
        "traceloop.span.kind": "task",
        "traceloop.entity.output": json.dumps({"result": {"response": response, "current_agent_name": "a"}}),
    }))  # fmt: skip
    assert span.output == text


def test_agents_of_autogen_have_their_names_questions_and_answers_in_mlflow() -> None:
    asked, event = {"source": "user", "content": "Where?", "type": "TextMessage"}, {"source": "a", "content": [{}]}
    given = {"messages": [asked], "cancellation_token": "<x>"}
    for number, (method, put, content, answer) in enumerate((
        ("run", {"task": "Where?"}, "Here.", "Here."),
        ("run", {"task": [asked]}, {"place": "here"}, {"place": "here"}),
        ("run", {"task": asked}, [{"name": "find", "id": "1", "arguments": "{}"}], None),
        ("on_messages", given, "Here.", "Here."),
    ), 1):  # fmt: skip
        last = {"source": "a", "content": content}
        ended = {"messages": [asked, event, last], "stop_reason": None}
        replied = {"chat_message": last, "inner_messages": [event]}
        span = normalise(_mlflow(f"a.b.{method}", "AGENT", number, put, ended if method == "run" else replied))
        assert (span.agent, span.input, span.output) == ("a.b", "Where?", answer)
    smolagents = _mlflow("Agent.run", "AGENT", 1, {"task": "Where?"}, {"_value": "Here."}, agent_name="Agent")
    assert normalise(smolagents).agent == "Agent"


def test_a_workflow_of_llamaindex_has_its_question_its_answer_and_its_agent_in_mlflow() -> None:
    returned = {"role": "assistant", "blocks": [{"block_type": "text", "text": "Here."}]}
    for kind, name, given, wanted in (
        (
            "AGENT",
            "FunctionAgent.run",
            {"user_msg": "Where?", "memory": None},
            (SpanKind.AGENT, "Where?", "Here.", None),
        ),
        ("CHAIN", "Base.run_agent_step", {"ev": {"current_agent_name": "a"}}, (SpanKind.CHAIN, ..., "Here.", "a")),
        ("LLM", "OpenAI._prepare", {}, (SpanKind.CHAIN, ..., "Here.", None)),
    ):
        span = normalise(_raw(name, "mlflow.tracing.provider", attributes={
            "mlflow.spanType": json.dumps(kind), "mlflow.spanInputs": json.dumps(given),
            "mlflow.spanOutputs": json.dumps({"result": {"response": returned, "current_agent_name": "a"}}),
        }))  # fmt: skip
        found = (span.kind, span.input if wanted[1] is not ... else ..., span.output, span.agent)
        assert found == wanted


def test_mlflow_s_smolagents_return_values_and_their_settings_are_no_answers() -> None:
    settings = {"mlflow.spanType": '"AGENT"', "stream_outputs": '"False"', "name": '"a"'}
    assert normalise(_raw("Agent.run", "mlflow.tracing.provider", attributes=settings)).output is None
    for kind in ("AGENT", "TOOL"):
        span = normalise(_raw("step", "mlflow.tracing.provider", attributes=settings | {
            "mlflow.spanType": json.dumps(kind), "mlflow.spanOutputs": '{"_value": "Here."}',
        }))  # fmt: skip
        assert span.output == "Here."


@pytest.mark.parametrize(("content", "output"), [("", ""), ("Here.", "Here."), ([{"type": "image_url"}], None)])
def test_a_graph_that_ends_without_a_word_has_no_answer_in_openllmetry(content: Any, output: str | None) -> None:
    ends = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}
    talked = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "c", "function": {"name": "look_up", "arguments": "{}"}},
    ]}, {"role": "tool", "tool_call_id": "c", "content": "7"}]  # fmt: skip
    state = json.dumps({"outputs": {"messages": [*talked, {**ends, "kwargs": {"content": content}}]}, "kwargs": {}})
    run = normalise(_raw("clerk.workflow", "opentelemetry.instrumentation.langchain", attributes={
        "traceloop.span.kind": "workflow", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk",
        "traceloop.association.properties.lc_agent_name": "clerk", "gen_ai.task.output": state,
        "traceloop.entity.output": state,
    }))  # fmt: skip
    assert (run.kind, run.output, bool(run.unread)) == (SpanKind.AGENT, output, output is None)


def test_an_agent_that_was_made_did_not_run_yet() -> None:
    span = normalise(_raw("create_agent a", "", attributes={
        "gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a",
    }))  # fmt: skip
    assert extract(Trace.of(span.trace_id, [span], "batch")).agents_called == ()


SMOLAGENTS = "openinference.instrumentation.smolagents"


def test_smolagents_answers_through_a_pseudo_tool_that_is_none_of_the_program_s() -> None:
    call = "llm.output_messages.0.message.tool_calls.0.tool_call."
    normalised = [normalise(raw) for raw in (
        _raw("support.run", SMOLAGENTS, number=1, attributes={
            "openinference.span.kind": "AGENT", "input.value": '{"task": "Where?", "stream": false}',
            "output.value": "Here.",
        }),
        _raw("OpenAIModel.generate", SMOLAGENTS, number=2, parent=1, attributes={
            "openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
            call + "function.name": "final_answer", call + "function.arguments": '{"answer": "Here."}',
        }),
        _raw("LookUp", SMOLAGENTS, number=3, parent=1, attributes={
            "openinference.span.kind": "TOOL", "tool.name": "look_up", "output.value": "here",
            "input.value": '{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"n": 1}}',
        }),
        _raw("FinalAnswerTool", SMOLAGENTS, number=4, parent=1, attributes={
            "openinference.span.kind": "TOOL", "tool.name": "final_answer", "output.value": "Here.",
        }),
    )]  # fmt: skip
    case = extract(Trace.of("1" * 32, normalised, "batch"))
    assert (case.input, case.model_output, case.agents_called) == ("Where?", "Here.", ("support",))
    assert [(t.name, t.arguments, t.result) for t in case.tools_used or ()] == [("look_up", {"n": 1}, "here")]
    assert normalised[1].output == "Here."


@pytest.mark.parametrize(("top", "model"), [
    (("Angler", "openinference.instrumentation.langchain", {
        "openinference.span.kind": "CHAIN", "metadata": '{"lc_agent_name": "Angler"}',
        "output.value": '{"messages": [{"type": "ai", "data": {}}], "structured_response": {"at": "dawn"}}',
    }), ("ChatOpenAI", "openinference.instrumentation.langchain")),
    (("invoke_agent Angler", "pydantic-ai", {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Angler", "final_result": '{"at":"dawn"}',
    }), ("ask", "own")),
])  # fmt: skip
def test_a_form_in_which_a_model_answers_is_no_tool_and_none_of_its_attempts_is(
    top: tuple[str, str, dict[str, Any]], model: tuple[str, str]
) -> None:
    call = "llm.output_messages.0.message.tool_calls.{}.tool_call."
    made = [("Form", {"at": "noon"}), ("Form", {"at": "dawn"}), ("look_up", {"at": "noon"})]
    calls = {
        call.format(number) + key: value
        for number, (name, given) in enumerate(made)
        for key, value in (("id", f"c{number}"), ("function.name", name), ("function.arguments", json.dumps(given)))
    }
    spans = [normalise(raw) for raw in (
        _raw(*top[:2], number=1, attributes=top[2]),
        _raw(*model, number=2, parent=1, attributes={
            "openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant", **calls,
        }),
    )]  # fmt: skip
    case = extract(Trace.of("1" * 32, spans, "batch"))
    assert [call.name for call in case.tools_used or ()] == ["look_up"]


CREW = "openinference.instrumentation.crewai"


@pytest.mark.parametrize(("kind", "sent", "asked"), [
    ("CHAIN", {"crew_inputs": "", "crew_tasks": '[{"description": "When?"}, {"description": "Write."}]'}, "When?"),
    ("AGENT", {"input.value": '{"messages": "When?"}', "output.value": '{"raw": "At dawn."}'}, "When?"),
    ("AGENT", {"input.value": '{"agent": {"role": "a"}, "context": "", "tools": []}'}, None),
    ("AGENT", {"input.value": '{"agent": "a"}', "output.value": '{"description": "When?", "raw": "Now."}'}, "When?"),
])  # fmt: skip
def test_a_crew_that_failed_and_an_agent_without_a_task_have_their_questions(
    kind: str, sent: dict[str, str], asked: str | None
) -> None:
    span = normalise(_raw("kickoff", CREW, attributes={"openinference.span.kind": kind, **sent}))
    assert span.input == asked


@pytest.mark.parametrize(("error", "completed"), [("AgentGenerationError", 0.0), ("AgentParsingError", "unavailable")])
def test_a_run_of_smolagents_whose_model_failed_has_failed_though_its_span_never_comes(
    error: str, completed: object
) -> None:
    spans = [normalise(raw) for raw in (
        _raw("Step 1", SMOLAGENTS, number=2, parent=1, status_code=2, status_message=f"{error}: no", attributes={
            "openinference.span.kind": "CHAIN", "input.value": '{"memory_step": "ActionStep(step_number=1)"}',
        }),
        _raw("Model.generate", SMOLAGENTS, number=3, parent=2, attributes={
            "openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Where?",
        }),
    )]  # fmt: skip
    case = extract(Trace.of("1" * 32, spans, "batch"))
    found = _health(case)["completed"]
    assert (case.input, getattr(found, "value", found.status)) == ("Where?", completed)


@pytest.mark.parametrize(
    ("names", "tried"), [(("web_search", "final_answer"), 0.0), (("final_answer",), None), ((), None)]
)
def test_a_run_of_smolagents_that_answers_at_once_tried_none_of_its_tools(names: tuple[str, ...], tried: float) -> None:
    spans = [normalise(raw) for raw in (
        _raw("CodeAgent.run", SMOLAGENTS, number=1, attributes={
            "openinference.span.kind": "AGENT", "output.value": "45", "smolagents.tools_names": names,
        }),
        _raw("Model.generate", SMOLAGENTS, number=2, parent=1, attributes={
            "openinference.span.kind": "LLM", "output.value": "I know.",
        }),
        _raw("FinalAnswerTool", SMOLAGENTS, number=3, parent=1, attributes={
            "openinference.span.kind": "TOOL", "tool.name": "FinalAnswerTool", "output.value": "45",
        }),
    )]  # fmt: skip
    verdict = score(extract(Trace.of("1" * 32, spans, "batch")), RUBRICS["run_health"], created_at="")
    results = {each.metric: each.result for each in verdict.scores}
    assert getattr(results["tools_tried"], "value", None) == tried
    assert not hasattr(results["calls_valid"], "value"), "names alone declare no tool"


def test_adk_s_wrapper_around_what_a_function_returns_comes_off_in_messages_too() -> None:
    parts = [{"type": "tool_call_response", "id": "c", "response": {"result": "here"}}]
    span = normalise(_raw("generate_content m", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "generate_content",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}]),
    }))  # fmt: skip
    assert [message.text for message in span.input_messages if message.role == "tool"] == ["here"]


def test_of_a_translated_span_only_an_agent_s_node_is_an_agent() -> None:
    def agent(kind: str, **more: str) -> str | None:
        reported = {
            "openinference.span.kind": kind,
            "graph.node.id": "node_1",
            **{k.replace("__", "."): v for k, v in more.items()},
        }
        return normalise(_raw("step", "somebody.tracer", attributes=reported)).agent

    assert agent("LLM") is None
    assert agent("TOOL") is None
    assert agent("AGENT") == "node_1"
    assert agent("AGENT", graph__node__name="clerk") == "clerk"
    assert agent("AGENT", gen_ai__agent__name="clerk") == "clerk"


def test_what_langgraph_raises_to_go_elsewhere_is_no_error() -> None:
    def error(kind: str) -> str | None:
        raised = RawEvent(name="exception", time_ns=1, attributes={"exception.type": kind, "exception.message": "go"})
        return normalise(_raw("step", "", status_code=2, events=(raised,))).error

    assert error("langgraph.errors.ParentCommand") is None
    assert error("langgraph.errors.GraphRecursionError") == "langgraph.errors.GraphRecursionError: go"
    reported = _raw("step", "", status_code=2, status_message="Command()", attributes={"error.type": "ParentCommand"})
    assert normalise(reported).error is None


def test_a_response_s_id_is_no_session() -> None:
    def session(conversation: str) -> str | None:
        reported = CHAT | {"gen_ai.conversation.id": conversation}
        return normalise(_raw("chat", "agent_framework", attributes=reported)).session_id

    assert (session("resp_123"), session("desk-4")) == (None, "desk-4")


def test_what_openinference_s_messages_leave_out_of_a_call_stands_in_the_raw_body() -> None:
    def call(reported: dict[str, str], raw: dict[str, Any]) -> ToolCall:
        key = "llm.output_messages.0.message."
        numbered = {f"{key}tool_calls.0.tool_call.{name}": value for name, value in reported.items()}
        body = {"role": "assistant", "tool_calls": [raw]}
        (message,) = normalise(_raw("call", "openinference.instrumentation.langchain", attributes={
            "openinference.span.kind": "LLM", f"{key}role": "assistant", **numbered, "output.value": json.dumps(body),
        })).output_messages  # fmt: skip
        return message.tool_calls[0]

    name = {"function.name": "f"}
    assert call(name, {"id": "c", "name": "f", "args": {}}) == ToolCall(name="f", arguments={}, call_id="c")
    assert call({**name, "id": "d"}, {"name": "f", "args": {}}) == ToolCall(name="f", arguments={}, call_id="d")
    stated = {**name, "function.arguments": '{"a": 1}'}
    assert call(stated, {"id": "c", "name": "f", "args": {}}) == ToolCall(name="f", arguments={"a": 1}, call_id="c")


def test_a_tool_s_span_that_openinference_translated_keeps_the_id_of_its_call() -> None:
    for key in ("tool.call_id", "gen_ai.tool.call.id"):
        attributes = {"openinference.span.kind": "TOOL", "tool.name": "f", key: "c"}
        tool = normalise(_raw("Tool: f", "strands.telemetry.tracer", attributes=attributes)).tool
        assert tool is not None
        assert tool.call_id == "c"


def test_langchain_s_pairs_are_messages() -> None:
    span = normalise(_raw("graph", "openinference.instrumentation.langchain", attributes={
        "openinference.span.kind": "CHAIN",
        "input.value": '{"messages": [["system", "Be brief."], ["human", "Where?"]]}',
    }))  # fmt: skip
    assert span.input == "Where?"


def test_an_operation_that_is_called_a_completion_is_a_model_call() -> None:
    called = {"gen_ai.operation.name": "completion", "gen_ai.request.model": "m-1"}
    request = [{"contents": [{"text": "Why?", "type": "TEXT"}], "type": "USER"}]
    answer = {"text": "Because.", "toolExecutionRequests": [], "type": "AI"}
    contents = {"gen_ai.prompt": json.dumps(request), "gen_ai.completion": json.dumps(answer)}
    span = normalise(_raw("completion", "", attributes=called | contents))
    assert (span.kind, span.input, span.output) == (SpanKind.LLM, "Why?", "Because.")
    assert normalise(_raw("plan", "", attributes=called | {"gen_ai.operation.name": "plan"})).kind is SpanKind.CHAIN


def test_a_tool_s_span_that_names_the_operation_alone_has_the_name_that_the_model_asked_for() -> None:
    part = {"type": "tool_call", "name": "look_up", "id": "c1", "arguments": {"q": 1}}
    asked = json.dumps([{"role": "assistant", "parts": [part]}])
    chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "found"}
    spans = [_raw("chat m", "", attributes=chat), _raw("execute_tool", "", number=2, attributes=ran)]
    case = extract(Trace.of("1" * 32, [normalise(each) for each in spans], "batch"))
    assert case.tools_used == (ToolCall(name="look_up", arguments={"q": 1}, result="found", call_id="c1"),)


def test_a_request_of_mcp_for_a_tool_is_its_call_and_no_other_request_is() -> None:
    request = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "find"}
    span = normalise(_raw("tools/call find", "", attributes=request))
    assert (span.kind, span.tool, span.provenance["kind"]) == (SpanKind.TOOL, ToolCall(name="find"), "mcp.method.name")
    assert normalise(_raw("tools/list", "", attributes={"mcp.method.name": "tools/list"})).kind is SpanKind.OTHER


@pytest.mark.parametrize("pieces", [("Oslo has ", "7 degrees."), ("Oslo has ", "7 degrees.", "Oslo has 7 degrees.")])
def test_the_pieces_of_a_stream_by_adk_are_one_answer(pieces: tuple[str, ...]) -> None:
    said = [
        {"role": "assistant", "parts": [{"type": "text", "content": piece}], "finish_reason": ""} for piece in pieces
    ]
    called = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {}}]}
    span = normalise(_raw("generate_content m", "gcp.vertex.agent", attributes={
        "gen_ai.operation.name": "generate_content", "gen_ai.output.messages": json.dumps([*said, called]),
    }))  # fmt: skip
    (answer,) = span.output_messages
    assert (span.output, answer.text, len(answer.tool_calls)) == ("Oslo has 7 degrees.", "Oslo has 7 degrees.", 1)


def test_a_call_that_adk_repeats_for_each_part_of_a_stream_is_one_call() -> None:
    def answered(arguments: dict[str, str] | None) -> dict[str, Any]:
        call = {"type": "tool_call", "id": "call_1", "name": "lookup", "arguments": arguments}
        return {"role": "assistant", "parts": [call], "finish_reason": "stop" if arguments else ""}

    model = _raw("generate_content m", "gcp.vertex.agent", parent=3, attributes={
        "gen_ai.operation.name": "generate_content",
        "gen_ai.output.messages": json.dumps([answered(None), answered(None), answered({"order": "A-17"})]),
    })  # fmt: skip
    tool = _raw("execute_tool lookup", "gcp.vertex.agent", number=2, parent=3, attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": "call_1",
    })  # fmt: skip
    agent = _raw("invoke_agent helper", "gcp.vertex.agent", number=3, attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper",
    })  # fmt: skip
    case = extract(Trace.of("1" * 32, [normalise(raw) for raw in (agent, model, tool)], "batch"))
    assert [call.name for call in case.tools_used or ()] == ["lookup"]


def _guarded(*calls: tuple[str, str | None], answer: str | None, captured: bool = True) -> Any:
    """The case of a request to LLMRails: what each rail's model was asked for, and what it answered."""
    scope, spans = "nemo_guardrails", []
    spoken = {"content": answer} if captured else {}
    events = (RawEvent(name="guardrails.utterance.bot.started", time_ns=9, attributes=spoken),)
    request = {"gen_ai.operation.name": "guardrails"}
    spans.append(_raw("guardrails.request", scope, attributes=request, events=events if answer else ()))
    for at, (rail, said) in enumerate(calls):
        spans.append(_raw("guardrails.rail", scope, number=2 + 2 * at, parent=1, attributes={"rail.type": rail}))
        asked = RawEvent(name="gen_ai.content.prompt", time_ns=1, attributes={"content": "?"} if captured else {})
        found = RawEvent(name="gen_ai.content.completion", time_ns=2, attributes={"content": said} if captured else {})
        task = {"gen_ai.operation.name": f"task_{at}", "gen_ai.request.model": "m"}
        events = (asked, found) if said else (asked,)
        spans.append(_raw("call m", scope, number=3 + 2 * at, parent=2 + 2 * at, attributes=task, events=events))
    return extract(Trace.of("1" * 32, [normalise(span) for span in spans], "batch"))


def _health(case: Any) -> dict[str, Any]:
    verdict = score(case, RUBRICS["run_health"], created_at="2026-01-01T00:00:00Z")
    return {each.metric: each.result for each in verdict.scores}


def test_a_rail_of_nemo_guardrails_that_refuses_answers_with_its_refusal_and_not_with_what_its_model_decided() -> None:
    case = _guarded(("input", "Yes"), answer="I cannot talk about that.")
    assert case.model_output == "I cannot talk about that."
    assert [span.kind for span in case.trace.spans] == [SpanKind.CHAIN, SpanKind.GUARDRAIL, SpanKind.LLM]
    assert _health(case)["answered"].value == 1.0
    assert _guarded(("Input", "No"), ("generation", "Bad."), ("Output", "Yes"), answer="No.").model_output == "No."


def test_a_request_to_nemo_guardrails_that_got_nothing_has_no_answer_unless_contents_are_not_captured() -> None:
    case = _guarded(("input", "No"), ("generation", None), answer=None)
    assert case.model_output is None
    assert _health(case)["answered"].value == 0.0
    hidden = _guarded(("input", "No"), ("generation", "Fine."), answer="Fine.", captured=False)
    assert not hidden.content_captured
    assert "enable_content_capture" in hidden.capture_switch
    assert isinstance(_health(hidden)["answered"], Unavailable)


def _ai_sdk_loop(*steps: tuple[str, object]) -> Any:
    """The case of ``generateText`` of the AI SDK 6 whose steps each called a tool, with what the tools returned."""
    reason = {"ai.response.finishReason": "tool-calls"}
    whole = {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt":"Where?"}', **reason}
    spans = [_raw("ai.generateText", "ai", attributes=whole)]
    for at, (name, returned) in enumerate(steps):
        asked = json.dumps([{"toolCallId": f"c{at}", "toolName": name, "input": json.dumps({"day": at})}])
        call = {"ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": asked, **reason}
        spans.append(_raw("ai.generateText.doGenerate", "ai", number=10 + 2 * at, parent=1, attributes=call))
        ran = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": name, "ai.toolCall.id": f"c{at}",
               "ai.toolCall.args": json.dumps({"day": at}), "ai.toolCall.result": json.dumps(returned)}  # fmt: skip
        if returned is not None:
            spans.append(_raw("ai.toolCall", "ai", number=11 + 2 * at, parent=1, attributes=ran))
    timed = [replace(span, end_ns=span.start_ns + 1) if span.parent_id else span for span in spans]
    return extract(Trace.of("1" * 32, [normalise(span) for span in timed], "batch"))


@pytest.mark.parametrize(("steps", "status"), [
    ([("find", "Riga"), ("find", "Oslo")], 0.0),  # its steps were used up: behind such a call it had gone on
    ([("find", "Riga"), ("show", "shown")], "unavailable"),  # or it was to stop at a call of this tool
    ([("find", {"error": "no such day"}), ("find", "Oslo")], "unavailable"),  # or at a call of it that succeeds
    ([("find", {"error": "no such day"}), ("find", {"error": "no such day"})], 0.0),
    ([("transfer_to_refunds", "done"), ("transfer_to_refunds", "done")], "not_applicable"),  # which may have the answer
    ([("find", "Riga"), ("find", None)], "not_applicable"),  # the caller answers it, in a run of its own
    ([("find", "Riga")], "not_applicable"),  # a single step: the application may go on by itself
])  # fmt: skip
def test_a_loop_of_the_ai_sdk_that_ended_at_its_step_limit_gave_no_answer(
    steps: list[tuple[str, object]], status: object
) -> None:
    answered = _health(_ai_sdk_loop(*steps))["answered"]
    assert getattr(answered, "value", answered.status) == status


def _ai_sdk_7_loop(*tools: str) -> Any:
    """The case of ``generateText`` of the AI SDK 7 whose steps each called a tool, which returned something."""
    reason = {"gen_ai.response.finish_reasons": ["tool-calls"]}
    offered = json.dumps([{"type": "function", "name": name} for name in tools])
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}])
    whole = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop", "gen_ai.input.messages": asked}
    spans = [_raw("invoke_agent m", "gen_ai", attributes={**whole, **reason})]
    for at, name in enumerate(tools):
        number = 10 + 3 * at
        spans.append(
            _raw("step", "gen_ai", number=number, parent=1, attributes={"gen_ai.operation.name": "agent_step"})
        )
        called = {"type": "tool_call", "id": f"c{at}", "name": name, "arguments": {"day": at}}
        call = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.tool.definitions": offered,
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [called]}]), **reason,
        }  # fmt: skip
        spans.append(_raw("chat m", "gen_ai", number=number + 1, parent=number, attributes=call))
        ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"c{at}",
               "gen_ai.tool.call.arguments": json.dumps({"day": at}), "gen_ai.tool.call.result": '"found"'}  # fmt: skip
        spans.append(_raw(f"execute_tool {name}", "gen_ai", number=number + 2, parent=number, attributes=ran))
    timed = [replace(span, end_ns=span.start_ns + 1) if span.parent_id else span for span in spans]
    return extract(Trace.of("1" * 32, [normalise(span) for span in timed], "batch"))


@pytest.mark.parametrize(("tools", "status"), [
    (["find", "find"], 0.0), (["find", "show"], "unavailable"), (["find"], "unavailable"),
])  # fmt: skip
def test_so_did_one_of_the_ai_sdk_7_and_whether_a_single_step_was_to_answer_is_unknown(
    tools: list[str], status: object
) -> None:
    case = _ai_sdk_7_loop(*tools)
    assert case.agents_called == ("shop",)
    answered = _health(case)["answered"]
    assert getattr(answered, "value", answered.status) == status


_FORM = {"chat_message": "It is shipped."}


def _demanding(
    demand: dict[str, Any], *, form: dict[str, Any] = _FORM, ran: bool = False, offered: Sequence[str] = ("Answer",)
) -> Any:
    """The case of a model call by OpenInference whose request demanded a tool; ``ran``: with a span of its run."""
    scope = "openinference.instrumentation.openai"
    call = {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Where is A-17?", "llm.output_messages.0.message.role": "assistant",
        "llm.invocation_parameters": json.dumps({"model": "m", **demand}), "llm.finish_reason": "tool_calls",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "Answer",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(form),
    }  # fmt: skip
    for at, name in enumerate(offered):
        tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        call[f"llm.tools.{at}.tool.json_schema"] = json.dumps(tool)
    spans = [_raw("run", "app"), _raw("ChatCompletion", scope, number=2, parent=1, attributes=call)]
    if ran:
        tool = {"openinference.span.kind": "TOOL", "tool.name": "Answer", "input.value": json.dumps(form)}
        spans.append(_raw("Answer", scope, number=3, parent=1, attributes=tool))
    timed = [replace(span, end_ns=span.start_ns + 1) if span.parent_id else span for span in spans]
    return extract(Trace.of("1" * 32, [normalise(span) for span in timed], "batch"))


@pytest.mark.parametrize("demand", [
    {"tool_choice": {"type": "function", "function": {"name": "Answer"}}},
    {"tool_choice": {"function": {"name": "Answer"}, "type": "function"}},
    {"tool_choice": {"type": "function", "name": "Answer"}},
    {"tool_choice": {"type": "tool", "name": "Answer"}},
    {"tool_choice": {"name": "Answer", "type": "tool"}},
])  # fmt: skip
def test_a_form_that_a_request_demanded_by_a_tool_is_the_answer(demand: dict[str, Any]) -> None:
    case = _demanding(demand)
    assert case.model_output == _FORM
    found = _health(case)
    assert found["answered"].value == 1.0
    assert found["tool_success"].status == "not_applicable"


@pytest.mark.parametrize(("demand", "more"), [
    ({"tool_choice": "auto"}, {}),
    ({"tool_choice": {"type": "function", "function": {"name": "Other"}}}, {}),
    ({"messages": 'I wrote "tool_choice": {"type": "tool", "name": "Answer"}'}, {}),
    ({"tool_choice": {"type": "tool", "name": "Answer"}}, {"ran": True}),
    ({"tool_choice": {"type": "tool", "name": "Answer"}}, {"offered": ["Answer", "find_order"]}),
])  # fmt: skip
def test_a_call_that_was_free_or_of_a_tool_that_ran_or_may_have_is_no_answer(
    demand: dict[str, Any], more: dict[str, Any]
) -> None:
    assert _demanding(demand, **more).model_output is None


def test_a_demanded_form_without_a_word_may_be_meant() -> None:
    case = _demanding({"tool_choice": {"type": "tool", "name": "Answer"}}, form={"chat_message": ""})
    assert isinstance(_health(case)["answered"], Unavailable)


@pytest.mark.parametrize(("scope", "attributes"), [
    ("ai", {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.toolChoice": '{"type":"tool","toolName":"F"}'}),
    ("mlflow", {"mlflow.spanType": '"LLM"', "mlflow.spanInputs": '{"tool_choice": {"type": "tool", "name": "F"}}'}),
    ("langfuse-sdk", {"langfuse.observation.type": "generation",
                      "langfuse.observation.input": '{"tool_choice": {"type": "function", "name": "F"}}'}),
])  # fmt: skip
def test_a_demand_is_read_in_the_words_of_each_client(scope: str, attributes: dict[str, str]) -> None:
    assert normalise(_raw("x", scope, attributes=attributes)).demanded_tool == "F"


def test_an_agent_of_fast_agent_is_known_by_its_span_s_name() -> None:
    run = normalise(_raw("Agent: 'the desk' generate", "fast_agent.agents.llm_decorator"))
    assert (run.kind, run.agent) == (SpanKind.AGENT, "the desk")
    for name, scope in (("Agent: 'desk' apply_prompt_template", "fast_agent.agents.mcp_agent"),
                        ("Chain: 'steps' generate", "fast_agent.agents.workflow.chain_agent"),
                        ("Agent: 'desk' generate", "app")):  # fmt: skip
        assert normalise(_raw(name, scope)).agent is None


def _of_gemini_cli(operation: str, **attributes: object) -> Span:
    stated = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "gemini-cli", **attributes}
    return normalise(_raw(operation, "gemini-cli", attributes=stated, status_code=1))


@pytest.mark.parametrize(
    ("status", "answer", "result", "error"),
    [
        ("success", {"output": "hello\n"}, "hello\n", None),
        ("error", {"error": "File not found: /a.txt"}, None, "File not found: /a.txt"),
        ("cancelled", {"error": "[Operation Cancelled] Reason: no"}, None, "[Operation Cancelled] Reason: no"),
    ],
)
def test_a_tool_of_gemini_cli_fails_as_its_outcome_states_though_its_span_ends_well(
    status: str, answer: dict[str, str], result: str | None, error: str | None
) -> None:
    request = {"callId": "c1", "name": "read_file", "args": {"file_path": "/a.txt"}, "isClientInitiated": False}
    response = {"callId": "c1", "responseParts": [{"functionResponse": {"id": "c1", "name": "x", "response": answer}}]}
    outcome = json.dumps({"status": status, "request": request, "response": response}, separators=(",", ":"))
    stated = {"gen_ai.tool.name": "read_file", "gen_ai.tool.call_id": "c1",
            "gen_ai.input.messages": json.dumps(request), "gen_ai.output.messages": outcome}  # fmt: skip
    span = _of_gemini_cli("tool_call", **stated)
    expected = ToolCall(name="read_file", arguments={"file_path": "/a.txt"}, result=result, error=error, call_id="c1")
    assert (span.kind, span.tool, span.unread) == (SpanKind.TOOL, expected, ())
    cut = _of_gemini_cli("tool_call", **{**stated, "gen_ai.output.messages": f"{outcome[:40]}...[TRUNCATED: original]"})
    assert cut.tool == replace(expected, result=None, error=error and status)


def test_the_pieces_of_a_streamed_answer_of_gemini_cli_are_one_answer() -> None:
    call = {"functionCall": {"name": "read_file", "args": {"file_path": "/a.txt"}}}
    pieces = [{"role": "model", "parts": [part]} for part in ({"text": "It says "}, {"text": "hello."}, call)]
    span = _of_gemini_cli("llm_call", **{"gen_ai.output.messages": json.dumps(pieces)})
    assert span.output == "It says hello."
    assert [(each.role, each.text, len(each.tool_calls)) for each in span.output_messages] == [
        ("assistant", "It says hello.", 1)
    ]


def test_gemini_cli_names_itself_where_a_sub_agent_runs_and_repeats_the_calls_that_it_schedules() -> None:
    assert _of_gemini_cli("llm_call").agent == "gemini-cli"
    delegated = _of_gemini_cli("agent_call", **{"gen_ai.input.messages": '{"prompt":"Look."}'})
    assert (delegated.kind, delegated.agent) == (SpanKind.CHAIN, None)
    calls = '[{"request":{"name":"read_file"},"status":"success","response":{"responseParts":[]}}]'
    scheduled = _of_gemini_cli("schedule_tool_calls", **{"gen_ai.output.messages": calls})
    assert (scheduled.kind, scheduled.output, scheduled.unread) == (SpanKind.CHAIN, None, ())
    assert "TRACES" in (_of_gemini_cli("llm_call").capture_switch or "")


def test_that_a_server_of_mcp_does_not_know_the_newest_greeting_is_no_failure() -> None:
    asked = {"mcp.method.name": "server/discover", "error.type": "-32602", "rpc.response.status_code": "-32602"}
    stated = {"status_code": 2, "status_message": "Invalid request parameters"}
    assert normalise(_raw("MCP send server/discover", "mcp-python-sdk", attributes=asked, **stated)).error is None
    greeted = {**asked, "mcp.method.name": "initialize"}
    failed = normalise(_raw("MCP send initialize", "mcp-python-sdk", attributes=greeted, **stated))
    assert failed.error == "-32602: Invalid request parameters"


@pytest.mark.parametrize(("written", "status"), [(7, "unavailable"), (None, 0.0)])
def test_an_empty_last_piece_of_a_stream_of_gemini_s_by_openllmetry_may_end_an_answer(
    written: int | None, status: object
) -> None:
    said = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "a=None '
            'text=\'\' thought=None"}]}]', "gen_ai.usage.input_tokens": 3}  # fmt: skip
    asked = {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]'}
    used = {} if written is None else {"gen_ai.usage.output_tokens": written}
    scope = "opentelemetry.instrumentation.google_generativeai"
    span = normalise(_raw("chat", scope, attributes=CHAT | asked | said | used))
    answered = _health(extract(Trace.of(span.trace_id, [span], "batch")))["answered"]
    assert getattr(answered, "value", answered.status) == status


@pytest.mark.parametrize(("text", "status"), [(None, "unavailable"), ("", 0.0), ("Here.", 1.0)])
def test_a_stream_of_amazon_s_own_models_by_openllmetry_may_have_ended_with_a_call(
    text: str | None, status: object
) -> None:
    asked = {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]'}
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": ""}]
    attributes = CHAT | asked | {"gen_ai.output.messages": json.dumps(said)}
    span = normalise(_raw("chat", "opentelemetry.instrumentation.bedrock", attributes=attributes))
    answered = _health(extract(Trace.of(span.trace_id, [span], "batch")))["answered"]
    assert getattr(answered, "value", answered.status) == status


@pytest.mark.parametrize(
    ("pending", "status"), [("hitl", "unavailable"), ("external_execution", "unavailable"), ("", 1.0)]
)
def test_an_agent_of_agentscope_s_that_waits_for_a_person_has_not_answered(pending: str, status: object) -> None:
    call = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "pay", "arguments": {"a": 1}}]}]'
    said = '[{"role": "assistant", "parts": [{"type": "text", "content": "I am waiting for your permission."}]}]'
    waits = {f"agentscope.agent.{pending}_pending_tools": '["pay"]'} if pending else {}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.output.messages": said}
    spans = [
        _raw("invoke_agent desk", "agentscope", attributes=agent | waits),
        _raw("chat m", "agentscope", number=2, parent=1, attributes=CHAT | {"gen_ai.output.messages": call}),
    ]
    answered = _health(extract(Trace.of("1" * 32, [normalise(span) for span in spans], "batch")))["answered"]
    assert getattr(answered, "value", answered.status) == status


@pytest.mark.parametrize("folder", ["otel-genai-openai", "openinference-openai-agents"])
def test_tools_that_openai_runs_are_offered_tried_and_answered(folder: str) -> None:
    recorded = Path(__file__).parents[2] / "data" / "otlp" / folder / "hosted" / "001.pb"
    spans = [normalise(raw) for raw in read_files([recorded]).spans]
    case = extract(Trace.of(spans[0].trace_id, spans, "batch"))
    verdict = score(case, RUBRICS["run_health"], created_at="")
    values = {each.metric: getattr(each.result, "value", None) for each in verdict.scores}
    found = [values[metric] for metric in ("answered", "tool_success", "calls_valid")]
    assert found == [1.0, 1.0, 1.0]
    assert values["tools_tried"] in (None, 1.0), "an agent has tried some, and of a model alone it is not asked"
    assert [call.name.removesuffix("_call") for call in case.tools_used or ()] == [
        "web_search", "find_fish", "code_interpreter",
    ]  # fmt: skip


PIKE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Pike."}]}


@pytest.mark.parametrize(("body", "outcome"), [
    ({"type": "mcp_call", "arguments": "{}", "output": None, "error": "closed", "status": "failed"}, (None, "closed")),
    ({"type": "mcp_call", "arguments": "{}", "output": "pike", "error": None, "status": "completed"}, ("pike", None)),
    ({"type": "mcp_call", "arguments": "{}", "status": "calling"}, (None, None)),
])  # fmt: skip
def test_a_call_that_openai_made_has_its_outcome_in_the_response_itself(
    body: dict[str, Any], outcome: tuple[str | None, str | None]
) -> None:
    item = {"id": "m", "name": "find_fish", "server_label": "lake", **body}
    response = {"object": "response", "output": [{"type": "mcp_list_tools", "id": "l", "tools": []}, item, PIKE]}
    span = normalise(_raw("Response", "openinference.instrumentation.openai", attributes={
        "openinference.span.kind": "LLM", "output.value": json.dumps(response),
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Pike.",
    }))  # fmt: skip
    case = extract(Trace.of("1" * 32, [span], "batch"))
    calls = case.tools_used or ()
    assert case.model_output == "Pike."
    assert [(call.name, call.arguments, call.result, call.error) for call in calls] == [("find_fish", {}, *outcome)]


@pytest.mark.parametrize(("output", "status", "answered"), [
    ([], None, 0.0), ([], "completed", 0.0), ([], "queued", None), ([PIKE], None, 1.0),
])  # fmt: skip
@pytest.mark.parametrize("scope", ["openinference.instrumentation.openai_agents", "logfire.openai_agents"])
def test_a_response_of_openai_s_without_an_item_is_no_answer(
    scope: str, output: list[Any], status: str | None, answered: float | None
) -> None:
    asked = [{"role": "user", "content": "Which fish?"}]
    response = [{"id": "__fake_id__", "object": "response", "output": output, "status": status, "usage": None}]
    attributes = {
        "openinference.span.kind": "LLM", "input.value": json.dumps(asked), "output.value": json.dumps(response),
    } if scope.startswith("openinf") else {
        "logfire.span_type": "span", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o-mini",
        "input": json.dumps(asked), "output": json.dumps(response),
        "request_data": json.dumps({"messages": [*asked, *response]}),
    }  # fmt: skip
    case = extract(Trace.of("1" * 32, [normalise(_raw("generation", scope, attributes=attributes))], "batch"))
    assert (case.input, case.model_output) == ("Which fish?", "Pike." if output else None)
    results = {each.metric: each.result for each in score(case, RUBRICS["run_health"], created_at="").scores}
    assert getattr(results["answered"], "value", None) == answered


def _answering(*parts: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "parts": [*parts, {"type": "text", "content": "Pike."}]}
    return {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([message])}


SEARCH: dict[str, Any] = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "pike"}}
SEARCHED = {"type": "server_tool_call", "id": "w", "name": "web_search", "server_tool_call": SEARCH}


@pytest.mark.parametrize(("given", "values"), [
    ({"output.value": json.dumps({"object": "response", "output": [SEARCH, PIKE]})}, (None, 1.0)),
    (_answering(SEARCHED), (None, 1.0)),
    (
        _answering(
            SEARCHED,
            {"type": "server_tool_call_response", "id": "w", "server_tool_call_response": {"results": ["pike"]}},
        ),
        ({"results": ["pike"]}, 1.0),
    ),
    (
        _answering({
            "type": "server_tool_call", "id": "w", "name": "f",
            "server_tool_call": {"type": "mcp_call", "status": "completed", "error": "", "output": "pike"},
        }),
        ("pike", 1.0),
    ),
])  # fmt: skip
def test_what_a_search_found_is_unknown_where_openai_states_only_that_it_is_completed(
    given: dict[str, Any], values: tuple[object, float]
) -> None:
    kind = {"openinference.span.kind": "LLM"} if "output.value" in given else {}
    case = extract(Trace.of("1" * 32, [normalise(_raw("chat", "", attributes={**kind, **given}))], "batch"))
    (call,) = case.tools_used or ()
    success = _health(case)["tool_success"]
    assert (call.result, getattr(success, "value", success.status)) == values
    assert case.model_output == "Pike."
    unknown = isinstance(sources(case), Unavailable)
    assert unknown is (call.result is None), "the judge does not take an unknown result for none"


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_a_tool_of_openai_s_responses_that_takes_a_text_is_a_tool_as_one_that_takes_arguments(kind: str) -> None:
    call = {"type": kind, "id": "c", "call_id": "k", "name": "query", "input": "SELECT 1", "status": "completed"}
    asked = [{"role": "user", "content": "Which fish?"}]
    came = {"type": f"{kind}_output", "call_id": "k", "output": "pike"}
    scope, steps = "openinference.instrumentation.openai", [(asked, call), ([*asked, call, came], PIKE)]
    spans = [
        _raw("Response", scope, number=number, attributes={
            "openinference.span.kind": "LLM", "input.value": json.dumps({"input": given}),
            "output.value": json.dumps({"object": "response", "output": [answer]}),
        })
        for number, (given, answer) in enumerate(steps, 1)
    ]  # fmt: skip
    case = extract(Trace.of("1" * 32, [normalise(raw) for raw in spans], "batch"))
    assert [(each.name, each.arguments, each.result) for each in case.tools_used or ()] == [
        ("query", "SELECT 1", "pike"),
    ]  # fmt: skip


def test_an_answer_that_aws_s_distribution_leaves_out_of_a_call_that_ended_is_empty() -> None:
    scope = "amazon.opentelemetry.distro.instrumentation.openai_agents"
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}])
    given = {**CHAT, "gen_ai.response.finish_reasons": ("stop",), "gen_ai.input.messages": asked}
    answers = [normalise(_raw("chat m", name, attributes=given)).output_messages for name in (scope, "another")]
    assert [[message.text for message in each] for each in answers] == [[""], []]


def test_methods_of_a_flow_are_no_agents_of_crewai_s_by_openlit_and_one_that_raised_is_known_by_its_name() -> None:
    def read(name: str, **given: Any) -> tuple[SpanKind, str | None]:
        span = normalise(_raw(name, "openlit.instrumentation.crewai", **given))
        return span.kind, span.agent

    running = {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "crewai"}
    assert read("invoke_agent finalize", attributes=running) == (SpanKind.CHAIN, None)
    named = {**running, "gen_ai.agent.name": "Angler"}
    assert read("invoke_agent Angler", attributes=named) == (SpanKind.AGENT, "Angler")
    raised = {"attributes": {"error.type": "ValueError"}, "status_code": 2}
    assert read("invoke_agent Angler", **raised) == (SpanKind.AGENT, "Angler")
    assert read("invoke_workflow crew", **raised)[0] is not SpanKind.AGENT


@pytest.mark.parametrize(("scope", "operation"), [
    ("strands.telemetry.tracer", "chat"), ("strands.telemetry.tracer", "invoke_agent"),
    ("amazon.opentelemetry.distro.instrumentation.langchain", "chat"),
])  # fmt: skip
@pytest.mark.parametrize("text", ["It is due at 9.", ""])
def test_messages_of_the_newer_conventions_that_aws_s_distribution_moves_into_a_log_record_are_read(
    scope: str, operation: str, text: str
) -> None:
    def logged(role: str, body: Any) -> dict[str, Any]:
        return {"role": role, "content": json.dumps(body)}

    given = [{"role": "user", "parts": [{"type": "text", "content": "When?"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}]
    asked = [logged("system", [{"type": "text", "content": "Be brief."}]), logged("user", given)]
    body: dict[str, Any] = {"input": {"messages": asked}, "output": {"messages": [logged("assistant", said)]}}
    record = RawEvent(name=scope, time_ns=5, attributes=body)
    attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "Desk", "gen_ai.request.model": "m"}
    span = normalise(_raw("step", scope, attributes=attributes, events=(record,)))
    assert (span.input, span.output or "", span.system_prompt) == ("When?", text, "Be brief.")
    case = extract(Trace.of(span.trace_id, [span], "batch"))
    (found,) = [
        each.result for each in score(case, RUBRICS["run_health"], created_at="").scores if each.metric == "answered"
    ]
    assert getattr(found, "value", None) == (1.0 if text else 0.0)


def test_a_chat_that_is_pasted_into_a_question_is_no_record_of_messages_in_strands_log_records() -> None:
    pasted = json.dumps([{"role": "user", "parts": [{"text": "Is it late?"}]}])
    record = RawEvent(name="strands.telemetry.tracer", time_ns=5, attributes={
        "input": {"messages": [{"role": "user", "content": pasted}]},
        "output": {"messages": [{"role": "assistant", "content": "A question about a delay."}]},
    })  # fmt: skip
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Desk"}
    span = normalise(_raw("invoke_agent Desk", "strands.telemetry.tracer", attributes=attributes, events=(record,)))
    assert span.output == "A question about a delay."
