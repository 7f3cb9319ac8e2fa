"""What no dialect knows by its name is read by its shape; what is ambiguous stays unread and is named."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall, Unread, Usage
from sidejudge.scoring.trace.trace import Trace

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is A-1?"}]
GEMINI_ANSWERED = {"role": "model", "parts": [{"text": "On its way."}]}
ANSWERED = [{"role": "assistant", "content": "On its way."}]


def _span(*events: RawEvent, name: str = "step", **attributes: AttributeValue) -> Span:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return normalise(_raw(named, name=name, events=events))


def _raw(attributes: dict[str, AttributeValue], *, name: str = "step", events: tuple[RawEvent, ...] = ()) -> RawSpan:
    return RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name=name, start_ns=1, end_ns=2, attributes=attributes,
        events=events, scope_name="acme",
    )  # fmt: skip


def _event(name: str, **attributes: AttributeValue) -> RawEvent:
    return RawEvent(name=name, time_ns=1, attributes={key.replace("__", "."): v for key, v in attributes.items()})


@pytest.mark.parametrize(
    "attributes",
    [
        {"acme.prompt": json.dumps(ASKED), "acme.completion": json.dumps(ANSWERED)},
        {"x": json.dumps({"messages": ASKED}), "y": json.dumps({"choices": [{"index": 0, "message": ANSWERED[0]}]})},
        {"acme.conversation": json.dumps(ASKED + ANSWERED)},
        {"acme.in.0.role": "system", "acme.in.0.content": "Be brief.", "acme.in.1.role": "user",
         "acme.in.1.content": "Where is A-1?", "acme.response.text": "On its way."},
        {"acme.msgs[0].message.role": "user", "acme.msgs[0].message.content": "Where is A-1?",
         "acme.reply": '{"type": "text", "value": "On its way."}'},
        {"acme:llmInput": json.dumps({"contents": [{"role": "user", "parts": [{"text": "Where is A-1?"}]}]}),
         "acme:llmOutput": json.dumps({"candidates": [{"content": GEMINI_ANSWERED}]})},
        {"acme.history": ASKED, "acme.output": json.dumps({"text": "On its way.", "files": []})},
        {"kelp": json.dumps([{"role": "user", "text": "Where is A-1?"}, {"role": "assistant", "text": "On its way."}])},
        {"vane.log": [{"who": "user", "says": "Where is A-1?"}, {"who": "bot", "says": "On its way."}]},
        {"x": json.dumps({"conversations": [
            {"from": "system", "value": "Be brief."}, {"from": "human", "value": "Where is A-1?"},
            {"from": "gpt", "value": "On its way."},
        ]})},
        {"x": json.dumps([["user", "Where is A-1?"], ["assistant", "On its way."]])},
        {"x": [json.dumps(message) for message in ASKED], "acme.reply": json.dumps([json.dumps(ANSWERED[0])])},
        {"iris": json.dumps({"kind": "llm", "request": {"messages": ASKED}, "response": ANSWERED[0]})},
        {"iris.record": json.dumps({"type": "llm", "input": "Where is A-1?", "output": "On its way."})},
    ],
)  # fmt: skip
def test_a_model_call_is_read_whatever_its_attributes_are_called(attributes: dict[str, AttributeValue]) -> None:
    span = normalise(
        _raw(attributes | {"acme.model": "m-1", "acme.usage.promptTokens": 12, "acme.usage.completion": 3})
    )
    assert (span.kind, span.input, span.output) == (SpanKind.LLM, "Where is A-1?", "On its way.")
    assert (span.requested_model, span.usage) == ("m-1", Usage(input=12, output=3))
    assert span.output_messages[-1].text == "On its way."
    assert span.provenance["output"].endswith("(by shape)")


def test_an_agent_is_read_by_its_layer_and_by_a_span_that_is_called_after_a_run() -> None:
    for name, named in (("session", {"acme.layer": "agent"}), ("acme.agent.run", {})):
        span = normalise(_raw({"acme.agent.name": "ops", "acme.question": "Where?", **named}, name=name))
        assert (span.kind, span.agent, span.input) == (SpanKind.AGENT, "ops", "Where?")


def test_what_users_wrote_is_what_a_tool_returned_and_what_it_was_given_stays() -> None:
    letters = json.dumps([{"author": "customer", "body": "Late."}, {"author": "customer", "body": "Where?"}])
    named = {"acme.tool.name": "letters", "acme.tool.arguments": '{"id": "A-1"}', "acme.tool.output": letters}
    tool = normalise(_raw(named)).tool
    assert tool is not None
    assert (tool.arguments, tool.result) == ({"id": "A-1"}, json.loads(letters))


def test_a_call_in_place_of_what_was_said_is_a_call() -> None:
    call = json.dumps({"name": "lookup", "arguments": {"id": "A-1"}})
    said = [{"from": "human", "value": "Where?"}, {"from": "function_call", "value": call}]
    span = normalise(_raw({"z": json.dumps(said), "z.model": "m"}))
    assert span.output_messages[0].tool_calls == (ToolCall(name="lookup", arguments={"id": "A-1"}),)


@pytest.mark.parametrize("rows", [
    [{"type": "user", "value": "ann"}, {"type": "user", "value": "bob"}],
    [{"actor": "user", "action": "login", "at": "x"}, {"actor": "system", "action": "rotate", "at": "y"}],
    [{"role": "assistant", "finish_reason": "tool_calls"}],
])  # fmt: skip
def test_rows_about_users_are_no_history(rows: list[dict[str, str]]) -> None:
    span = normalise(_raw({"acme.rows": json.dumps(rows), "acme.model": "m-1"}))
    assert (span.input, span.output, span.input_messages) == (None, None, ())


def test_a_whole_call_of_a_tool_or_an_agent_is_read_and_a_count_is_no_content() -> None:
    called = {"type": "tool", "name": "lookup", "arguments": {"id": "A-1"}}
    failed = normalise(_raw({"iris.call": json.dumps(called | {"error": "Timeout"})}))
    assert failed.tool == ToolCall(name="lookup", arguments={"id": "A-1"}, error="Timeout")
    ran = {"type": "agent", "name": "planner", "input": "Go.", "output": "Done."}
    agent = normalise(_raw({"iris.call": json.dumps(ran)}))
    assert (agent.kind, agent.agent, agent.output) == (SpanKind.AGENT, "planner", "Done.")
    counted = normalise(_raw({"vane.model": "m", "vane.tokens.in": 10, "vane.tokens.out": 3}, name="generation"))
    assert (counted.input, counted.output, counted.usage) == (None, None, Usage(input=10, output=3))


def test_a_word_for_any_tool_is_the_name_of_none() -> None:
    named = {"x.tool_name": "mcp__shop__lookup", "y.tool.name": "lookup", "z.tool.name": "mcp_tool", "x.input": "{}"}
    span = normalise(_raw(named | {"span.type": "tool"}))
    assert span.tool is not None
    assert span.tool.name == "lookup"


def test_a_cost_is_read_where_its_name_says_that_it_is_in_us_dollars() -> None:
    call = {"acme.prompt": "Where?", "acme.model": "m-1", "acme.usage.prompt": 12, "acme.usage.completion": 3}
    assert normalise(_raw(call | {"acme.cost_usd": 0.02})).cost_usd == 0.02
    assert normalise(_raw(call | {"acme.cost": 0.02})).cost_usd is None
    assert normalise(_raw(call | {"acme.cost_usd": 0.02, "acme.usd_cost": 0.03})).cost_usd is None


@pytest.mark.parametrize(
    "events",
    [
        (_event("acme.chat.start", messages=json.dumps(ASKED)), _event("acme.chat.end", response__text="On its way.")),
        (_event("acme.user.message", content="Where is A-1?"), _event("acme.assistant.message", content="On its way.")),
        (_event("acme.request", body=json.dumps(ASKED)), _event("acme.response", body=json.dumps(ANSWERED))),
        (_event("LLMStart", prompt="Where is A-1?"), _event("LLMEnd", completion="On its way.")),
        (
            _event("acme.message", role="customer", content="Where is A-1?"),
            _event("acme.message", role="bot", content='[{"type": "tool_use", "id": "c", "name": "f", "input": {}}]'),
            _event("acme.message", role="function", content="on its way"),
            _event("acme.message", role="bot", content="On its way."),
        ),
    ],
)
def test_so_are_its_events(events: tuple[RawEvent, ...]) -> None:
    span = _span(*events, acme__span__kind="LLM")
    assert (span.kind, span.input, span.output) == (SpanKind.LLM, "Where is A-1?", "On its way.")


@pytest.mark.parametrize(
    ("events", "answer"),
    [
        ([_event("llm.chunk", content=text) for text in ("On ", "its ", "way.")], "On its way."),
        ([_event("llm.chunk", content=text) for text in ('"On "', '"its "', '"way."')], "On its way."),
        ([_event("llm.chunk", content=text) for text in ("{", '"a"', ": ", "[]", "}")], '{"a": []}'),
        ([_event("delta", data=text) for text in (
            *(json.dumps({"choices": [{"delta": {"content": text}}]}) for text in ("On its", " way.")), "[DONE]",
        )], "On its way."),
    ],
)  # fmt: skip
def test_an_answer_that_came_piece_by_piece_is_put_together(events: list[RawEvent], answer: str) -> None:
    span = _span(*events, name="llm call", acme__model="m-1", acme__prompt="Where is A-1?")
    assert (span.kind, span.output, span.unread) == (SpanKind.LLM, answer, ())


def test_the_answer_of_a_long_chat_is_that_of_its_last_event() -> None:
    asked = [_event("log record", role=("user", "assistant")[i % 2], content=f"turn {i}") for i in range(300)]
    span = _span(*asked, acme__span__kind="llm")
    assert (span.input, span.output, len(span.input_messages)) == ("turn 298", "turn 299", 299)
    pieces = [_event("llm.chunk", index=i) for i in range(300)]
    assert _span(*pieces, _event("llm.end", response="On its way."), acme__span__kind="llm").output == "On its way."


@pytest.mark.parametrize("answer", ['{"model": "Corolla", "price": 3}', '["model", "price"]'])
def test_an_answer_in_json_is_what_the_model_said(answer: str) -> None:
    span = _span(gen_ai__operation__name="chat", gen_ai__request__model="m-1", acme__response__text=answer)
    assert (span.output, span.model, span.requested_model) == (answer, None, "m-1")


@pytest.mark.parametrize(
    ("returned", "result", "error"),
    [({"content": "gone"}, "gone", None), ({"error": "IOError: no database"}, None, "IOError: no database")],
)
@pytest.mark.parametrize("kind", [
    {"acme__agent__name": "ops"}, {"gen_ai__operation__name": "invoke_agent"},
    {"agent__name": "ops", "question": "Where is A-1?", "answer": "On its way."},
])  # fmt: skip
def test_calls_of_tools_that_an_agent_reports_as_events_are_calls(
    kind: dict[str, str], returned: dict[str, str], result: str | None, error: str | None
) -> None:
    called = _event("tool_call", tool="lookup", arguments='{"id": "A-1"}')
    contents = {"gen_ai.input.messages": json.dumps(ASKED), "gen_ai.output.messages": json.dumps(ANSWERED)}
    named = {key.replace("__", "."): value for key, value in kind.items()}
    own = named if "question" in named else named | contents
    agent = _raw(own, name="agent.run", events=(called, _event("tool_result", tool="lookup", **returned)))
    model = replace(agent, span_id="3" * 16, parent_id=agent.span_id, name="chat", events=(), attributes={
        "gen_ai.operation.name": "chat", **contents})  # fmt: skip
    case = extract(Trace.of("1" * 32, [normalise(agent), normalise(model)], "batch"))
    assert case.tools_used == (ToolCall(name="lookup", arguments={"id": "A-1"}, result=result, error=error),)
    assert normalise(agent).kind is SpanKind.AGENT
    assert case.model_output == "On its way."


@pytest.mark.parametrize(
    ("printed", "text"),
    [("AgentRunResult(output='On its way.')", "On its way."), ("Answer(parts=[TextPart(content='Yes.')])", "Yes."),
     ("AgentRunResult(output='On its", None)],
)  # fmt: skip
def test_the_only_text_of_a_printed_object_is_the_answer(printed: str, text: str | None) -> None:
    span = _span(acme__agent__name="ops", question="Where is A-1?", output=printed, name="agent ops")
    assert span.output == text
    assert bool(span.unread) is (text is None)


def test_an_empty_list_may_be_an_answer_and_is_named() -> None:
    (named,) = _span(acme__agent__name="ops", question="List them.", answer="[]", name="agent ops").unread
    assert (named.source, named.field) == ("answer", "output")
    assert not _span(name="memory.read", input="List them.", output="[]").unread


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("step", {"acme.tool.name": "lookup", "acme.tool.arguments": '{"id": "A-1"}', "acme.tool.result": "gone"}),
        ("lookup", {"acme.span.type": "TOOL", "acme.input": '{"id": "A-1"}', "acme.output": '"gone"'}),
        ("execute_tool lookup", {"acme.args": '{"id": "A-1"}', "acme.result": "gone"}),
        ("tool: lookup", {"acme.input": {"id": "A-1"}, "acme.return_value": "gone"}),
        (
            "lookup.tool",
            {
                "acme.span.kind": "tool",
                "operation.name": "lookup",
                "acme.tool.input": '{"args": [], "kwargs": {"id": "A-1"}}',
                "acme.tool.output": "gone",
            },
        ),
        (
            "x.tool",
            {"acme.entity.name": "lookup", "acme.kind": "tool", "acme.input": {"id": "A-1"}, "acme.result": "gone"},
        ),
        ("step", {"acme.tool.function_name": "lookup", "acme.parameters": '{"id": "A-1"}', "acme.output": "gone"}),
        (
            "function_call",
            {"function.name": "lookup", "function.arguments": '{"id": "A-1"}', "function.output": "gone"},
        ),
        ("function_call lookup", {"acme.arguments": '{"id": "A-1"}', "acme.output": "gone"}),
        (
            "send",
            {
                "mcp.tool.name": "lookup",
                "mcp.params": '{"name": "lookup", "arguments": {"id": "A-1"}}',
                "x.out": "gone",
            },
        ),
        ("lookup", {"acme.node": '{"type": "tool"}', "acme.request": '{"id": "A-1"}', "acme.response": "gone"}),
    ],
)
def test_a_tool_is_read_with_its_arguments_and_its_result(name: str, attributes: dict[str, AttributeValue]) -> None:
    span = normalise(_raw(attributes, name=name))
    assert (span.kind, span.tool) == (SpanKind.TOOL, ToolCall(name="lookup", arguments={"id": "A-1"}, result="gone"))


def test_a_span_that_says_only_that_something_ran_names_nothing() -> None:
    for name in ("Agent.run", "run", "agent step"):
        span = normalise(_raw({"acme.span.kind": "agent", "acme.input": "Go.", "acme.output": "Done."}, name=name))
        assert (span.kind, span.agent) == (SpanKind.AGENT, None)
    called = {"acme.span.kind": "tool", "acme.arguments": '{"id": "A-1"}'}
    names = {name: normalise(_raw(called, name=name)) for name in ("call", "call look_up", "run tests", "受付係")}
    assert {name: span.tool and span.tool.name for name, span in names.items()} == {
        "call": None, "call look_up": "look_up", "run tests": "run tests", "受付係": "受付係",
    }  # fmt: skip


def test_a_function_of_a_program_is_no_tool() -> None:
    function = {"function.name": "lookup", "function.arguments": '{"id": "A-1"}', "function.output": "gone"}
    assert normalise(_raw(function, name="shop.lookup")).kind is SpanKind.OTHER


def test_a_reply_beside_a_prompt_is_what_was_answered_and_a_response_alone_is_not() -> None:
    asked = normalise(_raw({"acme.prompt": "Where is A-1?", "acme.reply": "On its way."}))
    assert (asked.input, asked.output) == ("Where is A-1?", "On its way.")
    assert normalise(_raw({"acme.user.id": "7", "acme.response": "sent"})).output is None


def test_a_step_that_says_that_it_checks_needs_no_contents() -> None:
    kinds = {normalise(_raw({"step.kind": word})).kind for word in ("guardrail", "evaluation")}
    assert kinds == {SpanKind.GUARDRAIL, SpanKind.EVALUATOR}
    assert normalise(_raw({"ticket.category": "moderation"})).kind is SpanKind.OTHER


def test_a_tool_that_is_named_in_so_many_words_is_one_without_contents() -> None:
    named = {"gen_ai.operation.name": "framework", "acme.ai.kind": "tool_call", "acme.tool.definition.name": "lookup"}
    span = normalise(_raw(named, name="tool_call lookup"))
    assert (span.kind, span.tool) == (SpanKind.TOOL, ToolCall(name="lookup"))
    assert normalise(_raw(named | {"acme.ai.kind": "advisor"})).kind is SpanKind.CHAIN


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("planner", {"acme.kind": "agent", "acme.input": "Go.", "acme.output": "Done."}),
        ("invoke_agent planner", {"acme.input": "Go.", "acme.output": "Done."}),
        ("run", {"acme.agent_name": "planner", "acme.run_type": "agent", "acme.task": "Go.", "acme.answer": "Done."}),
    ],
)  # fmt: skip
def test_an_agent_is_read_with_its_name(name: str, attributes: dict[str, AttributeValue]) -> None:
    span = normalise(_raw(attributes, name=name))
    assert (span.kind, span.agent, span.input, span.output) == (SpanKind.AGENT, "planner", "Go.", "Done.")


def test_retrieved_documents_are_read() -> None:
    found = json.dumps([{"content": "30 days.", "score": 0.9}, {"content": "No returns.", "score": 0.4}])
    for attributes in ({"acme.rag_contexts": found}, {"acme.span.type": "rag", "acme.output": found}):
        span = normalise(_raw(attributes))
        assert (span.kind, span.documents) == (SpanKind.RETRIEVER, ("30 days.", "No returns."))


def test_calls_beside_an_answer_are_read_and_definitions_of_tools_are_no_calls() -> None:
    calls = [{"toolCallId": "c1", "toolName": "lookup", "args": {"id": "A-1"}}]
    tools = [{"name": "lookup", "description": "Looks up.", "parameters": {"type": "object", "properties": {}}}]
    span = _span(
        acme__model="m", acme__prompt=json.dumps(ASKED), acme__output=json.dumps({"text": "", "toolCalls": calls}),
        acme__tools=json.dumps(tools), acme__offered=json.dumps(tools),
    )  # fmt: skip
    assert span.output_messages[0].tool_calls == (ToolCall(name="lookup", arguments={"id": "A-1"}, call_id="c1"),)
    offered = _span(acme__model="m", acme__span__kind="llm", acme__offered=json.dumps(tools))
    assert offered.output_messages == ()


@pytest.mark.parametrize(
    ("answered", "wanted"),
    [
        ({"message": {"role": "model", "content": []}, "finishReason": "stop"}, ""),
        ({"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}, ""),
        ([{"role": "assistant", "parts": [{"type": "text", "content": ""}]}], ""),
        ([{"role": "bot", "content": ""}], ""),
        ({"type": "chat_messages", "value": [{"role": "assistant", "content": "", "refusal": None}]}, ""),
        ({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}}], "modelVersion": "m"}, ""),
        ({"role": "ASSISTANT", "content": None}, ""),
        ({"role": "customer", "content": ""}, None),
        ({"role": "tool_call", "content": ""}, None),
        ({"message": {"role": "model", "content": [{"media": {"url": "data:image/png;base64,x"}}]}}, None),
        ({"message": {"role": "user", "content": ""}}, None),
    ],
)
def test_an_empty_message_beside_a_question_in_words_is_an_empty_answer(answered: object, wanted: str | None) -> None:
    stated = {"acme__span__kind": "llm", "acme__model": "m", "acme__output": json.dumps(answered)}
    assert _span(acme__input=json.dumps(ASKED), **stated).output == wanted
    assert _span(**stated).output is None, "contents may be kept back of both"


def test_so_is_an_empty_message_that_is_the_last_event() -> None:
    asked = _event("acme.message", role="user", content="Where is A-1?")
    answers: tuple[dict[str, AttributeValue], ...] = ({"content": ""}, {"parts": '[{"type": "text", "content": ""}]'})
    for empty in answers:
        silent = _event("acme.message", role="bot", **empty)
        assert _span(asked, silent, acme__span__kind="llm").output == ""
        assert _span(silent, acme__span__kind="llm").output is None, "contents may be kept back of both"


def test_an_empty_map_of_a_step_below_others_is_not_taken_for_an_answer() -> None:
    """Mastra's parts of an answer, and what it keeps of a memory and of processors."""
    stated = {"gen_ai.operation.name": "model_chunk", "acme.model_chunk.output": "{}"}
    assert normalise(_raw(stated)).unread
    assert not normalise(replace(_raw(stated), parent_id="b" * 16)).unread
    left = {"gen_ai.operation.name": "invoke_agent", "acme.output": '{"status":"aborted","reason":"abort"}'}
    assert (normalise(_raw(left)).output, normalise(_raw(left)).unread) == (None, ())


def test_two_values_that_differ_and_have_the_same_claim_are_left_unread_and_named() -> None:
    span = _span(acme__span__kind="llm", acme__input="Where?", acme__output="Here.", acme__other__output="There.")
    assert (span.input, span.output) == ("Where?", None)
    assert [unread.source for unread in span.unread] == ["acme.output", "acme.other.output"]
    same = _span(acme__span__kind="llm", acme__output="Here.", acme__other__output="Here.")
    assert same.output == "Here."


def test_contents_of_an_unknown_shape_are_named_with_their_shape_and_never_called_no_answer() -> None:
    told = json.dumps([{"turn": 1, "says": "On its way."}])
    span = normalise(
        _raw({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": told})
    )
    assert span.unread == (
        Unread(
            source="gen_ai.output.messages", shape="list of 1 object with turn, says", field="output", client="acme"
        ),
    )
    case = extract(Trace.of("1" * 32, [span], "batch"))
    assert (case.model_output, case.unread_answer) == (None, span.unread)
    silent = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ""}]}])
    empty = normalise(_raw({"gen_ai.operation.name": "chat", "gen_ai.output.messages": silent}))
    assert empty.unread == (), "an answer without a text is understood"


def test_a_case_with_an_answer_leaves_nothing_open_that_may_hold_it() -> None:
    span = _span(acme__span__kind="llm", acme__messages="Where?", acme__output="Here.")
    case = extract(Trace.of("1" * 32, [span], "batch"))
    assert case.unread
    assert (case.model_output, case.unread_answer) == ("Here.", ())


def test_a_step_of_another_system_is_not_read() -> None:
    for attributes in (
        {"http.request.method": "GET", "url.path": "/health", "http.response.body": "fine"},
        {"db.query.text": "select 1", "db.response.returned_rows": 3},
        {"job.request": '{"id": 1}', "job.response": '{"ok": true}', "job.type": "agent"},
        {"cart.items": '[{"name": "tea", "price": 3}]', "cart.message": "2 items"},
    ):
        span = normalise(_raw(attributes, name="GET /agents/tools"))
        assert (span.kind, span.input, span.output, span.tool) == (SpanKind.OTHER, None, None, None), attributes


def test_a_dialect_that_read_a_field_is_not_overridden() -> None:
    span = normalise(_raw({
        "langfuse.observation.type": "generation", "langfuse.observation.input": "Where?",
        "langfuse.observation.output": "Here.", "acme.prompt": "Who?", "acme.completion": "Me.", "acme.model": "m",
    }))  # fmt: skip
    assert (span.dialect, span.input, span.output, span.requested_model) == ("langfuse", "Where?", "Here.", "m")


def test_tokens_that_do_not_add_up_are_not_read() -> None:
    counts: dict[str, AttributeValue] = {"acme.tokens.input": 10, "acme.tokens.output": 2}
    for total, wanted in ((12, Usage(input=10, output=2)), (40, None)):
        span = normalise(_raw(counts | {"acme.span.kind": "llm", "acme.tokens.total": total, "acme.prompt": "Hi"}))
        assert span.usage == wanted
    cached = counts | {"acme.span.kind": "llm", "acme.tokens.cached": 4, "acme.tokens.total": 16, "acme.prompt": "Hi"}
    assert normalise(_raw(cached)).usage == Usage(input=14, output=2, cached_input=4)


def test_an_object_that_was_printed_is_no_answer() -> None:
    span = _span(acme__span__kind="agent", acme__output="StopEvent(result=AgentOutput(response=ChatMe...", name="a")
    assert span.output is None
    assert [unread.shape for unread in span.unread] == ["text of 47 characters"]


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"acme.level": "ERROR", "acme.status_message": "no such order"}, "no such order"),
        ({"acme.is_error": True, "acme.error": "no such order"}, "no such order"),
        ({"acme.success": False}, "error"),
        ({"acme.success": "false"}, "error"),
        ({"acme.status": False, "acme.state": False, "acme.is_error": "false"}, None),
        ({"acme.state": "failed"}, "error"),
        ({"acme.tool.status": "failed"}, "error"),
        ({"my_client.is_error": True}, "error"),
        ({"my_app.ai.status": "error", "my_app.ai.error": "no such order"}, "no such order"),
        ({"acme.validation.status": "failed", "acme.validation_state": "error", "acme.cache.success": False}, None),
        ({"acme.success": True, "acme.level": "INFO", "acme.state": "done"}, None),
        ({"acme.is_error": False, "acme.error": ""}, None),
    ],
)
def test_a_tool_that_failed_by_an_attribute_failed(attributes: dict[str, AttributeValue], error: str | None) -> None:
    span = normalise(_raw(attributes | {"acme.span.kind": "tool", "acme.args": '{"id": 1}'}, name="lookup"))
    assert span.tool is not None
    assert (span.tool.error, span.error) == (error, error)


@pytest.mark.parametrize(("left", "error"), [("GeneratorExit", None), ("ValueError", "ValueError")])
def test_an_attribute_that_repeats_the_status_of_a_stream_that_was_left_is_no_error(
    left: str, error: str | None
) -> None:
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    raw = _raw(attributes | {"gen_ai.task.status": "failure", "error.type": left})
    found = normalise(replace(raw, status_code=2))
    assert (found.kind, found.error) == (SpanKind.AGENT, error)


def test_a_chat_with_an_event_for_each_message_is_read_in_its_order() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "A-1"}'}}
    span = _span(
        _event("acme.user.message", content="Where is A-1?"),
        _event("acme.assistant.message", tool_calls=[call]),
        _event("acme.tool.message", id="c1", content="on its way"),
        _event("acme.choice", message={"role": "assistant", "content": "On its way."}),
        acme__span__kind="llm",
    )
    assert [message.role for message in span.input_messages] == ["user", "assistant", "tool"]
    assert span.input_messages[1].tool_calls[0].name == "lookup"
    assert (span.input, span.output) == ("Where is A-1?", "On its way.")


def test_data_of_a_model_call_that_says_nothing_else_is_named_whatever_it_is_called() -> None:
    held = '[{"who": "me", "says": "hi"}]'
    asked: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    for attributes, events, source in (
        ({}, (RawEvent(name="odd.dialogue", time_ns=1, attributes={"blob": held}),), "event odd.dialogue: blob"),
        ({"odd.blob": held}, (), "odd.blob"),
    ):
        span = normalise(_raw({**asked, **attributes}, events=events))
        assert [each.source for each in span.unread] == [source]
        answered = {"gen_ai.output.messages": '[{"role": "assistant", "content": "hello"}]'}
        assert normalise(_raw({**asked, **attributes, **answered}, events=events)).unread == ()
    called = RawEvent(name="gen_ai.assistant.message", time_ns=0, attributes={"content": '[{"odd": "a word"}]'})
    returned = RawEvent(name="gen_ai.tool.message", time_ns=1, attributes={"id": "c1", "content": "7 degrees"})
    assert normalise(_raw(asked, events=(called, returned))).unread == (), "what a model called and was given"
    assert normalise(_raw(asked, events=(returned, called))).unread
    assert normalise(_raw({**asked, "odd.note": "a text", "odd.metadata": held})).unread == ()


WORKFLOW: dict[str, AttributeValue] = {
    "x.span.kind": "workflow", "x.workflow.name": "run-7", "y.operation.name": "invoke_agent", "y.agent.name": "run-7",
}  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "kind", "agent"),
    [
        (WORKFLOW, SpanKind.CHAIN, None),
        (WORKFLOW | {"x.lc_agent_name": "research"}, SpanKind.AGENT, "research"),
        ({"y.operation.name": "invoke_agent", "y.agent.name": "s", "y.workflow.name": "s"}, SpanKind.AGENT, "s"),
        ({"y.operation.name": "invoke_agent", "y.agent.name": "run-7", "y.workflow.nodes": '["model", "tools"]'},
         SpanKind.CHAIN, None),
        ({"y.operation.name": "invoke_agent", "y.agent.name": "support", "y.workflow.nodes": ["agent", "tools"]},
         SpanKind.AGENT, "support"),
    ],
)  # fmt: skip
def test_a_workflow_that_is_called_an_agent_is_none(
    attributes: dict[str, AttributeValue], kind: SpanKind, agent: str | None
) -> None:
    span = normalise(_raw(attributes, name="run-7.workflow"))
    assert (span.kind, span.agent) == (kind, agent)


@pytest.mark.parametrize(
    ("name", "answered", "kind"),
    [
        ("invoke_agent m-1", ANSWERED, SpanKind.CHAIN),
        ("invoke_agent research", ANSWERED, SpanKind.AGENT),
        ("invoke_agent m-1", [*ANSWERED, {"role": "assistant", "tool_calls": [{"name": "find", "arguments": "{}"}]}],
         SpanKind.AGENT),
    ],
)  # fmt: skip
def test_what_is_named_after_its_model_and_called_no_tool_is_a_call_and_no_agent(
    name: str, answered: list[dict[str, object]], kind: SpanKind
) -> None:
    span = normalise(_raw({
        "y.operation.name": "invoke_agent", "y.agent.name": "research", "y.request.model": "m-1",
        "y.input.messages": json.dumps(ASKED), "y.output.messages": json.dumps(answered),
    }, name=name))  # fmt: skip
    assert span.kind is kind
    assert span.agent == ("research" if kind is SpanKind.AGENT else None)


def test_a_chat_that_was_understood_and_holds_no_answer_is_not_named_as_one_that_may() -> None:
    asked = [*ASKED[1:], {"role": "tool", "content": "It is in Lyon."}]
    silent = {"role": "assistant", "content": ""}
    span = _span(acme__model="m-1", acme__messages=json.dumps(asked), acme__completion=json.dumps(silent))
    assert (span.kind, span.output, span.unread) == (SpanKind.LLM, "", ())
    two = _span(acme__kind="llm", acme__model="m", acme__chat=json.dumps(ASKED + ANSWERED), acme__messages=json.dumps(
        [*ASKED, {"role": "assistant", "content": "Something else."}]
    ))  # fmt: skip
    assert two.output is not None or {each.source for each in two.unread} == {"acme.chat", "acme.messages"}


def test_pieces_in_an_event_that_no_reader_knows_are_named_as_what_may_be_the_answer() -> None:
    spoken = _event("acme.utterance", delta__tokens='["On", " its", " way."]')
    retried = _event("acme.retry", attempt=2, cause="rate limit")
    asked = _event("acme.message", role="user", content="Where is A-1?")
    span = _span(asked, spoken, retried, acme__kind="llm", acme__model="m-1")
    assert [each.source for each in span.unread] == ["event acme.utterance: delta.tokens"]
    assert _span(asked, retried, acme__kind="llm", acme__model="m-1").unread == ()
