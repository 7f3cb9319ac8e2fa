"""What another client's span said goes back to where it stood, after a Langfuse has taken it from there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse.normalise import raw_span
from sidejudge.integrations.langfuse.origins import contents, origin
from sidejudge.integrations.raw import RawEvent, RawSpan
from tests.fakes.langfuse.otel_in import rows_of

ASKED = '[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]'
ANSWERED = '[{"role": "assistant", "parts": [{"type": "text", "content": "There."}]}]'
TOOL = '{"name": "search", "parameters": {}}'


def span(scope: str, *events: RawEvent, **attributes: Any) -> RawSpan:
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    return RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="step", start_ns=10**18, end_ns=10**18 + 10**9,
        attributes=held, events=events, scope_name=scope, scope_version="1.0",
    )  # fmt: skip


def back(sent: RawSpan, major: int = 4) -> RawSpan:
    found = raw_span(rows_of([sent], major=major)[0])
    assert found is not None
    return found


CHAT = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
RAN = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "search"}


def _listing(*keys: str) -> dict[str, str]:
    """What Logfire and Pydantic AI add: which attributes the span has, and of which type."""
    return {"logfire.json_schema": json.dumps({"type": "object", "properties": {key: {} for key in keys}})}


SENT = {
    "conventions": span("x", **CHAT, gen_ai__input__messages=ASKED, gen_ai__output__messages=ANSWERED),
    "a tool": span("x", **RAN, gen_ai__tool__call__arguments='{"q": 1}', gen_ai__tool__call__result="30"),
    "openinference": span("o", openinference__span__kind="CHAIN", input__value="a {", output__value='{"b": [1]}'),
    "openllmetry": span("o", traceloop__span__kind="workflow", traceloop__entity__input='{"args": []}',
                        traceloop__entity__output='"said"'),
    "langsmith": span("l", langsmith__span__kind="chain", gen_ai__prompt='{"a": 1}', gen_ai__completion='{"b": 2}'),
    "mlflow": span("m", mlflow__spanType='"AGENT"', mlflow__spanInputs='{"a": 1}', mlflow__spanOutputs='"b"'),
    "adk": span("gcp.vertex.agent", gcp__vertex__agent__event_id="e", gcp__vertex__agent__llm_request='{"a": 1}',
                gcp__vertex__agent__llm_response='{"b": 2}'),
    "adk's tool": span("gcp.vertex.agent", **RAN, gcp__vertex__agent__event_id="e",
                       gcp__vertex__agent__llm_request="{}", gcp__vertex__agent__llm_response="{}",
                       gcp__vertex__agent__tool_call_args='{"a": 1}', gcp__vertex__agent__tool_response='{"b": 2}'),
    "logfire": span("logfire", logfire__span_type="span", input='{"a": 1}', output="b"),
    "logfire's events": span("logfire", **CHAT, events=json.dumps([
        {"event.name": "gen_ai.user.message", "content": "Where?"},
        {"event.name": "gen_ai.choice", "message": {"content": "There."}},
    ])),
    "attributes that are listed": span("logfire.x", **CHAT, input='[{"role": "user"}]', output='{"b": 1}',
                                       **_listing("input", "output")),
    "a run of Pydantic AI": span("pydantic-ai", gen_ai__operation__name="invoke_agent",
                                 **{"pydantic_ai.all_messages": ASKED}, final_result='{"b": 1}',
                                 **_listing("pydantic_ai.all_messages", "final_result")),
    "flattened messages": span("opentelemetry.instrumentation.cohere.v1", **CHAT, **{
        "llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "a",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.tool_calls.0.name": "search",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"q": 1}', "gen_ai.completion.0.content": '[{"text": "b"}]',
    }),
    "vercel's call": span("ai", **{"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": ASKED,
                                   "ai.response.text": "There.", "ai.response.toolCalls": '[{"toolName": "a"}]'}),
    "vercel's object": span("ai", **{"ai.operationId": "ai.generateObject", "ai.prompt": '{"prompt": "a"}',
                                     "ai.response.object": '{"b": 1}'}),
    "vercel's tool": span("ai", **{"ai.operationId": "ai.toolCall", "ai.toolCall.name": "search",
                                   "ai.toolCall.args": '{"q": 1}', "ai.toolCall.result": '"found"'}),
}  # fmt: skip


@pytest.mark.parametrize("major", [3, 4])
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_contents_go_back_to_where_langfuse_took_them_from(sent, major):
    reported = back(sent, major)
    reported_of = {key: value for key, value in reported.attributes.items() if not key.startswith("langfuse.")}
    if sent.scope_name == "gcp.vertex.agent":  # empty ones are left out
        sent_of = {key: value for key, value in sent.attributes.items() if value != "{}"}
    else:
        sent_of = dict(sent.attributes)
    assert {key: _read(value) for key, value in reported_of.items()} == {k: _read(v) for k, v in sent_of.items()}


def test_what_was_not_taken_apart_comes_back_to_the_letter():
    stated = '{"high":"noon","bft":4}'
    sent = span("pydantic-ai", final_result=stated, **_listing("final_result"))
    assert back(sent).attributes["final_result"] == stated
    assert back(span("x", **CHAT, gen_ai__output__messages=stated)).attributes["gen_ai.output.messages"] == stated


def test_what_a_framework_said_beside_openinference_s_words_is_said_in_its_own_again():
    added = {"openinference.span.kind": "LLM", "input.value": "Where?", "output.value": '{"choices": []}'}
    reported = back(span("agent_framework", **CHAT, gen_ai__input__messages=ASKED, **added))
    assert {key: reported.attributes[key] for key in added} == added
    assert reported.attributes["gen_ai.output.messages"] == added["output.value"]
    (message,) = normalise(reported).input_messages
    assert (message.role, message.text) == ("user", "Where?")
    added = {"openinference.span.kind": "TOOL", "input.value": '{"q": 1}', "output.value": "30"}
    tool = normalise(back(span("agent_framework", **RAN, gen_ai__tool__call__result="30", **added))).tool
    assert tool is not None
    assert (tool.arguments, tool.result) == ({"q": 1}, "30")


def test_a_span_without_attributes_is_its_client_s_and_not_langfuse_s():
    assert (normalise(back(span("app"))).dialect, normalise(back(span("gcp.vertex.agent"))).dialect) == (
        "generic",
        "google_adk",
    )


def test_messages_that_were_events_are_events_again():
    events = [("gen_ai.user.message", {"content": "Where?"}), ("gen_ai.tool.message", {"content": "x", "id": "c"}),
              ("gen_ai.choice", {"message": "There.", "finish_reason": "stop"})]  # fmt: skip
    sent = span("strands", *(RawEvent(name=name, time_ns=1, attributes=stated) for name, stated in events), **CHAT)
    assert [(event.name, dict(event.attributes)) for event in back(sent).events] == events


def test_a_tool_that_tells_of_its_run_in_messages_keeps_them_apart_from_its_arguments():
    stated = RawEvent(
        name="gen_ai.client.inference.operation.details", time_ns=1, attributes={"gen_ai.input.messages": ASKED}
    )
    (event,) = back(span("strands", stated, **RAN)).events
    assert (event.name, dict(event.attributes)) == (stated.name, {"gen_ai.input.messages": ASKED})


@pytest.mark.parametrize("requested", [ASKED, "Where? {", None])
def test_tools_that_langfuse_put_into_the_input_come_out_again(requested):
    given_in = {} if requested is None else {"gen_ai__input__messages": requested}
    reported = back(span("x", **CHAT, **given_in, gen_ai__tool__definitions=f"[{TOOL}]"))
    assert reported.attributes.get("gen_ai.input.messages") == requested
    assert _read(reported.attributes["gen_ai.tool.definitions"]) == [json.loads(TOOL)]


def test_a_request_keeps_the_tools_that_stood_in_it():
    request = {"model": "m", "messages": [], "tools": [json.loads(TOOL)]}
    sent = span("o", openinference__span__kind="LLM", input__value=json.dumps(request))
    sent.attributes["llm.tools.0.tool.json_schema"] = TOOL
    assert _read(back(sent).attributes["input.value"]) == request


@pytest.mark.parametrize(("sign", "key"), [("gen_ai.request.model", "gen_ai.usage.cost"),
                                            ("openinference.span.kind", "llm.cost.total")])  # fmt: skip
def test_what_langfuse_computed_that_a_call_cost_is_its_cost_unless_the_client_said(sign, key):
    metadata = {"scope.name": "x", f"attributes.{sign}": "LLM"}
    row = {"id": "a" * 16, "traceId": "1" * 32, "startTime": "2026-11-21T00:56:39.001Z", "type": "GENERATION",
           "costDetails": {"input": 0.25, "total": 0.5}, "metadata": metadata}  # fmt: skip
    for stated, cost in (({}, 0.5), ({f"attributes.{key}": 0.75}, 0.75)):
        reported = raw_span({**row, "metadata": {**metadata, **stated}})
        assert reported is not None
        assert (reported.attributes[key], normalise(reported).cost_usd) == (cost, cost)


def test_spans_have_the_names_that_they_were_sent_with_where_langfuse_keeps_them():
    assert back(span("ai", **{"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "f"})).name == (
        "ai.generateText"
    )
    held = {"logfire.msg": "Agent run: 'a'", "logfire.msg_template": "Agent run: {name!r}"}
    assert back(span("logfire", **held)).name == "Agent run: {name!r}"


@pytest.mark.parametrize(
    "sent",
    [
        span("langfuse-sdk", langfuse__observation__type="agent", langfuse__observation__input="a"),
        span("own", langfuse__observation__type="agent", langfuse__observation__input="a", own="b"),
        span("genkit-tracer", **{"genkit:metadata:subtype": "model", "genkit:input": '{"messages": ["a"]}'}),
        span("livekit-agents", **{"lk.input_text": "a", "lk.other": 1}),
    ],
    ids=["Langfuse's own", "in Langfuse's words", "Genkit", "LiveKit"],
)
def test_what_no_dialect_reads_or_langfuse_itself_sent_is_read_as_langfuse_reads_it(sent):
    reported = back(sent).attributes
    assert reported["langfuse.observation.input"] in ("a", '["a"]')
    assert reported["langfuse.observation.type"] == rows_of([sent])[0]["type"].lower()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["role", "message", "messages", "tools", "prompt", "event.name", "content", "parts", "properties", "input",
         "x"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(json_values, json_values, st.dictionaries(st.sampled_from(
    ["gen_ai.a", "gen_ai.operation.name", "logfire.msg", "ai.operationId", "traceloop.span.kind", "b",
     "openinference.span.kind", "llm.request.type", "logfire.json_schema"]), json_values),
    st.sampled_from(["ai", "x", "gcp.vertex.agent"]))  # fmt: skip
def test_contents_of_any_shape_are_read(requested, answered, kept, scope):
    metadata = {"scope.name": scope, **{f"attributes.{key}": value for key, value in kept.items()}}
    row = {"id": "a" * 16, "traceId": "1" * 32, "startTime": "2026-11-21T00:56:39.001Z", "metadata": metadata}
    for stated in (requested, json.dumps(requested)):
        assert raw_span({**row, "input": stated, "output": json.dumps(answered)}) is not None


def test_contents_too_deep_to_read_are_left_out():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    found = origin({"input": deep, "output": "[" * 100_000}, {"gen_ai.a": 1}, "x", 0)
    assert found is not None
    assert found.attributes == {"gen_ai.input.messages": "", "gen_ai.output.messages": "[" * 100_000}


def _read(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


USER, CHOICE = {"role": "user", "content": "a"}, {"message": {"content": "b"}}
FAR: Any = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}
TAKEN: dict[str, tuple[dict[str, Any], Any, Any, dict[str, Any] | int | None]] = {
    "a tool whose operation is not named": (
        {"gen_ai.tool.name": "t"}, {"q": 1}, "r",
        {"gen_ai.tool.call.arguments": {"q": 1}, "gen_ai.tool.call.result": "r"},
    ),
    "a model that names a tool": (
        {"gen_ai.tool.name": "t", "gen_ai.operation.name": "chat"}, "q", "r",
        {"gen_ai.input.messages": "q", "gen_ai.output.messages": "r"},
    ),
    "langsmith beside the conventions": (
        {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"}, "q", "r",
        {"gen_ai.prompt": "q", "gen_ai.completion": "r"},
    ),
    "one side of events": (
        {"gen_ai.operation.name": "chat"}, [{"event.name": "e"}], "r", {"events": [{"event.name": "e"}, "r"]},
    ),
    "messages, eight levels of which are keys": (
        {"llm.request.type": "chat"}, [{"role": "user", "content": FAR}], None,
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content.a.b.c.d.e.f": {"g": {"h": 1}},
         "gen_ai.completion": None},
    ),
    "a text is no list of messages": ({"llm.request.type": "chat"}, "q", None, {"input": "q", "output": None}),
    "nor is a list of others": ({"llm.request.type": "chat"}, [1], None, {"input": [1], "output": None}),
    "turns and a choice": ({"gen_ai.system": "x"}, [USER] * 300, [CHOICE], 301),
    "turns, and what is no choice": (
        {"gen_ai.system": "x"}, [USER], "r", {"gen_ai.input.messages": [USER], "gen_ai.output.messages": "r"},
    ),
    "a choice, and what is no turn": (
        {"gen_ai.system": "x"}, ["q"], CHOICE, {"gen_ai.input.messages": ["q"], "gen_ai.output.messages": CHOICE},
    ),
    "nothing that is known": ({"http.method": "GET"}, "q", "r", None),
}  # fmt: skip
"""Attributes that Langfuse kept, what was requested and answered; where these stood, or how many events they were."""


@pytest.mark.parametrize(("kept", "requested", "answered", "where"), TAKEN.values(), ids=TAKEN)
def test_where_contents_stood_is_known_by_the_attributes_that_were_kept(kept, requested, answered, where):
    found = contents(kept, "x", requested, answered, 1)
    assert where == (found and (len(found.events) or dict(found.attributes)))


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ({"logfire.msg": "sum of 1", "logfire.msg_template": "sum of {n}"}, "sum of {n}"),
        ({"logfire.msg_template": "sum of {n}"}, "sum of 1"),
        ({"logfire.msg": "sum of 1", "logfire.msg_template": 3}, "sum of 1"),
    ],
)
def test_a_span_that_bears_its_message_has_its_own_name_back(kept, name):
    metadata = {"scope": {"name": "logfire"}, "attributes": {"gen_ai.system": "x", **kept}}
    row = {"id": "2" * 16, "traceId": "1" * 32, "startTime": "2026-11-21T00:56:39.001Z", "name": "sum of 1"}
    found = raw_span({**row, "type": "SPAN", "input": "q", "metadata": metadata})
    assert found is not None
    assert found.name == name
