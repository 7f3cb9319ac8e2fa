"""Clients that no dialect knows, each in words of its own, after what such clients document: all say the same."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall, Usage
from sidejudge.scoring.trace.trace import Trace

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is A-1?"}]
ANSWER = {"role": "assistant", "content": "On its way."}
CHOICE = {"index": 0, "message": ANSWER, "finish_reason": "stop"}
COUNTS = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
Attributes: TypeAlias = "dict[str, AttributeValue]"
GIVEN, SHIPPED = json.dumps({"id": "A-1"}), "shipped"
GEMINI_COUNTS = {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13}

MODEL_CALLS: dict[str, Attributes] = {
    "span attributes as JSON": {
        "b.span_attributes": json.dumps({"type": "llm"}), "b.input_json": json.dumps(ASKED),
        "b.output_json": json.dumps([CHOICE]), "b.metrics": json.dumps({"prompt_tokens": 10, "completion_tokens": 3}),
        "b.metadata": json.dumps({"model": "m"}),
    },
    "a span type of its own": {
        "c.span_type": "model", "c.input": json.dumps({"messages": ASKED, "tools": [{"type": "function"}]}),
        "c.output": json.dumps({"choices": [CHOICE]}), "c.model_name": "m", "c.input_tokens": 10, "c.output_tokens": 3,
    },
    "meta and metrics": {
        "_d.span_kind": "llm", "_d.meta.input.messages": json.dumps(ASKED), "_d.meta.model_name": "m",
        "_d.meta.output.messages": json.dumps([ANSWER]), "_d.metrics.input_tokens": 10, "_d.metrics.output_tokens": 3,
    },
    "arguments and a response of OpenAI": {
        "w.inputs": json.dumps({"model": "m", "messages": ASKED}),
        "w.output": json.dumps({"object": "chat.completion", "model": "m", "choices": [CHOICE], "usage": COUNTS}),
    },
    "bodies of Gemini": {
        "x.request": json.dumps({
            "contents": [{"role": "user", "parts": [{"text": "Where is A-1?"}]}], "system_instruction": None,
        }),
        "x.response": json.dumps({
            "candidates": [{"content": {"role": "model", "parts": [{"text": "On its way."}]}, "finishReason": "STOP"}],
            "usageMetadata": GEMINI_COUNTS, "modelVersion": "m",
        }),
    },
    "bodies of Anthropic": {
        "x.request": json.dumps({"model": "m", "system": "Be brief.", "messages": ASKED[1:]}),
        "x.response": json.dumps({
            "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "On its way."}],
            "usage": {"input_tokens": 10, "output_tokens": 3},
        }),
    },
    "bodies of OpenAI's responses": {
        "x.request.body": json.dumps({"model": "m", "instructions": "Be brief.", "input": "Where is A-1?"}),
        "x.response.body": json.dumps({
            "object": "response", "model": "m", "usage": {"input_tokens": 10, "output_tokens": 3},
            "output": [{"type": "message", "role": "assistant",
                        "content": [{"type": "output_text", "text": "On its way."}]}],
        }),
    },
    "counts of Ollama": {
        "o.model": "m", "o.messages": json.dumps(ASKED), "o.response": "On its way.", "o.prompt_eval_count": 10,
        "o.eval_count": 3,
    },
    "parts without a role": {
        "x.model": "m", "x.input": json.dumps(ASKED), "x.tokens.input": 10, "x.tokens.output": 3,
        "x.output": json.dumps([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "On its way."}]),
    },
    "a text beside its usage": {
        "node_type": "llm", "inputs": json.dumps({"prompts": ASKED}), "model_name": "m",
        "outputs": json.dumps({"text": "On its way.", "usage": COUNTS}),
    },
    "one map": {
        "bot.llm": {"model": "m", "messages": ASKED, "completion": ANSWER,
                    "usage": {"prompt": 10, "completion": 3, "total": 13}},
    },
    "lists of texts beside the conventions": {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "10",
        "gen_ai.usage.output_tokens": "3", "gen_ai.prompt": ["Where is A-1?"], "gen_ai.completion": ["On its way."],
    },
}  # fmt: skip
INSTRUCTED: dict[str, Attributes] = {
    "Gemini": {
        "x.request": json.dumps({
            "contents": [{"role": "user", "parts": [{"text": "Where is A-1?"}]}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
        }),
        "x.response": json.dumps({
            "candidates": [{"content": {"role": "model", "parts": [{"text": "On its way."}]}}],
            "usageMetadata": GEMINI_COUNTS, "modelVersion": "m",
        }),
    },
    "Bedrock": {
        "x.operation": "Converse", "x.modelId": "m",
        "x.input": json.dumps({
            "messages": [{"role": "user", "content": [{"text": "Where is A-1?"}]}], "system": [{"text": "Be brief."}],
        }),
        "x.output": json.dumps({
            "output": {"message": {"role": "assistant", "content": [{"text": "On its way."}]}},
            "usage": {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13},
        }),
    },
    "Cohere": {
        "x.span": "chat", "x.model": "m",
        "x.request": json.dumps({
            "message": "Where is A-1?", "preamble": "Be brief.", "model": "m",
            "chat_history": [{"role": "USER", "message": "hello"}, {"role": "CHATBOT", "message": "hi"}],
        }),
        "x.response": json.dumps({
            "text": "On its way.", "finish_reason": "COMPLETE",
            "meta": {"tokens": {"input_tokens": 10, "output_tokens": 3}},
        }),
    },
    "Ollama": {
        "x.op": "model",
        "x.request": json.dumps({"model": "m", "messages": ASKED}),
        "x.response": json.dumps({
            "model": "m", "message": ANSWER, "done": True, "prompt_eval_count": 10, "eval_count": 3,
        }),
    },
    "AutoGen": {
        "x.span_type": "llm", "x.model": "m",
        "x.messages": json.dumps([
            {"content": "Be brief.", "type": "SystemMessage"}, {"content": "Where is A-1?", "type": "UserMessage"},
        ]),
        "x.response": json.dumps({
            "content": "On its way.", "finish_reason": "stop", "usage": {"prompt_tokens": 10, "completion_tokens": 3},
        }),
    },
    "JSON in JSON": {
        "x.span": json.dumps({"kind": "llm"}),
        "x.in": json.dumps(json.dumps({"model": "m", "messages": ASKED})),
        "x.out": json.dumps(json.dumps({"choices": [CHOICE], "usage": COUNTS})),
    },
    "ways": {
        "x.category": "llm", "x.model": "m", "x.chat.in": json.dumps(ASKED), "x.chat.out": json.dumps([ANSWER]),
        "x.tokens_in": 10, "x.tokens_out": 3,
    },
    "one history": {
        "x.model": "m", "x.history": json.dumps([*ASKED, ANSWER]),
        "x.usage": json.dumps({"in": 10, "out": 3, "total": 13}),
    },
    "LangWatch in JavaScript": {
        "langwatch.span.type": "llm", "gen_ai.request.model": "m",
        "langwatch.input": json.dumps({"type": "chat_messages", "value": ASKED}),
        "langwatch.output": json.dumps({"type": "chat_messages", "value": [ANSWER]}),
        "langwatch.metrics": json.dumps({"type": "json", "value": {"promptTokens": 10, "completionTokens": 3}}),
    },
}  # fmt: skip
WAITS = json.dumps({
    "status": "suspended", "reason": "tool-call-approval", "toolName": "pay", "toolCallId": "c1",
})  # fmt: skip
CALL = json.dumps({"name": "lookup", "arguments": {"id": "A-1"}})
TOOLS: dict[str, dict[str, AttributeValue]] = {
    "an operation": {"x.operation": "tool.call", "x.tool": "lookup", "x.args": GIVEN, "x.observation": SHIPPED},
    "a call as one value": {"x.tool_call": CALL, "x.tool_result": SHIPPED},
    "one map": {"x": {"type": "tool", "name": "lookup", "arguments": {"id": "A-1"}, "result": SHIPPED}},
    "AutoGen": {
        "x.span_type": "tool", "x.tool_name": "lookup", "x.arguments": GIVEN,
        "x.result": json.dumps({"content": SHIPPED, "is_error": False}),
    },
    "span attributes as JSON": {
        "b.span_attributes": json.dumps({"type": "tool"}), "b.input_json": GIVEN, "b.output_json": json.dumps(SHIPPED),
    },
    "parameters": {"a.span.kind": "tool", "tool.name": "lookup", "tool.parameters": GIVEN, "tool.result": SHIPPED},
    "a span type of its own": {"c.span_type": "tool", "c.input": GIVEN, "c.output": SHIPPED},
    "an operation that the conventions do not list": {
        "gen_ai.operation.name": "framework", "s.kind": "tool_call", "s.tool.definition.name": "lookup",
        "s.tool.call.arguments": GIVEN, "s.tool.call.result": SHIPPED,
    },
}  # fmt: skip


def _span(name: str, attributes: dict[str, AttributeValue], *events: RawEvent, end_ns: int = 2) -> Span:
    return normalise(RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name=name, start_ns=1, end_ns=end_ns,
        attributes=attributes, events=events, scope_name="unknown",
    ))  # fmt: skip


def _case(name: str, attributes: dict[str, AttributeValue], *events: RawEvent) -> Case:
    span = _span(name, attributes, *events)
    assert "dialect" not in span.provenance
    return extract(Trace.of("1" * 32, [span], "batch"))


@pytest.mark.parametrize("attributes", MODEL_CALLS.values(), ids=MODEL_CALLS)
def test_a_model_call_is_read(attributes: dict[str, AttributeValue]) -> None:
    case = _case("call", attributes)
    assert (case.input, case.model_output, case.model) == ("Where is A-1?", "On its way.", "m")
    assert (case.input_tokens, case.output_tokens) == (10, 3)
    assert case.unread == ()


@pytest.mark.parametrize("attributes", INSTRUCTED.values(), ids=INSTRUCTED)
def test_so_are_its_instructions_in_the_bodies_of_providers(attributes: dict[str, AttributeValue]) -> None:
    test_a_model_call_is_read(attributes)
    assert _case("call", attributes).system_prompt == "Be brief."


def test_what_stands_beside_a_history_is_the_turn_after_it() -> None:
    history = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
    turn = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]
    asked: Attributes = {"x.kind": "agent", "x.input": json.dumps({"question": "Where?", "history": history})}
    for returned in (
        "Here.", {"question": "Where?", "history": history, "answer": "Here."}, {"history": [*history, *turn]},
        {"message": "Where?", "chat_history": [*history, *turn]},
        {"input": "Where?", "chat_history": [*history, *turn], "output": "Here."},
    ):  # fmt: skip
        case = _case("ask", asked | {"x.output": json.dumps(returned)})
        assert (case.input, case.model_output) == ("Where?", "Here.")


def test_arguments_and_what_was_returned_are_read_from_an_attribute_each() -> None:
    node: Attributes = {"ag.type.node": "workflow", "ag.data.outputs.__default__": "On its way."}
    for given, wanted in (
        ({"ag.data.inputs.q": "Where?"}, "Where?"), ({"ag.data.inputs": '{"q": "Where?"}'}, "Where?"),
        ({"ag.data.inputs.q": "Where?", "ag.data.inputs.n": 3}, {"q": "Where?", "n": 3}),
    ):  # fmt: skip
        case = _case("ask", node | given)
        assert (case.input, case.model_output) == (wanted, "On its way.")


def test_calls_in_a_body_without_a_role_are_those_of_the_model() -> None:
    answered = {"content": [{"id": "c1", "name": "lookup", "arguments": GIVEN}], "finish_reason": "function_calls"}
    for body in (answered, {"text": "", "tool_calls": [{"name": "lookup", "parameters": {"id": "A-1"}}]}):
        case = _case("call", {"x.type": "llm", "x.model": "m", "x.input": "hi", "x.response": json.dumps(body)})
        (call,) = case.tools_used or ()
        assert (call.name, call.arguments) == ("lookup", {"id": "A-1"})


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("invoke support", {"x.op": "agent.run", "x.agent": "support"}),
        ("invoke support", {"x.type": "agent", "x.name": "support", "x.request": "Where?", "x.response": "There."}),
        ("work", {"x.agent": "support", "x.input": "Where?", "x.output": "There."}),
        ("agent support", {"x.node": "agent", "x.agent.name": "support"}),
        ("support.agent", {"x.span.kind": "agent", "x.entity.input": "Where?", "x.entity.output": "There."}),
        (
            "subagent:support",
            {"entity.type": "agent", "entity.name": "boss", "subagent.name": "support", "input": "Where?"},
        ),
    ],
)
def test_an_agent_is_read_by_what_its_client_calls_it(name: str, attributes: dict[str, AttributeValue]) -> None:
    assert _case(name, attributes).agents_called == ("support",)


def test_a_span_that_makes_an_agent_is_no_run_of_it_and_a_browser_is_none() -> None:
    for attributes in (
        {"x.operation.name": "create_agent", "x.agent.name": "support"},
        {"x.user_agent": "support", "x.input": "Where?"}, {"x.agent": '{"id": 7}', "x.input": "Where?"},
    ):  # fmt: skip
        assert _case("create_agent support", dict(attributes)).agents_called == ()


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"error.message": "down"}, "down"),
        ({"error.message": "none"}, None),
        ({"x.error": "{}"}, None),
        ({"x.error": '{"code": 5, "message": "no such order"}'}, '{"code": 5, "message": "no such order"}'),
        ({"x.error": "at x\n" * 100 + "ValueError"}, "at x\n" * 100 + "ValueError"),
        ({"x.status_message": "completed"}, None),
        ({"x.result": "fine", "x.error": "x"}, None),
    ],
)
def test_a_tool_without_a_result_failed_with_the_error_that_is_stated(
    attributes: dict[str, AttributeValue], error: str | None
) -> None:
    (call,) = _case("lookup", {"x.kind": "tool", "x.tool": "lookup", "x.args": GIVEN, **attributes}).tools_used or ()
    assert call.error == error


def test_so_did_one_that_recorded_an_exception_without_a_status() -> None:
    raised = RawEvent(
        name="exception", time_ns=1, attributes={"exception.type": "ValueError", "exception.message": "no such order"}
    )
    for given, error in ({}, "ValueError: no such order"), ({"x.result": "found elsewhere"}, None):
        (call,) = (
            _case("lookup", {"x.kind": "tool", "x.tool": "lookup", "x.args": GIVEN, **given}, raised).tools_used or ()
        )
        assert call.error == error


def test_so_did_a_step_without_an_answer_that_recorded_one() -> None:
    """As Laminar's SDK for JavaScript states what an observed function raised."""
    raised = RawEvent(name="exception", time_ns=1, attributes={"exception.type": "Error", "exception.message": "500"})
    given: Attributes = {"lmnr.span.type": "DEFAULT", "lmnr.span.input": '["Where is A-1?"]'}
    for returned, error in ({}, "Error: 500"), ({"lmnr.span.output": '"On its way."'}, None):
        assert _case("Clerk", {**given, **returned}, raised).error == error
    assert _case("Clerk", {"lmnr.span.type": "DEFAULT"}, raised).error is None


def test_one_that_went_on_after_it_caught_an_exception_did_not() -> None:
    """An attempt that was repeated: what came out is in the steps below, or was not captured."""
    caught = RawEvent(name="exception", time_ns=1, attributes={"exception.type": "RateLimitError"})
    asked: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps(ASKED)}
    for end_ns, error in (2, "RateLimitError"), (10**9, None):
        assert _span("invoke_agent Clerk", asked, caught, end_ns=end_ns).error == error


@pytest.mark.parametrize("attributes", [
    {"gen_ai.operation.name": "invoke_agent", "mastra.agent_run.output": WAITS},
    {"openinference.span.kind": "AGENT", "output.value": WAITS, "mastra.agent_run.output": WAITS},
])  # fmt: skip
def test_a_run_of_mastra_that_awaits_consent_has_no_answer_and_its_call(attributes: Attributes) -> None:
    case = _case("Clerk", {"gen_ai.agent.name": "Clerk", **attributes})
    (call,) = case.tools_used or ()
    assert (case.model_output, call.name, call.call_id, call.result) == (None, "pay", "c1", None)


@pytest.mark.parametrize("attributes", TOOLS.values(), ids=TOOLS)
def test_a_tool_is_read(attributes: dict[str, AttributeValue]) -> None:
    (call,) = _case("lookup", attributes).tools_used or ()
    assert (call.name, call.arguments, call.result) == ("lookup", {"id": "A-1"}, SHIPPED)


def test_a_tool_s_span_that_was_given_the_model_s_whole_call_is_that_call() -> None:
    call = {"call_id": "c", "tool_name": "lookup", "arguments": {"id": "A-1"}}
    given: Attributes = {"tool_name": "lookup", "input": json.dumps(call), "output": SHIPPED}
    assert [(call.name, call.arguments) for call in _case("tool_execution", given).tools_used or ()] == [
        ("lookup", {"id": "A-1"})
    ]
    other: Attributes = {**given, "input": json.dumps({**call, "tool_name": "search"})}
    assert [each.arguments for each in _case("tool_execution", other).tools_used or ()] == [
        {**call, "tool_name": "search"}
    ]


def test_messages_that_azure_puts_into_one_attribute_of_an_event_are_read() -> None:
    def event(name: str, **content: object) -> RawEvent:
        return RawEvent(name=name, time_ns=1, attributes={"gen_ai.event.content": json.dumps(content)})

    case = _case(
        "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        event("gen_ai.system.message", role="system", content="Be brief."),
        event("gen_ai.user.message", role="user", content="Where is A-1?"),
        event("gen_ai.choice", index=0, message={"content": "On its way."}),
    )  # fmt: skip
    assert (case.input, case.model_output, case.system_prompt) == ("Where is A-1?", "On its way.", "Be brief.")


def test_so_are_the_turns_of_azure_s_responses_which_have_no_event_for_an_answer() -> None:
    def event(role: str, **content: object) -> RawEvent:
        held: Attributes = {"gen_ai.event.content": json.dumps(content)}
        return RawEvent(name=f"gen_ai.{role}.message", time_ns=1, attributes=held)

    given: Attributes = {"gen_ai.operation.name": "responses", "gen_ai.request.model": "m"}
    call = {"type": "function", "id": "c", "function": {"name": "lookup", "arguments": GIVEN}}
    asking = _case("responses m", given, event("user", text="Where is A-1?"), event("assistant", tool_calls=[call]))
    assert [(call.name, call.arguments) for call in asking.tools_used or ()] == [("lookup", {"id": "A-1"})]
    returned = {"type": "function", "id": "c", "output": {"state": SHIPPED}}
    answering = _span(
        "responses m", given, event("tool", tool_call_outputs=[returned]), event("assistant", text="On its way.")
    )
    assert [(m.text, m.tool_call_id) for m in answering.input_messages] == [('{"state": "shipped"}', "c")]
    assert (asking.input, answering.output) == ("Where is A-1?", "On its way.")


def test_a_stream_that_azure_s_library_shows_to_have_ended_without_a_message_is_an_empty_answer() -> None:
    def event(name: str, **content: object) -> RawEvent:
        return RawEvent(name=name, time_ns=1, attributes={"gen_ai.event.content": json.dumps(content)})

    asked = event("gen_ai.user.message", role="user", content="Where is A-1?")
    unsaid, ended = event("gen_ai.user.message", role="user"), event("gen_ai.choice", index=0, finish_reason="stop")
    turn = event("gen_ai.assistant.message", role="assistant", content="On its way.")
    calls = event("gen_ai.choice", index=0, finish_reason="tool_calls")
    more = event("gen_ai.choice", index=0, finish_reason="stop", completion="On its way.")
    given: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    answers = (_span("chat m", given, *events).output_messages for events in (
        (asked, ended), (unsaid, ended), (asked, calls), (asked, turn, ended), (asked, more),
    ))  # fmt: skip
    assert [[m.text for m in each if not m.withheld] for each in answers] == [[""], [], [], ["On its way."], []]


@pytest.mark.parametrize(("asked", "reasons", "withheld"), [
    ("Where is A-1?", '["stop"]', False), ("[redacted]", '["stop"]', True), ("Where is A-1?", ("stop",), True),
])  # fmt: skip
def test_what_langchain_s_tracer_for_azure_masks_is_withheld_and_an_answer_alone_is_empty(
    asked: str, reasons: AttributeValue, *, withheld: bool
) -> None:
    def said(role: str, text: str, *more: object) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}, *more]}])

    given: Attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.finish_reasons": reasons,
        "gen_ai.input.messages": said("user", asked), "gen_ai.output.messages": said("assistant", "[redacted]"),
    }  # fmt: skip
    found = _span("chat m", given)
    assert [(m.text, m.withheld) for m in found.output_messages] == [("", withheld)]
    assert found.output in (None, "")
    assert found.input == (None if "[" in asked else asked)
    assert (found.capture_switch is None) == (asked != "[redacted]")
    brief = json.dumps([*json.loads(said("system", "Be brief.")), *json.loads(said("user", "[redacted]"))])
    assert all(m.withheld for m in _span("chat m", {**given, "gen_ai.input.messages": brief}).output_messages)
    beside = {**given, "gen_ai.output.messages": said("assistant", "It is [redacted].")}
    assert _span("chat m", beside).output == "It is [redacted]."
    call = {"type": "tool_call", "id": "c", "name": "lookup", "arguments": "[redacted]"}
    calling = _span("chat m", {**given, "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}])})
    assert [(c.name, c.arguments) for m in calling.output_messages for c in m.tool_calls] == [("lookup", None)]
    ran = _span("execute_tool lookup", {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.arguments": '"[redacted]"', "gen_ai.tool.call.result": "[redacted]",
    }).tool  # fmt: skip
    assert ran is not None
    assert (ran.arguments, ran.result) == (None, None)


def test_input_tokens_that_leave_out_cached_ones_are_added_up() -> None:
    apart: Attributes = {"j.usage.non_cached_input_tokens": 6, "j.usage.cache_read_input_tokens": 4}
    apart |= {"j.usage.cache_creation_input_tokens": 2, "j.usage.output_tokens": 5}
    used = _span("call", {"j.span_kind": "llm", "j.llm.model": "m", **apart}).usage
    assert used is not None
    assert (used.input, used.cached_input, used.output) == (12, 4, 5)
    whole = _span("call", {"j.span_kind": "llm", "j.llm.model": "m", **apart, "j.usage.prompt_tokens": 12}).usage
    assert whole == used
    doubles: Attributes = {name: float(str(number)) for name, number in apart.items()}
    assert _span("call", {"j.span_kind": "llm", "j.llm.model": "m", **doubles}).usage == used
    spent = {"prompt_tokens": 6.0, "completion_tokens": 2.0}
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": spent})
    used = _span("call", {"j.span_kind": "llm", "j.llm.model": "m", "j.response": body}).usage
    assert used == Usage(input=6, output=2)


def test_an_operation_that_is_called_agent_is_a_run_of_one() -> None:
    given: Attributes = {"gen_ai.operation.name": "agent", "e.agent.name": "support", "input.value": "Where is A-1?"}
    assert (_span("Support", given).kind, _case("Support", given).agents_called) == (SpanKind.AGENT, ("support",))
    del given["e.agent.name"]
    assert _case("agent.run", given).agents_called == ()


def test_a_tool_that_the_provider_ran_is_answered_in_the_same_message() -> None:
    parts = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "server_tool_call": {"type": "web_search"}},
        {"type": "server_tool_call_response", "id": "s", "server_tool_call_response": {"results": [SHIPPED]}},
        {"type": "text", "content": "On its way."},
    ]
    given: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    given["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    case = _case("chat m", given)
    assert case.model_output == "On its way."
    assert [(call.name, call.result) for call in case.tools_used or ()] == [("web_search", {"results": [SHIPPED]})]


def test_what_belongs_to_an_agent_is_no_agent_where_its_own_type_is_another() -> None:
    belongs: Attributes = {"entity.type": "agent", "entity.name": "boss", "input": "Where is A-1?"}
    assert _case("memory.read", {**belongs, "span.type": "memory"}).agents_called == ()
    assert _case("boss", belongs).agents_called == ("boss",)


def test_a_function_of_nemo_is_a_step_of_the_program_and_its_tool_is_a_tool() -> None:
    given: Attributes = {"input.value": GIVEN, "output.value": SHIPPED}
    assert not _case("react_agent", {**given, "nat.span.kind": "FUNCTION"}).tools_used
    assert _case("lookup", {**given, "nat.span.kind": "TOOL"}).tools_used


def test_a_function_of_promptflow_is_a_step_of_the_program_and_its_tool_is_a_tool() -> None:
    given: Attributes = {"framework": "promptflow", "span_type": "Function", "inputs": GIVEN, "output": '"Oslo"'}
    assert not _case("lookup", given).tools_used
    assert _case("lookup", {**given, "span_type": "Tool"}).tools_used
    assert _case("lookup", {**given, "framework": "acme"}).tools_used


def test_a_step_of_the_program_that_a_model_asked_for_is_a_call_of_a_tool() -> None:
    asked = Message(role="assistant", tool_calls=(ToolCall(name="lookup", arguments={"id": "A-1"}, call_id="c1"),))
    given: Attributes = {"framework": "promptflow", "span_type": "Function", "inputs": GIVEN, "output": '"Oslo"'}
    step = replace(_span("lookup", given), start_ns=5, end_ns=6, span_id="3" * 16, parent_id="2" * 16)
    model = replace(_span("chat", {}), kind=SpanKind.LLM, output_messages=(asked,))
    case = extract(Trace.of("1" * 32, [model, step], "batch"))
    assert [(call.name, call.arguments) for call in case.tools_used or ()] == [("lookup", {"id": "A-1"})]
    assert case.tool_span_ids == ("3" * 16,)


def test_a_span_with_the_associations_of_openllmetry_alone_is_not_its_own() -> None:
    given: Attributes = {
        "traceloop.association.properties.session_id": "s", "h_event_type": "model", "h_config.model": "m",
        "h_inputs.prompt": "Where is A-1?", "h_outputs.result": "On its way.",
    }  # fmt: skip
    case = _case("ask", given)
    assert (case.input, case.model_output, case.session_id) == ("Where is A-1?", "On its way.", "s")
    made = _span("ask", {"traceloop.association.properties.session_id": "s", "gen_ai.request.model": "m"})
    assert made.dialect == "openllmetry"


@pytest.mark.parametrize(
    "attributes",
    [
        {"function.name": "answer", "function.args": GIVEN, "function.return_value": "fine"},
        {"job.type": "task", "job.input": GIVEN, "job.output": json.dumps({"ok": True})},
        {"app.request.body": GIVEN, "app.response.body": json.dumps({"status": "ok", "id": 7})},
        {"widget.definition.name": "lookup", "widget.input": GIVEN},
        {"estate.agent": "work", "estate.input": GIVEN, "estate.result": "sold"},
        {"estate.agent": "Ann", "estate.client": "Bob"},
        {"mill.tool": "drill", "mill.request": "plate 7", "mill.result": "done"},
        {"shop.category": "tool", "shop.response": "12 hammers"},
    ],
)
def test_a_step_of_any_program_is_neither_a_tool_nor_an_answer(attributes: dict[str, AttributeValue]) -> None:
    case = _case("work", attributes)
    assert (case.model_output, case.agents_called) == (None, ())
    assert not case.tools_used
